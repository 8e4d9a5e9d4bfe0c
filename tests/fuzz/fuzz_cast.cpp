// A cast takes or refuses any text, bytes or number; what it took, cast again, stays what it is.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/cast.h"
#include "core/cast_number.h"
#include "core/cast_text.h"
#include "core/cast_zone.h"
#include "core/row_json.h"

namespace {

using namespace flow;

void check(bool holds) {
  if (!holds) std::abort();
}

std::vector<Caster> casters() {
  std::vector<Caster> all;
  for (const Type type :
       {Type::any, Type::boolean, Type::int16, Type::int32, Type::int64, Type::float32,
        Type::float64, Type::decimal, Type::text, Type::json, Type::bytes, Type::date,
        Type::timestamp, Type::timestamptz, Type::uuid}) {
    CastRule rule;
    rule.column.type = type;
    all.emplace_back(rule);
    rule.zone = "America/New_York";
    rule.unit = TimeUnit::ns;
    rule.column.limits = {.precision = 10, .scale = 2, .length = 8, .refuses_nul = true};
    all.emplace_back(rule);
  }
  return all;
}

std::string content(const Value& value) {
  std::string out(name_of(value.kind()));
  append_text(out, value);
  return out;
}

void cast_twice(const Caster& caster, Value cell) {
  static Arena arena;
  arena.clear();
  std::string reason;
  if (!caster.cast(cell, arena, reason)) {
    check(!reason.empty() && valid_utf8(reason));
    return;
  }
  Value again = cell;
  check(caster.cast(again, arena, reason));
  check(content(again) == content(cell));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Caster> all = casters();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool text = valid_utf8(bytes);
  std::int64_t number = 0;
  if (size > 0) std::memcpy(&number, data, std::min(size, sizeof number));
  for (const Caster& caster : all) {
    cast_twice(caster, Value::text(bytes, Kind::bytes));
    cast_twice(caster, Value::int64(number));
    if (!text) continue;
    cast_twice(caster, Value::text(bytes));
    if (parse_number(bytes)) cast_twice(caster, Value::text(bytes, Kind::decimal));
  }
  static_cast<void>(parse_zone_rule(bytes));
  return 0;
}
