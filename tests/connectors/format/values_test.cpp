#include <charconv>
#include <doctest/doctest.h>
#include <map>
#include <optional>
#include <string>

#include "core/cast.h"
#include "core/value_rules.h"
#include "tests/connectors/format/decoded.h"

using namespace flow;
using flow::test::Decoded;
using flow::test::path;

namespace {

int number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

CastRule rule_of(const ValueRule& row) {
  CastRule rule;
  const std::size_t bracket = row.type.find('(');
  rule.column.type = *type_named(row.type.substr(0, bracket));
  if (bracket != std::string_view::npos) {
    const std::string_view limits = row.type.substr(bracket + 1);
    if (rule.column.type == Type::text) {
      rule.column.limits.length = static_cast<std::uint32_t>(number(limits));
    } else {
      rule.column.limits.precision = number(limits);
      rule.column.limits.scale = number(limits.substr(limits.find(',') + 1));
    }
  }
  static const std::map<std::string_view, TimeUnit> units{
      {"s", TimeUnit::s}, {"ms", TimeUnit::ms}, {"us", TimeUnit::us}, {"ns", TimeUnit::ns}};
  if (row.setting.substr(0, 6) == "unit: ") rule.unit = units.at(row.setting.substr(6));
  if (row.setting.substr(0, 6) == "zone: ") rule.zone = row.setting.substr(6);
  return rule;
}

std::string result_of(const ValueRule& row) {
  Decoded d(make_json_decoder(), {path({"v"})});
  const std::string record = row.input.empty() ? "{}" : "{\"v\":" + std::string(row.input) + "}";
  if (!d.read(record)) return d.failure.what;
  std::string reason;
  if (!Caster(rule_of(row)).cast(d.cells[0], d.batch.arena, reason)) {
    CHECK_FALSE(reason.empty());
    return std::string(value_refused);
  }
  if (d.cells[0].kind() == Kind::missing) return std::string(value_missing);
  std::string out;
  append_json(out, d.cells[0]);
  return out;
}

}  // namespace

TEST_CASE("every row of the table of values holds") {
  for (const ValueRule& row : value_rules()) {
    CAPTURE(row.input);
    CAPTURE(row.type);
    CAPTURE(row.setting);
    CHECK(result_of(row) == row.result);
  }
}

TEST_CASE("the zone of the process changes no value") {
  for (const char* zone : {"UTC", "Asia/Kolkata", "America/New_York"}) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    for (const ValueRule& row : value_rules()) {
      CAPTURE(zone);
      CAPTURE(row.input);
      CHECK(result_of(row) == row.result);
    }
  }
  ::unsetenv("TZ");
  ::tzset();
}
