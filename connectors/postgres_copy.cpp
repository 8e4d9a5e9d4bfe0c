#include "connectors/postgres_copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace flow {
namespace {

constexpr std::int64_t days_1970_to_2000 = 10'957;
constexpr std::int64_t micros_1970_to_2000 = days_1970_to_2000 * 86'400'000'000;

// ---- numeric: base 10000 digits, the first of weight 10000^weight
// --------------------------------

constexpr std::uint16_t numeric_negative = 0x4000;
constexpr std::int64_t numeric_scale_max = 16'383;
constexpr std::int64_t numeric_whole_digits_max = 131'072;
constexpr std::array<std::int64_t, 4> powers{1, 10, 100, 1'000};

void put_numeric_header(ByteSink& sink, std::size_t groups, std::int64_t weight, bool negative,
                        std::int64_t scale) {
  sink.put32(static_cast<std::uint32_t>(8 + 2 * groups));
  sink.put16(static_cast<std::uint16_t>(groups));
  sink.put16(static_cast<std::uint16_t>(weight));
  sink.put16(negative ? numeric_negative : 0);
  sink.put16(static_cast<std::uint16_t>(scale));
}

// value = mantissa / 10^scale, both small: mantissa below 10^15, scale below 16.
void put_short_numeric(ByteSink& sink, std::int64_t mantissa, int scale, bool negative) {
  if (mantissa == 0) return put_numeric_header(sink, 0, 0, false, scale);
  const int groups_below = (scale + 3) / 4;
  mantissa *= powers[static_cast<std::size_t>(groups_below * 4 - scale)];
  std::array<std::uint16_t, 8> groups{};  // lowest first
  std::size_t count = 0;
  for (; mantissa != 0; mantissa /= 10'000) {
    groups[count++] = static_cast<std::uint16_t>(mantissa % 10'000);
  }
  std::size_t low = 0;
  while (groups[low] == 0) ++low;
  put_numeric_header(sink, count - low, static_cast<std::int64_t>(count) - groups_below - 1,
                     negative, scale);
  for (std::size_t g = count; g > low; --g) sink.put16(groups[g - 1]);
}

// A number token taken apart. Borrows it.
struct Token {
  bool negative = false;
  std::string_view digits;  // with the point inside
  std::int64_t exponent = 0;
};

bool take_token(std::string_view text, Token& token) {
  token.negative = text.starts_with('-');
  if (token.negative || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  token.digits = text.substr(0, e);
  bool down = false;
  for (std::size_t i = e + 1; i < text.size(); ++i) {
    if (text[i] == '-') down = true;
    if (text[i] < '0' || text[i] > '9') continue;
    token.exponent = std::min<std::int64_t>(token.exponent * 10 + (text[i] - '0'), 1'000'000);
  }
  if (down) token.exponent = -token.exponent;
  return !token.digits.empty() &&
         token.digits.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool put_long_numeric(ByteSink& sink, std::string_view text) {
  Token token;
  if (!take_token(text, token)) return false;
  const std::size_t point = std::min(token.digits.find('.'), token.digits.size());
  const std::size_t fraction = token.digits.size() - std::min(point + 1, token.digits.size());
  const std::int64_t scale =
      std::max<std::int64_t>(0, static_cast<std::int64_t>(fraction) - token.exponent);
  if (scale > numeric_scale_max) return false;
  // digit(w): of weight 10^w
  const std::int64_t whole = static_cast<std::int64_t>(point) + token.exponent;
  const auto digit = [&](std::int64_t w) {
    std::int64_t at = whole - 1 - w;
    if (at >= static_cast<std::int64_t>(point)) ++at;
    return at >= 0 && at < static_cast<std::int64_t>(token.digits.size())
               ? token.digits[static_cast<std::size_t>(at)] - '0'
               : 0;
  };
  std::int64_t top = whole - 1;
  std::int64_t bottom = token.exponent - static_cast<std::int64_t>(fraction);
  while (top >= bottom && digit(top) == 0) --top;
  while (top >= bottom && digit(bottom) == 0) ++bottom;
  if (top < bottom) {
    put_numeric_header(sink, 0, 0, false, scale);
    return true;
  }
  if (top >= numeric_whole_digits_max) return false;
  const std::int64_t first = top >> 2;  // group of weight 10000^first: rounds down below zero too
  const std::int64_t last = bottom >> 2;
  put_numeric_header(sink, static_cast<std::size_t>(first - last + 1), first, token.negative,
                     scale);
  for (std::int64_t g = first; g >= last; --g) {
    int value = 0;
    for (std::int64_t w = g * 4 + 3; w >= g * 4; --w) value = value * 10 + digit(w);
    sink.put16(static_cast<std::uint16_t>(value));
  }
  return true;
}

bool put_numeric(ByteSink& sink, std::string_view text) {
  constexpr std::size_t short_digits = 15;
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > short_digits) return put_long_numeric(sink, text);
  std::int64_t mantissa = 0;
  std::size_t point = digits.size();
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] >= '0' && digits[i] <= '9') {
      mantissa = mantissa * 10 + (digits[i] - '0');
    } else if (digits[i] == '.' && point == digits.size()) {
      point = i;
    } else {
      return put_long_numeric(sink, text);
    }
  }
  const std::size_t scale = point == digits.size() ? 0 : digits.size() - point - 1;
  put_short_numeric(sink, mantissa, static_cast<int>(scale), negative);
  return true;
}

// ---- the other types ---------------------------------------------------------------------------

bool put_uuid(ByteSink& sink, std::string_view text) {
  if (text.size() != 36) return false;
  const auto nibble = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  sink.put32(16);
  char* out = sink.grow(16);
  for (std::size_t i = 0; i < 36; i += 2) {
    if (text[i] == '-') ++i;
    *out++ = static_cast<char>(nibble(text[i]) << 4 | nibble(text[i + 1]));
  }
  return true;
}

void put_bytes(ByteSink& sink, std::string_view bytes) {
  char* out = sink.grow(4 + bytes.size());
  const std::uint32_t size = __builtin_bswap32(static_cast<std::uint32_t>(bytes.size()));
  std::memcpy(out, &size, 4);
  std::memcpy(out + 4, bytes.data(), bytes.size());
}

void put_long(ByteSink& sink, std::int64_t i) {
  sink.put32(8);
  sink.put64(static_cast<std::uint64_t>(i));
}

bool put_integer(ByteSink& sink, PgWire wire, std::int64_t i) {
  switch (wire) {
    case PgWire::int16:
      sink.put32(2);
      sink.put16(static_cast<std::uint16_t>(i));
      return i == static_cast<std::int16_t>(i);
    case PgWire::int32:
      sink.put32(4);
      sink.put32(static_cast<std::uint32_t>(i));
      return i == static_cast<std::int32_t>(i);
    default: put_long(sink, i); return true;
  }
}

}  // namespace

