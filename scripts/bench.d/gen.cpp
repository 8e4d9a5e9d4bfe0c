// gen ROWS REPEATS_PERCENT SEED JSONL CSV: orders of about 180 bytes, one a line, the same for the
// same arguments. REPEATS_PERCENT of the rows are later versions of an order that was there before
// (the same order_id). Prints what the result must be as JSON: `append` counts every row, `merge`
// the last version of each order.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Random {  // xorshift64*
  std::uint64_t state;
  std::uint64_t below(std::uint64_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 2685821657736338717ull >> 16) % limit;
  }
};

struct Order {
  std::uint64_t op = 0;
  std::uint32_t cents = 0;
  std::uint32_t text = 0;  // characters of status and note
};

struct Truth {
  std::uint64_t rows = 0, ids = 0, ops = 0, cents = 0, text = 0;
  void add(const Order& order) {
    ++rows;
    ops += order.op;
    cents += order.cents;
    text += order.text;
  }
  void print(const char* name, const char* after) const {
    std::printf(
        "\"%s\": {\"rows\": %lu, \"ids\": %lu, \"ops\": %lu, \"cents\": %lu, \"text\": %lu}%s",
        name, rows, ids, ops, cents, text, after);
  }
};

struct Word {
  const char* bytes;
  std::uint32_t characters;
};
constexpr std::array<Word, 5> statuses{
    {{"placed", 6}, {"paid", 4}, {"packed", 6}, {"shipped", 7}, {"returned", 8}}};
constexpr std::array<Word, 4> currencies{{{"EUR", 3}, {"USD", 3}, {"GBP", 3}, {"JPY", 3}}};
constexpr std::array<Word, 5> notes{{{"leave at the door", 17},
                                     {"zerbrechlich, bitte vorsichtig für Zoë", 38},
                                     {"ring twice; no parcel shop", 26},
                                     {"領収書をお願いします", 10},
                                     {"no", 2}}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return std::fputs("usage: gen ROWS REPEATS_PERCENT SEED JSONL CSV\n", stderr), 64;
  const std::uint64_t rows = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t repeats = std::strtoull(argv[2], nullptr, 10);
  Random random{std::strtoull(argv[3], nullptr, 10) * 2 + 1};
  std::FILE* json = std::fopen(argv[4], "w");
  std::FILE* csv = std::fopen(argv[5], "w");
  if (json == nullptr || csv == nullptr) return std::perror("gen"), 73;

  Truth append, merge;
  std::vector<Order> last(1);  // by order_id, which begins at 1
  for (std::uint64_t op = 0; op < rows; ++op) {
    const bool again = last.size() > 1 && random.below(100) < repeats;
    const std::uint64_t id = again ? 1 + random.below(last.size() - 1) : last.size();
    if (!again) last.emplace_back();
    const Word status = statuses[random.below(statuses.size())];
    const Word currency = currencies[random.below(currencies.size())];
    const Word note = notes[random.below(notes.size())];
    const auto cents = static_cast<std::uint32_t>(1 + random.below(9'999'999));
    const unsigned customer = static_cast<unsigned>(random.below(100'000));
    const std::uint64_t seconds = op / 10;
    char time[32];
    std::snprintf(time, sizeof time, "2024-%02lu-%02luT%02lu:%02lu:%02luZ",
                  1 + seconds / 2'419'200 % 12, 1 + seconds / 86'400 % 28, seconds / 3600 % 24,
                  seconds / 60 % 60, seconds % 60);
    std::fprintf(json,
                 "{\"order_id\":%lu,\"op\":%lu,\"customer_id\":%u,\"status\":\"%s\",\"amount\":%u.%"
                 "02u,\"currency\":\"%s\","
                 "\"created_at\":\"%s\",\"note\":\"%s\"}\n",
                 id, op, customer, status.bytes, cents / 100, cents % 100, currency.bytes, time,
                 note.bytes);
    std::fprintf(csv, "%lu,%lu,%u,%s,%u.%02u,%s,%s,\"%s\"\n", id, op, customer, status.bytes,
                 cents / 100, cents % 100, currency.bytes, time, note.bytes);
    last[id] = {op, cents, status.characters + note.characters};
    append.add(last[id]);
  }
  append.ids = last.size() - 1;
  for (std::size_t id = 1; id < last.size(); ++id) merge.add(last[id]);
  merge.ids = merge.rows;
  if (std::fclose(json) != 0 || std::fclose(csv) != 0) return std::perror("gen"), 74;
  std::printf("{");
  append.print("append", ", ");
  merge.print("merge", "}\n");
  return 0;
}
