#include "connectors/format_json_string.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace flow::json {

namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

std::uint32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return none;
}

// The four hex digits of an escape that starts at `at`; none: it is not a \u escape.
std::uint32_t code_unit(std::string_view raw, std::size_t at) {
  if (raw.size() < at + 6 || raw[at] != '\\' || raw[at + 1] != 'u') return none;
  std::uint32_t unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const std::uint32_t digit = hex_digit(raw[i]);
    if (digit == none) return none;
    unit = unit << 4U | digit;
  }
  return unit;
}

// The character of the escape at `at`, which moves behind it; none: it is not a valid one.
std::uint32_t take_escape(std::string_view raw, std::size_t& at) {
  if (raw.size() < at + 2) return none;
  const char letter = raw[at + 1];
  if (letter != 'u') {
    at += 2;
    switch (letter) {
      case '"':
      case '\\':
      case '/': return static_cast<unsigned char>(letter);
      case 'b': return '\b';
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      default: return none;
    }
  }
  const std::uint32_t unit = code_unit(raw, at);
  at += 6;
  if (unit == none || unit < 0xD800 || unit > 0xDFFF) return unit;
  const std::uint32_t low = code_unit(raw, at);
  if (unit > 0xDBFF || low == none || low < 0xDC00 || low > 0xDFFF) return none;
  at += 6;
  return 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
}

char* put_utf8(char* out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6U);
    put(0x80 | (c & 0x3FU));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12U);
    put(0x80 | (c >> 6U & 0x3FU));
    put(0x80 | (c & 0x3FU));
  } else {
    put(0xF0 | c >> 18U);
    put(0x80 | (c >> 12U & 0x3FU));
    put(0x80 | (c >> 6U & 0x3FU));
    put(0x80 | (c & 0x3FU));
  }
  return out;
}

}  // namespace

bool escapes_are_valid(std::string_view raw) {
  std::size_t at = raw.find('\\');
  while (at != std::string_view::npos) {
    if (take_escape(raw, at) == none) return false;
    at = raw.find('\\', at);
  }
  return true;
}

bool unescape(std::string_view raw, Arena& arena, std::string_view& text) {
  char* const first = arena.allocate(raw.size());  // an escape is never shorter than its character
  char* out = first;
  std::size_t at = 0;
  while (at < raw.size()) {
    const std::size_t next = std::min(raw.find('\\', at), raw.size());
    std::memcpy(out, raw.data() + at, next - at);
    out += next - at;
    at = next;
    if (at == raw.size()) break;
    const std::uint32_t character = take_escape(raw, at);
    if (character == none) return false;
    out = put_utf8(out, character);
  }
  text = {first, static_cast<std::size_t>(out - first)};
  return true;
}

}  // namespace flow::json
