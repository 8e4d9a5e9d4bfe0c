#include "core/row_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base64.h"
#include "core/cast_time.h"

namespace flow {

namespace {

// What a byte needs inside a JSON string: 0 nothing, 'u' a \u00XX escape, else the letter after the
// backslash.
constexpr std::array<char, 256> make_escapes() {
  std::array<char, 256> table{};
  for (std::size_t c = 0; c < 0x20; ++c) table[c] = 'u';
  table['\b'] = 'b';
  table['\f'] = 'f';
  table['\n'] = 'n';
  table['\r'] = 'r';
  table['\t'] = 't';
  table['"'] = '"';
  table['\\'] = '\\';
  return table;
}
constexpr std::array<char, 256> escapes = make_escapes();

// Where the first byte that needs an escape can be: all of the eight-byte words before it are free
// of such.
std::size_t skip_unescaped(std::string_view text, std::size_t at) {
  constexpr std::uint64_t ones = 0x0101010101010101ULL;
  constexpr std::uint64_t tops = 0x8080808080808080ULL;
  const auto zero_byte = [](std::uint64_t w) { return (w - ones) & ~w & tops; };
  while (at + 8 <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    const std::uint64_t control = (word - ones * 0x20) & ~word & tops;
    if ((control | zero_byte(word ^ ones * '"') | zero_byte(word ^ ones * '\\')) != 0) break;
    at += 8;
  }
  return at;
}

template <class Number>
void append_number(std::string& out, Number number) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

void append_quoted(std::string& out, const Value& value) {
  out.push_back('"');
  append_text(out, value);
  out.push_back('"');
}

// Line ends between the tokens of a JSON text (they cannot be inside its strings) become spaces.
void append_one_line(std::string& out, std::string_view json) {
  const std::size_t first = out.size();
  out.append(json);
  if (json.find_first_of("\r\n") == std::string_view::npos) return;
  for (std::size_t i = first; i < out.size(); ++i) {
    if (out[i] == '\n' || out[i] == '\r') out[i] = ' ';
  }
}

// RFC 4180, with the quotes that empty text needs to differ from null.
void append_csv_field(std::string& out, std::string_view text) {
  // Unquoted at the start of a line, a byte order mark would be read as one and lost.
  if (!text.empty() && text.find_first_of("\",\r\n") == std::string_view::npos &&
      !text.starts_with("\xEF\xBB\xBF")) {
    out.append(text);
    return;
  }
  out.push_back('"');
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  out.push_back('"');
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static constexpr std::string_view hex = "0123456789abcdef";
  out.push_back('"');
  std::size_t start = 0;
  for (std::size_t i = skip_unescaped(text, 0); i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const char escape = escapes[byte];
    if (escape == 0) [[likely]]
      continue;
    out.append(text, start, i - start);
    start = i + 1;
    out.push_back('\\');
    out.push_back(escape);
    if (escape == 'u') {
      out.append("00");
      out.push_back(hex[byte >> 4U]);
      out.push_back(hex[byte & 15U]);
    }
  }
  out.append(text, start, text.size() - start);
  out.push_back('"');
}

void append_json(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::null: out.append("null"); return;
    case Kind::text: append_json_string(out, value.text()); return;
    case Kind::float64:
      if (std::isfinite(value.d())) {
        append_text(out, value);
      } else {
        out.append("null");
      }
      return;
    case Kind::bytes:
    case Kind::date:
    case Kind::timestamp:
    case Kind::timestamptz:
    case Kind::uuid: append_quoted(out, value); return;
    case Kind::json: append_one_line(out, value.text()); return;
    case Kind::boolean:
    case Kind::int64:
    case Kind::decimal: append_text(out, value); return;
  }
}

void append_json_row(std::string& out, const Columns& columns, const Value* cells) {
  char before = '{';
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (cells[i].kind() == Kind::missing) continue;
    out.push_back(before);
    before = ',';
    append_json_string(out, columns[i].name);
    out.push_back(':');
    append_json(out, cells[i]);
  }
  if (before == '{') out.push_back('{');
  out.push_back('}');
}

void append_csv_row(std::string& out, std::size_t width, const Value* cells) {
  for (std::size_t i = 0; i < width; ++i) {
    if (i > 0) out.push_back(',');
    const Value& value = cells[i];
    if (value.kind() == Kind::text || value.kind() == Kind::json) {
      append_csv_field(out, value.text());
    } else {
      append_text(out, value);  // nothing else holds a comma, a quote or a line end
    }
  }
}

void append_text(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::null: return;
    case Kind::boolean: out.append(value.i() != 0 ? "true" : "false"); return;
    case Kind::int64: append_number(out, value.i()); return;
    case Kind::float64: append_number(out, value.d()); return;
    case Kind::decimal:
    case Kind::text:
    case Kind::json:
    case Kind::uuid: out.append(value.text()); return;
    case Kind::bytes: append_base64(out, value.text()); return;
    case Kind::date: append_date(out, value.i()); return;
    case Kind::timestamp: append_timestamp(out, value.i()); return;
    case Kind::timestamptz: append_instant(out, value.i()); return;
  }
}

}  // namespace flow
