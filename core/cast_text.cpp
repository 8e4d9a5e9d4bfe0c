#include "core/cast_text.h"

#include <cstdint>
#include <cstring>

#include "core/row_json.h"

namespace flow {

namespace {

constexpr std::size_t shown_characters = 40;

bool continues(std::string_view bytes, std::size_t at) {
  return at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xC0U) == 0x80U;
}

// Length of the well-formed character that starts at `at`; 0: there is none.
std::size_t character_bytes(std::string_view bytes, std::size_t at) {
  const auto first = static_cast<unsigned char>(bytes[at]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !continues(bytes, at + 1)) return 0;
  if (first < 0xE0) return 2;
  const auto second = static_cast<unsigned char>(bytes[at + 1]);
  if (!continues(bytes, at + 2)) return 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (!continues(bytes, at + 3)) return 0;
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool beyond = first == 0xF4 && second > 0x8F;
  return overlong || beyond ? 0 : 4;
}

std::size_t ascii_prefix(std::string_view bytes, std::size_t at) {
  while (at + 8 <= bytes.size()) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    if ((word & 0x8080808080808080ULL) != 0) break;
    at += 8;
  }
  return at;
}

}  // namespace

bool valid_utf8(std::string_view bytes) {
  std::size_t at = 0;
  while (true) {
    at = ascii_prefix(bytes, at);
    const std::size_t stop = at + 8 < bytes.size() ? at + 8 : bytes.size();
    if (at == stop) return true;
    while (at < stop) {
      const std::size_t width = character_bytes(bytes, at);
      if (width == 0) return false;
      at += width;
    }
  }
}

std::size_t utf8_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

bool json_holds_nul(std::string_view json) {
  const char* at = json.data();
  const char* const end = at + json.size();
  while (at < end) {
    at = static_cast<const char*>(std::memchr(at, '\\', static_cast<std::size_t>(end - at)));
    if (at == nullptr || end - at < 2) return false;
    if (end - at >= 6 && std::memcmp(at, "\\u0000", 6) == 0) return true;
    at += 2;
  }
  return false;
}

std::string shown(std::string_view text) {
  std::size_t bytes = 0;
  std::size_t characters = 0;
  while (bytes < text.size() && characters < shown_characters) {
    const std::size_t width = character_bytes(text, bytes);
    if (width == 0) break;
    bytes += width;
    ++characters;
  }
  std::string out;
  append_json_string(out, text.substr(0, bytes));
  if (bytes < text.size()) out.insert(out.size() - 1, "...");
  return out;
}

std::string described(const Value& value) {
  std::string text;
  switch (value.kind()) {
    case Kind::missing: return "a missing field";
    case Kind::null: return "null";
    case Kind::text: return "text " + shown(value.text());
    case Kind::bytes: return std::to_string(value.text().size()) + " bytes";
    case Kind::boolean: text = "boolean "; break;
    case Kind::int64:
    case Kind::float64:
    case Kind::decimal: text = "number "; break;
    case Kind::json: text = "JSON "; break;
    default: text = std::string(name_of(value.kind())) + " "; break;
  }
  std::string content;
  append_text(content, value);
  const std::string quoted = shown(content);
  return text + (value.kind() == Kind::json ? quoted : quoted.substr(1, quoted.size() - 2));
}

}  // namespace flow
