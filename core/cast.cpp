#include "core/cast.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/cast_number.h"
#include "core/cast_text.h"
#include "core/cast_time.h"
#include "core/cast_zone.h"
#include "core/row_json.h"

namespace flow {

namespace {

bool refuse(std::string& reason, const Value& cell, std::string_view why) {
  reason = described(cell);
  reason += ' ';
  reason += why;
  return false;
}

// Empty text to write in before it goes to the arena; keeps its memory.
std::string& scratch() {
  static thread_local std::string text;
  text.clear();
  return text;
}

bool is_number(Kind kind) {
  return kind == Kind::int64 || kind == Kind::decimal || kind == Kind::float64;
}

// The digits of a number, or of text that may be one.
std::string_view digits_of(const Value& cell, Arena& arena) {
  if (cell.kind() == Kind::int64) return int64_text(cell.i(), arena);
  if (cell.kind() == Kind::float64) return float64_text(cell.d(), arena);
  return cell.text();
}

bool holds_digits(Kind kind) { return is_number(kind) || kind == Kind::text; }

struct Range {
  std::int64_t least;
  std::int64_t most;
};

template <class Int>
constexpr Range range_of() {
  return {std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()};
}

Range integer_range(Type type) {
  if (type == Type::int16) return range_of<std::int16_t>();
  return type == Type::int32 ? range_of<std::int32_t>() : range_of<std::int64_t>();
}

// A double that is an integer below 2^63.
Exactness integer_of(double d, std::int64_t& out) {
  if (!std::isfinite(d) || d < -0x1p63 || d >= 0x1p63) return Exactness::out_of_range;
  out = static_cast<std::int64_t>(d);
  return static_cast<double>(out) == d ? Exactness::exact : Exactness::has_fraction;
}

}  // namespace

Caster::Caster(CastRule rule) : rule_(std::move(rule)) {
  if (!rule_.zone.empty()) zone_ = Zone::named(rule_.zone);
}

std::string Caster::type_text() const {
  const Column& column = rule_.column;
  return column.type_text.empty() ? std::string(name_of(column.type)) : column.type_text;
}

bool Caster::cast(Value& cell, Arena& arena, std::string& reason) const {
  if (cell.is_null()) return true;
  const Type type = rule_.column.type;
  if (cell.kind() == Kind::bytes && type != Type::bytes && type != Type::any) {
    if (!valid_utf8(cell.text())) return refuse(reason, cell, "are not UTF-8 text");
    cell = Value::text(cell.text());
  }
  switch (type) {
    case Type::any: return true;
    case Type::boolean:
      if (cell.kind() == Kind::boolean) return true;
      if (cell.kind() == Kind::text && (cell.text() == "true" || cell.text() == "false")) {
        cell = Value::boolean(cell.text() == "true");
        return true;
      }
      return refuse(reason, cell, "is not a boolean (true or false)");
    case Type::int16:
    case Type::int32:
    case Type::int64: return cast_integer(cell, reason);
    case Type::float32:
    case Type::float64: return cast_float(cell, arena, reason);
    case Type::decimal: return cast_decimal(cell, arena, reason);
    case Type::text: return cast_text(cell, arena, reason);
    case Type::json:
    case Type::jsonb: return cast_json(cell, arena, reason);
    case Type::bytes:
      if (cell.kind() == Kind::text) cell = Value::text(cell.text(), Kind::bytes);
      if (cell.kind() == Kind::bytes) return true;
      return refuse(reason, cell, "is neither bytes nor text");
    case Type::date: return cast_date(cell, reason);
    case Type::timestamp:
    case Type::timestamptz: return cast_time(cell, reason);
    case Type::uuid: return cast_uuid(cell, arena, reason);
  }
  return refuse(reason, cell, "has no rule");
}

bool Caster::cast_integer(Value& cell, std::string& reason) const {
  const Type type = rule_.column.type;
  std::int64_t value = 0;
  Exactness exactness = Exactness::exact;
  if (cell.kind() == Kind::int64) [[likely]] {
    if (type == Type::int64) return true;
    value = cell.i();
  } else if (cell.kind() == Kind::float64) {
    exactness = integer_of(cell.d(), value);
  } else if (cell.kind() == Kind::decimal || cell.kind() == Kind::text) {
    const auto number = parse_number(cell.text());
    if (!number) return refuse(reason, cell, "is not a number");
    exactness = to_int64(*number, 0, value);
  } else {
    return refuse(reason, cell, "is not a number");
  }
  if (exactness == Exactness::has_fraction) return refuse(reason, cell, "is not an integer");
  const Range range = integer_range(type);
  if (exactness == Exactness::out_of_range || value < range.least || value > range.most) {
    return refuse(reason, cell,
                  "does not fit " + type_text() + " (" + std::to_string(range.least) + " to " +
                      std::to_string(range.most) + ")");
  }
  cell = Value::int64(value);
  return true;
}

bool Caster::cast_float(Value& cell, Arena& arena, std::string& reason) const {
  if (!holds_digits(cell.kind())) return refuse(reason, cell, "is not a number");
  const bool single = rule_.column.type == Type::float32;
  if (!single && cell.kind() == Kind::float64) return true;
  if (!single && cell.kind() == Kind::int64) {
    cell = Value::float64(static_cast<double>(cell.i()));
    return true;
  }
  const std::string_view text = digits_of(cell, arena);
  const auto number = parse_number(text);
  if (!number) return refuse(reason, cell, "is not a number");
  std::optional<double> value;
  if (single) {
    value = nearest_float32(*number, text);
  } else {
    value = nearest_float64(*number, text);
  }
  if (!value) return refuse(reason, cell, "is too large for " + type_text());
  cell = Value::float64(*value);
  return true;
}

bool Caster::cast_decimal(Value& cell, Arena& arena, std::string& reason) const {
  if (!holds_digits(cell.kind())) return refuse(reason, cell, "is not a number");
  const std::string_view text = digits_of(cell, arena);
  const auto number = parse_number(text);
  if (!number) return refuse(reason, cell, "is not a number");
  const Limits& limits = rule_.column.limits;
  std::string_view plain;
  switch (plain_decimal(*number, text, limits, arena, plain)) {
    case DecimalFault::none: break;
    case DecimalFault::scale:
      return refuse(reason, cell,
                    "has more than " + std::to_string(limits.scale) +
                        " digits after the point, the most that " + type_text() + " holds");
    case DecimalFault::precision:
      return refuse(reason, cell, "has too many digits for " + type_text());
    case DecimalFault::digits:
      return refuse(reason, cell,
                    "has more than " + std::to_string(decimal_digits_max) + " digits");
  }
  cell = Value::text(plain, Kind::decimal);
  return true;
}

bool Caster::cast_text(Value& cell, Arena& arena, std::string& reason) const {
  if (cell.kind() == Kind::int64) {
    cell = Value::text(int64_text(cell.i(), arena));
  } else if (cell.holds_text()) {
    if (cell.kind() != Kind::text) cell = Value::text(cell.text());
  } else {
    std::string& written = scratch();
    append_text(written, cell);
    cell = Value::text(arena.copy(written));
  }
  const std::string_view text = cell.text();
  const Limits& limits = rule_.column.limits;
  if (limits.length > 0 && text.size() > limits.length && utf8_characters(text) > limits.length) {
    return refuse(
        reason, cell,
        "is longer than the " + std::to_string(limits.length) + " characters of " + type_text());
  }
  if (limits.refuses_nul && text.find('\0') != std::string_view::npos) {
    return refuse(reason, cell, "holds U+0000, which this target cannot store in text");
  }
  return true;
}

bool Caster::cast_json(Value& cell, Arena& arena, std::string& reason) const {
  const bool refuses_nul = rule_.column.limits.refuses_nul;
  if (cell.kind() != Kind::json) {
    if (cell.kind() == Kind::float64 && !std::isfinite(cell.d())) {
      return refuse(reason, cell, "is not a JSON number");
    }
    std::string& json = scratch();
    append_json(json, cell);
    if (refuses_nul && json_holds_nul(json)) {
      return refuse(reason, cell, "holds U+0000, which this target cannot store in JSON");
    }
    cell = Value::text(arena.copy(json), Kind::json);
    return true;
  }
  if (refuses_nul && json_holds_nul(cell.text())) {
    return refuse(reason, cell, "holds U+0000, which this target cannot store in JSON");
  }
  return true;
}

bool Caster::cast_uuid(Value& cell, Arena& arena, std::string& reason) const {
  if (cell.kind() == Kind::uuid) return true;
  static constexpr const char* not_a_uuid = "is not a UUID of 36 characters";
  if (cell.kind() != Kind::text || cell.text().size() != 36) {
    return refuse(reason, cell, not_a_uuid);
  }
  const std::string_view text = cell.text();
  bool upper = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool big = c >= 'A' && c <= 'F';
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || big;
    if (dash ? c != '-' : !hex) return refuse(reason, cell, not_a_uuid);
    upper = upper || big;
  }
  if (!upper) {
    cell = Value::text(text, Kind::uuid);
    return true;
  }
  char* const lower = arena.allocate(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    lower[i] =
        text[i] >= 'A' && text[i] <= 'F' ? static_cast<char>(text[i] + ('a' - 'A')) : text[i];
  }
  cell = Value::text({lower, text.size()}, Kind::uuid);
  return true;
}