void ByteSink::enlarge(std::size_t bytes) {
  capacity_ = std::max({size_ + bytes, capacity_ * 2, std::size_t{4096}});
  auto grown = std::make_unique_for_overwrite<char[]>(capacity_);
  std::memcpy(grown.get(), data_.get(), size_);
  data_ = std::move(grown);
}

bool put_cell(ByteSink& sink, PgWire wire, const Value& cell) {
  const Kind kind = cell.kind();
  if (cell.is_null()) {
    sink.put32(0xffff'ffff);
    return true;
  }
  switch (wire) {
    case PgWire::text:
    case PgWire::special:
    case PgWire::bytes:
      if (!cell.holds_text()) return false;
      put_bytes(sink, cell.text());
      return true;
    case PgWire::int64:
    case PgWire::int32:
    case PgWire::int16: return kind == Kind::int64 && put_integer(sink, wire, cell.i());
    case PgWire::numeric: return kind == Kind::decimal && put_numeric(sink, cell.text());
    case PgWire::timestamp:
      if (kind != Kind::timestamp && kind != Kind::timestamptz) return false;
      put_long(sink, cell.i() - micros_1970_to_2000);
      return true;
    case PgWire::date:
      return kind == Kind::date && put_integer(sink, PgWire::int32, cell.i() - days_1970_to_2000);
    case PgWire::uuid: return kind == Kind::uuid && put_uuid(sink, cell.text());
    case PgWire::boolean:
      if (kind != Kind::boolean) return false;
      sink.put32(1);
      *sink.grow(1) = cell.i() != 0 ? 1 : 0;
      return true;
    case PgWire::float64:
      if (kind != Kind::float64) return false;
      put_long(sink, std::bit_cast<std::int64_t>(cell.d()));
      return true;
    case PgWire::float32:
      if (kind != Kind::float64) return false;
      sink.put32(4);
      sink.put32(std::bit_cast<std::uint32_t>(static_cast<float>(cell.d())));
      return true;
    case PgWire::jsonb:
      if (!cell.holds_text()) return false;
      sink.put32(static_cast<std::uint32_t>(cell.text().size() + 1));
      *sink.grow(1) = 1;
      sink.append(cell.text());
      return true;
  }
  return false;
}

void put_copy_header(ByteSink& sink) {
  sink.append(std::string_view("PGCOPY\n\xff\r\n\0", 11));
  sink.put32(0);
  sink.put32(0);
}

void put_copy_trailer(ByteSink& sink) { sink.put16(0xffff); }

bool put_copy_row(ByteSink& sink, const std::vector<PgWire>& wires, const Value* cells,
                  std::size_t& at) {
  sink.put16(static_cast<std::uint16_t>(wires.size()));
  for (at = 0; at < wires.size(); ++at) {
    if (!put_cell(sink, wires[at], cells[at])) return false;
  }
  return true;
}

void put_array_header(ByteSink& sink, Oid element, std::size_t count) {
  sink.put32(1);  // dimensions
  sink.put32(1);  // may hold nulls
  sink.put32(element);
  sink.put32(static_cast<std::uint32_t>(count));
  sink.put32(1);  // lower bound
}

}  // namespace flow
