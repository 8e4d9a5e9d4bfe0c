// The file-position logic on any input: identities as text, records out of bytes in pieces, and the
// choice of the position at which a file goes on.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/file_framing.h"
#include "connectors/file_identity.h"

using namespace flow;
using namespace flow::files;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Takes the input apart from its front.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}
  std::size_t number() {
    if (rest_.empty()) return 0;
    const auto n = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return n;
  }
  std::string_view bytes(std::size_t size) {
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(part.size());
    return part;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

void identity_text(std::string_view text) {
  const auto id = Identity::parse(text);
  if (!id) return;
  const auto again = Identity::parse(id->text());
  require(again.has_value() && again->text() == id->text());
}

std::vector<std::pair<std::size_t, std::size_t>> framed(std::string_view bytes, std::size_t piece,
                                                        FormatKind format) {
  Framer framer(format, ',');
  std::vector<std::pair<std::size_t, std::size_t>> records;
  std::size_t at = 0;
  std::size_t known = 0;
  for (;;) {
    const bool last = known == bytes.size();
    Frame f;
    if (framer.next(bytes.substr(at, known - at), last, f)) {
      require(f.size > 0 && at + f.size <= known && f.value.size() <= f.size);
      if (!f.blank) records.emplace_back(at, f.value.size());
      at += f.size;
    } else if (last) {
      require(at == bytes.size() || framer.in_quotes());
      return records;
    } else {
      known = std::min(bytes.size(), known + piece);
    }
  }
}

Sighting sighting(std::string_view content, std::uint64_t inode) {
  Sighting s;
  s.path = "f";
  s.device = 1;
  s.inode = inode;
  s.size = static_cast<std::int64_t>(content.size());
  s.head = content.substr(0, head_bytes);
  s.tail = [content](std::int64_t at) -> std::optional<std::uint64_t> {
    const auto end = static_cast<std::size_t>(at);
    const std::size_t size = std::min(end, tail_bytes);
    return digest(content.substr(end - size, size));
  };
  return s;
}

// A file `before` was read up to `position`; now there is `after`, in the same inode or another.
void placement(std::string_view before, std::size_t position, std::string_view after, bool same) {
  Known k;
  k.path = "f";
  k.position = static_cast<std::int64_t>(position);
  k.identity.device = 1;
  k.identity.inode = 1;
  k.identity.set_heads(before.substr(0, head_bytes));
  if (position > 0) {
    k.identity.tail_at = k.position;
    k.identity.tail_digest = *sighting(before, 1).tail(k.position);
  }
  const Placements placed = place({k}, {sighting(after, same ? 1 : 2)});
  const Placement& p = placed.files.front();
  const bool grown = after.starts_with(before);
  if (same && grown) require(p.standing == Standing::same && p.position == k.position);
  if (p.standing == Standing::cut || p.position == 0) return;
  // Going on in the middle: nothing that was read has changed as far as is kept, nothing is past
  // the end.
  require(p.position == k.position && position <= after.size());
  const std::size_t head = std::min({before.size(), head_bytes, after.size()});
  require(head < 64 || before.substr(0, 64) == after.substr(0, 64));
  require(same || before.substr(0, head) == after.substr(0, head));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::size_t choice = input.number();
  const std::size_t first = input.number() * 8;
  const std::size_t second = input.number() * 8;
  if (choice % 3 == 0) {
    identity_text(input.rest());
    identity_text("v1:" + std::string(input.rest()));
  } else if (choice % 3 == 1) {
    for (const FormatKind format : {FormatKind::json, FormatKind::csv, FormatKind::raw}) {
      require(framed(input.rest(), first + 1, format) ==
              framed(input.rest(), input.rest().size() + 1, format));
    }
  } else {
    const std::string before(input.bytes(first));
    const std::string rest(input.bytes(second));
    const std::string after = choice % 2 == 0 ? before + rest : rest;
    const std::size_t position = before.empty() ? 0 : input.number() * 8 % (before.size() + 1);
    placement(before, position, after, choice % 5 != 0);
    placement(before, position, before.substr(0, position / 2), choice % 5 != 0);
  }
  return 0;
}
