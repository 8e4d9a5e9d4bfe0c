#include "cli/column_type.h"

#include <charconv>
#include <string>
#include <vector>

#include "core/suggest.h"

namespace flow {
namespace {

constexpr int precision_max = 1000;

Failure wrong(std::string what, std::string hint) {
  return {FailureClass::setup, Effect::none, "", "", std::move(what), std::move(hint), {}};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "10, 2" -> 10, 2. Empty: not such a list.
std::vector<int> numbers_of(std::string_view text) {
  std::vector<int> out;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = trimmed(text.substr(0, comma));
    int number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc{} || end != part.data() + part.size() || number < 0) return {};
    out.push_back(number);
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<ColumnType> parse_column_type(std::string_view text) {
  const std::string whole = "\"" + std::string(text) + "\"";
  const std::size_t open = text.find('(');
  const std::string_view name = trimmed(text.substr(0, open));
  const auto type = type_named(name);
  if (!type) {
    static const std::vector<std::string_view> names{
        "text",  "varchar",          "boolean",     "smallint", "integer", "bigint",
        "real",  "double precision", "numeric",     "json",     "jsonb",   "bytea",
        "date",  "timestamp",        "timestamptz", "uuid",     "int16",   "int32",
        "int64", "float32",          "float64",     "decimal",  "bytes"};
    const std::string near = nearest_name(name, names);
    return wrong(whole + " is not a type",
                 near.empty()
                     ? "write one such as text, bigint, numeric(10,2), boolean or timestamptz"
                     : "did you mean \"" + near + "\"?");
  }
  ColumnType out{*type, {}};
  if (open == std::string_view::npos) return out;
  const std::size_t close = text.find(')', open);
  const auto numbers = close == text.size() - 1
                           ? numbers_of(text.substr(open + 1, close - open - 1))
                           : std::vector<int>{};
  if (out.type == Type::decimal && (numbers.size() == 1 || numbers.size() == 2)) {
    out.limits.precision = numbers[0];
    out.limits.scale = numbers.size() == 2 ? numbers[1] : 0;
    if (numbers[0] >= 1 && numbers[0] <= precision_max && out.limits.scale <= numbers[0])
      return out;
    return wrong(whole + " has an impossible precision or scale",
                 "write numeric(digits in all, digits after the point)");
  }
  if (out.type == Type::text && numbers.size() == 1 && numbers[0] >= 1) {
    out.limits.length = static_cast<std::uint32_t>(numbers[0]);
    return out;
  }
  return wrong(whole + " has a length that its type does not take",
               "write numeric(10,2) or varchar(20)");
}

}  // namespace flow