bool Caster::cast_date(Value& cell, std::string& reason) const {
  if (cell.kind() == Kind::date) return true;
  if (cell.kind() != Kind::text) {
    return refuse(reason, cell, "is not a date (text of the form 2024-12-31)");
  }
  std::int64_t days = 0;
  if (const char* fault = parse_date(cell.text(), days)) return refuse(reason, cell, fault);
  cell = Value::number(Kind::date, days);
  return true;
}

bool Caster::cast_time(Value& cell, std::string& reason) const {
  const bool wants_instant = rule_.column.type == Type::timestamptz;
  switch (cell.kind()) {
    case Kind::timestamptz: return wants_instant || place(cell, cell.i(), true, reason);
    case Kind::timestamp: return !wants_instant || place(cell, cell.i(), false, reason);
    case Kind::int64: {
      char digits[24];
      const auto end = std::to_chars(digits, digits + sizeof digits, cell.i()).ptr;
      return cast_epoch(cell, {digits, static_cast<std::size_t>(end - digits)}, reason);
    }
    case Kind::float64: {
      char digits[40];
      const auto end = std::to_chars(digits, digits + sizeof digits, cell.d()).ptr;
      return cast_epoch(cell, {digits, static_cast<std::size_t>(end - digits)}, reason);
    }
    case Kind::decimal: return cast_epoch(cell, cell.text(), reason);
    case Kind::text:
      if (rule_.unit != TimeUnit::none && parse_number(cell.text())) {
        return cast_epoch(cell, cell.text(), reason);
      }
      return cast_written_time(cell, reason);
    default: return refuse(reason, cell, "is not a time");
  }
}

