// Dead letters in the state's own database.
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <sstream>

#include "core/dead_letter_sql.h"
#include "state/session.h"
#include "tests/state/child.h"
#include "tests/state/state_help.h"
#include "tests/support/letters_suite.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;

namespace {

template <class World>
class TableLetters {
 public:
  LetterProcess process(StateAccess access = StateAccess::read_write) const {
    LetterProcess p;
    p.state = world_.open(access);
    p.letters = must_have(p.state->dead_letters());
    return p;
  }
  std::string url() const { return world_.url(); }

 private:
  World world_;
};

using SqliteLetters = TableLetters<SqliteWorld>;
using PostgresLetters = TableLetters<PostgresWorld>;

#define TABLE_TEST(name) TEST_CASE_TEMPLATE(name, World, SqliteLetters, PostgresLetters)

// Claims and settles by handfuls until nothing is left; says which letters it had.
int replay_all(const std::string& url, const std::string& replay, const std::string& out) {
  const auto state = must_open(url, StateAccess::read_write);
  const auto letters = must_have(state->dead_letters());
  const auto lock = must_have(state->lock(replay_lock_name(replay), Millis{0}));
  LetterFilter some;
  some.limit = 7;
  std::string had;
  for (;;) {
    const auto claimed = must_have(letters->claim(some, replay));
    if (claimed.empty()) break;
    for (const DeadLetter& l : claimed) had += std::to_string(l.offset.value) + "\n";
    must_do(letters->settle(outcomes_of(claimed, LetterState::replayed, "replayed"), replay, "x"));
  }
  std::ofstream(out, std::ios::binary) << had;
  return 0;
}

}  // namespace

TYPE_TO_STRING(SqliteLetters);
TYPE_TO_STRING(PostgresLetters);
LETTERS_SUITE(SqliteLetters, PostgresLetters);

TABLE_TEST("two processes that replay at once have each letter once between them") {
  const World world;
  must_do(world.process().letters->put(letters_from(0, 500)));
  const TempDir dir;
  {
    Child one([&] { return replay_all(world.url(), "r1", (dir / "one").string()); });
    Child two([&] { return replay_all(world.url(), "r2", (dir / "two").string()); });
    CHECK(one.wait() == 0);
    CHECK(two.wait() == 0);
  }
  std::map<std::int64_t, int> times;
  std::istringstream lines(read_file(dir / "one") + read_file(dir / "two"));
  for (std::int64_t offset = 0; lines >> offset;) ++times[offset];
  CHECK(times.size() == 500);
  for (const auto& [offset, n] : times) CHECK_MESSAGE(n == 1, offset);
  CHECK(must_have(world.process().letters->count({.state = LetterState::replayed})) == 500);
}

TABLE_TEST("a replay that is killed leaves its letters to the next, none lost and none doubled") {
  const World world;
  must_do(world.process().letters->put(letters_from(0, 50)));
  {
    Child child([&]() -> int {
      const auto state = must_open(world.url(), StateAccess::read_write);
      const auto letters = must_have(state->dead_letters());
      const auto lock = must_have(state->lock(replay_lock_name("killed"), Millis{0}));
      LetterFilter some;
      some.limit = 20;
      const auto claimed = must_have(letters->claim(some, "killed"));
      must_do(letters->settle(std::vector<LetterOutcome>{{claimed.front().id}}, "killed", "x"));
      ::raise(SIGKILL);
      return 1;
    });
    child.wait();
  }
  const auto store = world.process();
  const auto lock = must_have(store.state->lock(replay_lock_name("next"), Millis{0}));
  std::vector<DeadLetter> claimed;
  CHECK(wait_for(std::chrono::seconds(30), [&] {
    const auto more = must_have(store.letters->claim({}, "next"));
    claimed.insert(claimed.end(), more.begin(), more.end());
    return claimed.size() >= 49;
  }));
  Offsets expected;
  for (std::int64_t offset = 1; offset < 50; ++offset) expected.push_back(offset);
  CHECK(offsets_of(claimed) == expected);
  CHECK(must_have(store.letters->count({.state = LetterState::replayed})) == 1);
}

TABLE_TEST("purged letters are gone with all that was kept of them, held ones stay") {
  const World world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 6)));
  const auto snapshot = must_have(store.letters->snapshot({}));
  const auto lock = must_have(store.state->lock(replay_lock_name("r"), Millis{0}));
  const auto held = must_have(store.letters->claim({.until_ms = 1'001}, "r"));
  REQUIRE(offsets_of(held) == Offsets{0});
  CHECK(must_have(store.letters->purge({.until_ms = 1'004})) == 3);
  CHECK(offsets_of(must_have(store.letters->list({}))) == Offsets{0, 4, 5});
  LetterFilter frozen;
  frozen.snapshot = snapshot;
  CHECK(must_have(store.letters->count(frozen)) == 3);
  const auto last = must_have(store.letters->list({})).back().id;
  must_do(store.letters->put(letters_from(1, 1)));
  CHECK(must_have(store.letters->list({})).back().id > last);
}

TABLE_TEST("ten thousand letters are put in one go, and are all there") {
  const World world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 10'000)));
  const auto all = must_have(world.process().letters->list({}));
  REQUIRE(all.size() == 10'000);
  for (std::size_t i = 0; i < all.size(); ++i)
    REQUIRE(all[i].offset.value == static_cast<std::int64_t>(i));
}

TABLE_TEST("text that a database cannot hold is made storable, the bytes stay") {
  const World world;
  auto letter = a_letter(1);
  letter.error = std::string("a\0b\xff", 4) + "\xE2\x82";
  letter.operation_id = std::string("\0", 1);
  letter.value = letter.error;
  must_do(world.process().letters->put(std::vector{letter}));
  const auto kept = must_have(world.process().letters->list({})).at(0);
  CHECK(kept.error == "a?b???");
  CHECK(kept.operation_id == "?");
  CHECK(kept.value == letter.value);
}

TABLE_TEST("a state opened for reading shows letters and takes none") {
  const World world;
  must_do(world.process().letters->put(letters_from(0, 2)));
  const auto reader = world.process(StateAccess::read_only);
  CHECK(offsets_of(must_have(reader.letters->list({}))) == Offsets{0, 1});
  CHECK_FALSE(reader.letters->put(letters_from(2, 1)).ok());
  CHECK_FALSE(reader.letters->claim({}, "r").ok());
  CHECK(offsets_of(must_have(world.process().letters->list({}))) == Offsets{0, 1});
}

TEST_CASE("headers keep their order, their repeats, and null apart from empty") {
  const std::vector<LetterHeader> headers{
      {"b", "2"}, {"a", std::nullopt}, {"b", ""}, {"", std::string("\0\xff", 2)}};
  const auto back = decode_headers(encode_headers(headers));
  REQUIRE(back.size() == headers.size());
  for (std::size_t i = 0; i < back.size(); ++i) {
    CHECK(back[i].name == headers[i].name);
    CHECK(back[i].value == headers[i].value);
  }
  CHECK(decode_headers("").empty());
}
