#include "connectors/sqlite_types.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "core/cast_number.h"

namespace flow {
namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

struct Named {
  std::string_view name;
  Type type;
};

constexpr std::array<Named, 47> named_types{{
    {"INT", Type::int64},
    {"INTEGER", Type::int64},
    {"TINYINT", Type::int64},
    {"SMALLINT", Type::int64},
    {"MEDIUMINT", Type::int64},
    {"BIGINT", Type::int64},
    {"UNSIGNED BIG INT", Type::int64},
    {"INT2", Type::int64},
    {"INT4", Type::int64},
    {"INT8", Type::int64},
    {"INT16", Type::int64},
    {"INT32", Type::int64},
    {"INT64", Type::int64},
    {"REAL", Type::float64},
    {"DOUBLE", Type::float64},
    {"DOUBLE PRECISION", Type::float64},
    {"FLOAT", Type::float64},
    {"BOOLEAN", Type::boolean},
    {"BOOL", Type::boolean},
    {"DECIMAL", Type::decimal},
    {"DEC", Type::decimal},
    {"NUMERIC", Type::decimal},
    {"DECIMAL_TEXT", Type::decimal},
    {"TEXT", Type::text},
    {"CHAR", Type::text},
    {"CHARACTER", Type::text},
    {"VARCHAR", Type::text},
    {"VARYING CHARACTER", Type::text},
    {"CHARACTER VARYING", Type::text},
    {"NCHAR", Type::text},
    {"NATIVE CHARACTER", Type::text},
    {"NVARCHAR", Type::text},
    {"CLOB", Type::text},
    {"STRING", Type::text},
    {"TIME", Type::text},
    {"BLOB", Type::bytes},
    {"JSON", Type::json},
    {"JSONB", Type::json},
    {"JSON_TEXT", Type::json},
    {"UUID", Type::uuid},
    {"GUID", Type::uuid},
    {"DATE", Type::date},
    {"DATETIME", Type::timestamptz},
    {"TIMESTAMP", Type::timestamptz},
    {"TIMESTAMPTZ", Type::timestamptz},
    {"TIMESTAMP WITH TIME ZONE", Type::timestamptz},
    {"TIMESTAMP WITHOUT TIME ZONE", Type::timestamp},
}};

// "decimal(10, 2)" -> "DECIMAL" and the text in parentheses.
struct Declared {
  std::string name;
  std::string arguments;
};

Declared parts_of(std::string_view declared) {
  Declared parts{upper(declared), {}};
  const auto open = parts.name.find('(');
  if (open != std::string::npos) {
    const auto close = parts.name.find(')', open);
    parts.arguments = parts.name.substr(open + 1, close - open - 1);
    parts.name.erase(open, close == std::string::npos ? close : close - open + 1);
  }
  while (parts.name.ends_with(' ')) parts.name.pop_back();
  return parts;
}

Limits decimal_limits(const std::string& arguments) {
  Limits limits;
  if (arguments.empty()) return limits;
  limits.precision = std::atoi(arguments.c_str());
  const auto comma = arguments.find(',');
  if (comma != std::string::npos) limits.scale = std::atoi(arguments.c_str() + comma + 1);
  return limits;
}

}  // namespace

Affinity affinity_of(std::string_view declared) {
  const std::string name = upper(declared);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("INT")) return Affinity::integer;
  if (has("CHAR") || has("CLOB") || has("TEXT")) return Affinity::text;
  if (name.empty() || has("BLOB")) return Affinity::blob;
  if (has("REAL") || has("FLOA") || has("DOUB")) return Affinity::real;
  return Affinity::numeric;
}

Affinity affinity_in(std::string_view declared, Strictness strictness) {
  const bool any = strictness == Strictness::strict && upper(declared) == "ANY";
  return any ? Affinity::blob : affinity_of(declared);
}

Column column_declared(std::string name, std::string_view declared, Strictness strictness) {
  Column column;
  column.name = std::move(name);
  column.type_text = declared;
  const Declared parts = parts_of(declared);
  for (const Named& known : named_types) {
    if (known.name == parts.name) column.type = known.type;
  }
  if (column.type == Type::decimal) column.limits = decimal_limits(parts.arguments);
  if (affinity_in(declared, strictness) == Affinity::text && column.type == Type::any) {
    column.type = Type::text;
  }
  return column;
}

std::string declaration_for(Type type, const Limits& limits, Role role) {
  std::string digits;
  if (limits.precision > 0) {
    digits = "(" + std::to_string(limits.precision) + "," + std::to_string(limits.scale) + ")";
  }
  switch (type) {
    case Type::any: return "";
    case Type::boolean: return "BOOLEAN";
    case Type::int16:
    case Type::int32:
    case Type::int64: return "INTEGER";
    case Type::float32:
    case Type::float64: return "REAL";
    case Type::decimal: return (role == Role::key ? "NUMERIC" : "DECIMAL_TEXT") + digits;
    case Type::text: return "TEXT";
    case Type::json:
    case Type::jsonb: return "JSON_TEXT";
    case Type::bytes: return "BLOB";
    case Type::date: return "DATE";
    case Type::timestamp: return "TIMESTAMP WITHOUT TIME ZONE";
    case Type::timestamptz: return "TIMESTAMPTZ";
    case Type::uuid: return "UUID";
  }
  return "";
}

bool decimal_kept(std::string_view token) {
  constexpr std::size_t exact_digits_max = 15;
  constexpr std::int64_t exponent_max = 290;
  const auto number = parse_number(token);
  if (!number) return false;
  std::int64_t integer = 0;
  const bool whole = token.find_first_of(".eE") == std::string_view::npos;
  if (whole && to_int64(*number, 0, integer) == Exactness::exact) return true;
  std::string digits(number->whole);
  digits += number->fraction;
  const auto first = digits.find_first_not_of('0');
  if (first == std::string::npos) return true;
  const auto last = digits.find_last_not_of('0');
  const std::int64_t leading = static_cast<std::int64_t>(number->whole.size()) -
                               static_cast<std::int64_t>(first) + number->exponent;
  return last - first + 1 <= exact_digits_max && std::abs(leading) <= exponent_max;
}

bool text_kept(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  const auto skip_digits = [&] {
    std::size_t n = 0;
    while (n < text.size() && std::isdigit(static_cast<unsigned char>(text[n])) != 0) ++n;
    text.remove_prefix(n);
    return n;
  };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  std::size_t digits = skip_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits += skip_digits();
  }
  if (digits == 0) return true;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (skip_digits() == 0) return true;
  }
  return !text.empty();
}

}  // namespace flow