bool Caster::cast_epoch(Value& cell, std::string_view text, std::string& reason) const {
  int power = 0;
  switch (rule_.unit) {
    case TimeUnit::none:
      return refuse(reason, cell, "has no unit: say `unit: s`, `ms`, `us` or `ns` for this column");
    case TimeUnit::s: power = 6; break;
    case TimeUnit::ms: power = 3; break;
    case TimeUnit::us: power = 0; break;
    case TimeUnit::ns: power = -3; break;
  }
  const auto number = parse_number(text);
  if (!number) return refuse(reason, cell, "is not a number");
  std::int64_t us = 0;
  const Exactness exactness = to_int64(*number, power, us);
  if (exactness == Exactness::has_fraction) {
    return refuse(reason, cell, "is finer than a microsecond");
  }
  if (exactness == Exactness::out_of_range || us < timestamp_min_us || us > timestamp_max_us) {
    return refuse(reason, cell, "is outside the years 1 to 9999");
  }
  return place(cell, us, true, reason);
}

bool Caster::cast_written_time(Value& cell, std::string& reason) const {
  WrittenTime time;
  if (const char* fault = parse_time(cell.text(), time)) return refuse(reason, cell, fault);
  const std::int64_t us = time.local_us - time.offset_s * second_us;
  return place(cell, us, time.has_offset, reason);
}

// Puts an instant, or a wall clock, into the column: the rule's zone stands between the two.
bool Caster::place(Value& cell, std::int64_t us, bool is_instant, std::string& reason) const {
  const bool wants_instant = rule_.column.type == Type::timestamptz;
  if (is_instant != wants_instant) {
    if (rule_.zone.empty()) {
      return refuse(reason, cell,
                    is_instant ? "is an instant, and " + type_text() +
                                     " is a wall clock: say whose by `zone:` for this column"
                               : "has no zone: say which by `zone:` for this column");
    }
    if (!zone_)
      return refuse(reason, cell, "needs the zone " + shown(rule_.zone) + ", which is unknown");
    std::int64_t seconds = us / second_us;
    std::int64_t rest = us % second_us;
    if (rest < 0) {
      rest += second_us;
      --seconds;
    }
    if (is_instant) {
      us += zone_->offset_at(seconds) * second_us;
    } else {
      const auto instant = zone_->instant_of(seconds);
      if (!instant) {
        return refuse(reason, cell, "does not exist in " + rule_.zone + ": clocks skip it");
      }
      us = *instant * second_us + rest;
    }
  }
  if (us < timestamp_min_us || us > timestamp_max_us) {
    return refuse(reason, cell, "is outside the years 1 to 9999");
  }
  cell = Value::number(wants_instant ? Kind::timestamptz : Kind::timestamp, us);
  return true;
}

}  // namespace flow
