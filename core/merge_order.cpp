#include "core/merge_order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

namespace flow {
namespace {

// ---- one whole-number key: sort of (key, row) pairs --------------------------------------------

struct Keyed {
  std::int64_t key;
  std::uint32_t row;
  bool operator<(const Keyed& other) const {
    return key != other.key ? key < other.key : row < other.row;
  }
};

bool holds_number(Kind kind) {
  switch (kind) {
    case Kind::boolean:
    case Kind::int64:
    case Kind::date:
    case Kind::timestamp:
    case Kind::timestamptz: return true;
    default: return false;
  }
}

bool order_by_number(RowSet& rows, std::size_t column) {
  std::vector<Keyed> keyed(rows.rows());
  bool ascending = true;
  for (std::uint32_t r = 0; r < keyed.size(); ++r) {
    const Value& cell = rows.row(r)[column];
    if (!holds_number(cell.kind())) return false;
    keyed[r] = {cell.i(), r};
    ascending = ascending && (r == 0 || keyed[r - 1].key < cell.i());
  }
  if (!ascending) std::sort(keyed.begin(), keyed.end());
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    if (i + 1 == keyed.size() || keyed[i + 1].key != keyed[i].key) {
      rows.order.push_back(keyed[i].row);
    }
  }
  return true;
}

// ---- any other key: one byte string a row, ordered and equal as the typed values are
// --------------

void put_number(std::string& out, std::uint64_t bits) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(bits >> shift));
}

void put_int(std::string& out, std::int64_t i) {
  put_number(out, static_cast<std::uint64_t>(i) ^ (std::uint64_t{1} << 63));
}

void put_float(std::string& out, double d) {
  const auto bits = std::bit_cast<std::uint64_t>(d == 0 ? 0.0 : d);
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  put_number(out, (bits & sign) != 0 ? ~bits : bits | sign);
}

// 00 ends a text, so 00 inside it becomes 00 ff.
void put_text(std::string& out, std::string_view text) {
  for (std::size_t at; (at = text.find('\0')) != std::string_view::npos;) {
    out.append(text.substr(0, at + 1)).push_back('\xff');
    text.remove_prefix(at + 1);
  }
  out.append(text).append(2, '\0');
}

// A number token as sign, exponent and significant digits. Negative numbers have all of it
// inverted.
void put_decimal(std::string& out, std::string_view token) {
  const bool negative = token.starts_with('-');
  if (negative || token.starts_with('+')) token.remove_prefix(1);
  std::int64_t exponent = 0;
  if (const auto e = token.find_first_of("eE"); e != std::string_view::npos) {
    const bool down = token.substr(e + 1).starts_with('-');
    for (const char c : token.substr(e + 1)) {
      if (c >= '0' && c <= '9')
        exponent = std::min<std::int64_t>(exponent * 10 + (c - '0'), 1 << 30);
    }
    if (down) exponent = -exponent;
    token = token.substr(0, e);
  }
  const std::size_t point = std::min(token.find('.'), token.size());
  const std::size_t first = token.find_first_of("123456789");
  if (first == std::string_view::npos) {
    out.push_back('\x01');
    return;
  }
  const std::size_t last = token.find_last_of("123456789");
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) -
                     (first > point ? -1 : 0);
  const std::size_t start = out.size() + 1;
  out.push_back(negative ? '\x00' : '\x02');
  put_int(out, exponent + place);
  for (const char c : token.substr(first, last - first + 1)) {
    if (c != '.') out.push_back(c);
  }
  out.push_back('\0');
  if (negative) {
    std::transform(out.begin() + static_cast<std::ptrdiff_t>(start), out.end(),
                   out.begin() + static_cast<std::ptrdiff_t>(start),
                   [](char c) { return static_cast<char>(~c); });
  }
}

bool pads_with_spaces(const Column& column) {
  return column.type_text.starts_with("character(") || column.type_text.starts_with("char(");
}

void put_cell(std::string& out, const Value& cell, const Column& column) {
  if (cell.is_null()) {
    out.push_back('\x00');
    return;
  }
  out.push_back('\x01');
  if (cell.kind() == Kind::float64) return put_float(out, cell.d());
  if (cell.kind() == Kind::decimal) return put_decimal(out, cell.text());
  if (!cell.holds_text()) return put_int(out, cell.i());
  std::string_view text = cell.text();
  while (pads_with_spaces(column) && text.ends_with(' ')) text.remove_suffix(1);
  put_text(out, text);
}

struct Spelled {
  std::string_view key;
  std::uint32_t row;
  bool operator<(const Spelled& other) const {
    const int c = key.compare(other.key);
    return c != 0 ? c < 0 : row < other.row;
  }
};

void order_by_spelling(RowSet& rows, const Columns& columns,
                       const std::vector<std::size_t>& key_columns) {
  std::string keys;
  std::vector<std::size_t> ends;
  ends.reserve(rows.rows());
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    for (const std::size_t k : key_columns) put_cell(keys, rows.row(r)[k], columns[k]);
    ends.push_back(keys.size());
  }
  std::vector<Spelled> spelled(rows.rows());
  for (std::uint32_t r = 0; r < spelled.size(); ++r) {
    const std::size_t from = r == 0 ? 0 : ends[r - 1];
    spelled[r] = {std::string_view(keys).substr(from, ends[r] - from), r};
  }
  std::sort(spelled.begin(), spelled.end());
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    if (i + 1 == spelled.size() || spelled[i + 1].key != spelled[i].key) {
      rows.order.push_back(spelled[i].row);
    }
  }
}

}  // namespace

void order_rows(RowSet& rows, const Columns& columns, const std::vector<std::size_t>& key_columns) {
  rows.order.clear();
  rows.order.reserve(rows.rows());
  if (key_columns.empty()) {
    rows.order.resize(rows.rows());
    std::iota(rows.order.begin(), rows.order.end(), 0U);
  } else if (key_columns.size() > 1 || !order_by_number(rows, key_columns.front())) {
    order_by_spelling(rows, columns, key_columns);
  }
  if (rows.done.empty()) return;
  std::erase_if(rows.order, [&](std::uint32_t r) { return rows.done[r] != 0; });
}

}  // namespace flow
