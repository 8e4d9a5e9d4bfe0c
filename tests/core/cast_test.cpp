#include "core/cast.h"

#include <doctest/doctest.h>
#include <string>
#include <thread>
#include <vector>

#include "core/cast_number.h"
#include "core/cast_text.h"
#include "core/cast_time.h"
#include "core/cast_zone.h"
#include "core/row_json.h"

using namespace flow;

namespace {

CastRule rule(Type type, Limits limits = {}) {
  CastRule r;
  r.column.name = "c";
  r.column.type = type;
  r.column.limits = limits;
  return r;
}

CastRule in_zone(Type type, const std::string& zone) {
  CastRule r = rule(type);
  r.zone = zone;
  return r;
}

// The cell after the cast: "kind content"; or "refused: " and the reason.
std::string cast(const CastRule& r, Value cell) {
  Arena arena;
  std::string reason;
  if (!Caster(r).cast(cell, arena, reason)) return "refused: " + reason;
  std::string out{name_of(cell.kind())};
  if (cell.is_null()) return out;
  out += ' ';
  append_text(out, cell);
  return out;
}

Value text(std::string_view s) { return Value::text(s); }
Value decimal(std::string_view s) { return Value::text(s, Kind::decimal); }
Value json(std::string_view s) { return Value::text(s, Kind::json); }

Limits nul_refused() {
  Limits limits;
  limits.refuses_nul = true;
  return limits;
}

std::int64_t hours(int h) { return h * 3600; }

std::int64_t seconds_of(const std::string& rfc3339) {
  WrittenTime time;
  REQUIRE(parse_time(rfc3339, time) == nullptr);
  return time.local_us / second_us - time.offset_s;
}

}  // namespace

TEST_CASE("null and missing pass every cast as they are") {
  for (const Type type :
       {Type::any, Type::boolean, Type::int64, Type::float64, Type::decimal, Type::text,
        Type::jsonb, Type::bytes, Type::date, Type::timestamp, Type::timestamptz, Type::uuid}) {
    CHECK(cast(rule(type), Value::null()) == "null");
    CHECK(cast(rule(type), Value()) == "missing");
  }
}

TEST_CASE("a column of any type keeps the natural value") {
  CHECK(cast(rule(Type::any), decimal("1E+2")) == "decimal 1E+2");
  CHECK(cast(rule(Type::any), json("[1]")) == "json [1]");
  CHECK(cast(rule(Type::any), Value::boolean(false)) == "boolean false");
}

TEST_CASE("a refusal names the value, its kind and what is wrong, and cuts the value short") {
  CHECK(cast(rule(Type::int64), text("abc")) == "refused: text \"abc\" is not a number");
  CHECK(cast(rule(Type::int64), decimal("1.5")) == "refused: number 1.5 is not an integer");
  CHECK(cast(rule(Type::int16), Value::int64(40000)) ==
        "refused: number 40000 does not fit int16 (-32768 to 32767)");
  CHECK(cast(rule(Type::boolean), json("{\"a\": 1}")) ==
        "refused: JSON \"{\\\"a\\\": 1}\" is not a boolean (true or false)");
  const std::string reason = cast(rule(Type::int64), text(std::string(5000, 'x')));
  CHECK(reason == "refused: text \"" + std::string(40, 'x') + "...\" is not a number");
  CastRule named = rule(Type::decimal);
  named.column.limits.precision = 10;
  named.column.limits.scale = 2;
  named.column.type_text = "numeric(10,2)";
  CHECK(cast(named, decimal("1.005")) ==
        "refused: number 1.005 has more than 2 digits after the point, the most that numeric(10,2) "
        "holds");
}

TEST_CASE("integers are exact up to both ends of their type") {
  CHECK(cast(rule(Type::int64), decimal("9223372036854775807.000")) == "int64 9223372036854775807");
  CHECK(cast(rule(Type::int64), text("-9223372036854775808")) == "int64 -9223372036854775808");
  CHECK(cast(rule(Type::int64), decimal("-922337203685477580.8e1")) ==
        "int64 -9223372036854775808");
  CHECK(cast(rule(Type::int64), decimal("92233720368547758080e-1")).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::int32), Value::int64(-2147483648)) == "int64 -2147483648");
  CHECK(cast(rule(Type::int64), decimal("0e999999999999")) == "int64 0");
  CHECK(cast(rule(Type::int64), decimal("1e-999999999999")).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::int64), Value::float64(3.0)) == "int64 3");
  CHECK(cast(rule(Type::int64), Value::float64(3.5)).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::int64), Value::float64(0x1p63)).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::int64), Value::float64(-0x1p63)) == "int64 -9223372036854775808");
}

TEST_CASE("decimals have the digits of the number and no others") {
  const auto as = [](std::string_view token) { return cast(rule(Type::decimal), decimal(token)); };
  CHECK(as("1.10") == "decimal 1.10");
  CHECK(as("-0") == "decimal 0");
  CHECK(as("-0.00") == "decimal 0.00");
  CHECK(as("0e7") == "decimal 0");
  CHECK(as("12.5e1") == "decimal 125");
  CHECK(as("12.50e1") == "decimal 125.0");
  CHECK(as("12.5e-4") == "decimal 0.00125");
  CHECK(as("1e-3") == "decimal 0.001");
  CHECK(as("-1.5E3") == "decimal -1500");
  CHECK(as("1e999") == "decimal 1" + std::string(999, '0'));
  CHECK(as("1e1000").substr(0, 7) == "refused");
  CHECK(as("1e-1000").substr(0, 7) == "refused");
  CHECK(as("1e2147483648").substr(0, 7) == "refused");
  CHECK(cast(rule(Type::decimal), Value::int64(-42)) == "decimal -42");
  CHECK(cast(rule(Type::decimal), Value::float64(0.1)) == "decimal 0.1");
  CHECK(cast(rule(Type::decimal), Value::float64(1e21)) == "decimal 1000000000000000000000");
}

TEST_CASE("a decimal token that needs no change is not copied") {
  Arena arena;
  std::string reason;
  const std::string token = "123.45";
  Value cell = decimal(token);
  REQUIRE(Caster(rule(Type::decimal)).cast(cell, arena, reason));
  CHECK(cell.text().data() == token.data());
}

TEST_CASE("precision and scale hold for the value, not for its spelling") {
  const Limits limits{.precision = 4, .scale = 2};
  const auto as = [&](std::string_view token) {
    return cast(rule(Type::decimal, limits), decimal(token));
  };
  CHECK(as("99.99") == "decimal 99.99");
  CHECK(as("100") == "refused: number 100 has too many digits for decimal");
  CHECK(as("0.99990e2") == "decimal 99.99");
  CHECK(as("0099.9000") == "decimal 99.90");
  CHECK(as("0.001").substr(0, 7) == "refused");
  CHECK(as("0.000") == "decimal 0.00");
  const Limits tiny{.precision = 2, .scale = 4};
  CHECK(cast(rule(Type::decimal, tiny), decimal("0.0099")) == "decimal 0.0099");
  CHECK(cast(rule(Type::decimal, tiny), decimal("0.0100")).substr(0, 7) == "refused");
}

TEST_CASE("text that is nearly a number is none") {
  for (const std::string_view almost :
       {"", " 1", "1 ", "1,5", ".5", "5.", "1e", "1e+", "--1", "+-1", "0x1F", "1_000", "NaN",
        "Infinity", "inf", "1.2.3", "\xD9\xA1"}) {
    CAPTURE(almost);
    CHECK(cast(rule(Type::decimal), text(almost)).substr(0, 7) == "refused");
    CHECK(cast(rule(Type::float64), text(almost)).substr(0, 7) == "refused");
    CHECK(cast(rule(Type::int64), text(almost)).substr(0, 7) == "refused");
  }
}

TEST_CASE("floats are the nearest, and too large is refused") {
  CHECK(cast(rule(Type::float64), text("+1.5")) == "float64 1.5");
  CHECK(cast(rule(Type::float64), decimal("1.7976931348623157e308")) ==
        "float64 1.7976931348623157e+308");
  CHECK(cast(rule(Type::float64), decimal("1e309")).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::float64), decimal("-1e-999")) == "float64 -0");
  CHECK(cast(rule(Type::float32), decimal("0.1")) == "float64 0.10000000149011612");
  CHECK(cast(rule(Type::float32), Value::int64(16777217)) == "float64 16777216");
  CHECK(cast(rule(Type::float32), Value::float64(1e39)).substr(0, 7) == "refused");
}

TEST_CASE("U+0000 is refused where the target cannot hold it, and only there") {
  const std::string nul("a\0b", 3);
  CHECK(cast(rule(Type::text), text(nul)) == "text " + nul);
  CHECK(cast(rule(Type::text, nul_refused()), text(nul)).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::jsonb, nul_refused()), text(nul)).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::jsonb), json(R"({"s":"a\u0000b"})")) == R"(json {"s":"a\u0000b"})");
  const auto refused = [](std::string_view j) {
    return cast(rule(Type::jsonb, nul_refused()), json(j)).substr(0, 7) == "refused";
  };
  CHECK(refused(R"({"s":"a\u0000b"})"));
  CHECK(refused(R"({"a\u0000":1})"));
  CHECK(refused(R"(["\\\u0000"])"));
  CHECK_FALSE(refused(R"(["\\u0000"])"));
  CHECK_FALSE(refused(R"(["u0000","\u0001"])"));
  CHECK(cast(rule(Type::text, nul_refused()), json(R"(["\u0000"])")) == R"(text ["\u0000"])");
}

TEST_CASE("bytes that are text pass for text, others are refused") {
  const Value latin1 = Value::text("caf\xE9", Kind::bytes);
  CHECK(cast(rule(Type::text), latin1) == "refused: 4 bytes are not UTF-8 text");
  CHECK(cast(rule(Type::text), Value::text("caf\xC3\xA9", Kind::bytes)) == "text caf\xC3\xA9");
  CHECK(cast(rule(Type::int64), Value::text("42", Kind::bytes)) == "int64 42");
  CHECK(cast(rule(Type::bytes), latin1) == "bytes Y2Fm6Q==");
}

TEST_CASE("values become JSON without losing a digit") {
  CHECK(cast(rule(Type::jsonb), decimal("1.10")) == "json 1.10");
  CHECK(cast(rule(Type::jsonb), Value::int64(INT64_MIN)) == "json -9223372036854775808");
  CHECK(cast(rule(Type::json), text("a\"b")) == "json \"a\\\"b\"");
  CHECK(cast(rule(Type::json), Value::boolean(true)) == "json true");
  CHECK(cast(rule(Type::json), Value::float64(1.0 / 0.0)).substr(0, 7) == "refused");
}

TEST_CASE("valid UTF-8 is told from every ill-formed kind") {
  for (const std::string_view good :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "long ascii then \xC3\xA9 and more ascii"}) {
    CHECK(valid_utf8(good));
  }
  for (const std::string_view bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xE1\x80",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xFF", "0123456\xC3", "01234567\xC3", "01234567890\xE2\x82"}) {
    CAPTURE(bad);
    CHECK_FALSE(valid_utf8(bad));
  }
  CHECK(utf8_characters("a\xC3\xA9\xF0\x9F\x98\x80") == 3);
}

TEST_CASE("written times are read to the microsecond or refused") {
  WrittenTime t;
  REQUIRE(parse_time("1970-01-01T00:00:00Z", t) == nullptr);
  CHECK(t.local_us == 0);
  CHECK(t.has_offset);
  REQUIRE(parse_time("1969-12-31 23:59:59.999999-00:30", t) == nullptr);
  CHECK(t.local_us == -1);
  CHECK(t.offset_s == -1800);
  REQUIRE(parse_time("2024-02-29t12:00:00.5z", t) == nullptr);
  CHECK(t.local_us == (19782LL * 86400 + 43200) * second_us + 500000);
  REQUIRE(parse_time("2024-02-29T12:00:00", t) == nullptr);
  CHECK_FALSE(t.has_offset);
  REQUIRE(parse_time("2024-02-29 12:00:00+00", t) == nullptr);
  CHECK(t.has_offset);
  for (const std::string bad : {"",
                                "2024-02-29",
                                "2024-02-29T12:00",
                                "2024-02-29T24:00:00Z",
                                "2024-02-29T12:60:00Z",
                                "2023-02-29T12:00:00Z",
                                "2024-13-01T00:00:00Z",
                                "2024-00-01T00:00:00Z",
                                "2024-01-00T00:00:00Z",
                                "0000-01-01T00:00:00Z",
                                "2024-1-01T00:00:00Z",
                                "2024-02-29T12:00:00.Z",
                                "2024-02-29T12:00:00.1234567Z",
                                "2024-02-29T12:00:00+24:00",
                                "2024-02-29T12:00:00+05:60",
                                "2024-02-29T12:00:00+5:30",
                                "2024-02-29T12:00:00 Z",
                                "2024-02-29T12:00:00Zx",
                                "2016-12-31T23:59:60Z",
                                "2024-02-29T12:00:61Z",
                                "2024/02/29T12:00:00Z",
                                "2024-02-29_12:00:00Z",
                                "-024-02-29T12:00:00Z",
                                "2024-02-29T1a:00:00Z"}) {
    CAPTURE(bad);
    CHECK(parse_time(bad, t) != nullptr);
  }
}

TEST_CASE("a time out of the years 1 to 9999 is refused after its zone is applied, too") {
  CHECK(cast(rule(Type::timestamptz), text("0001-01-01T00:00:00+01:00")).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::timestamptz), text("9999-12-31T23:59:59-01:00")).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::timestamptz), text("9999-12-31T23:59:59.999999Z")) ==
        "timestamptz 9999-12-31T23:59:59.999999Z");
  CHECK(cast(rule(Type::timestamptz), text("0001-01-01T00:00:00Z")) ==
        "timestamptz 0001-01-01T00:00:00Z");
}

TEST_CASE("instants and wall clocks become one another only through the column's zone") {
  const Value instant =
      Value::number(Kind::timestamptz, seconds_of("2024-07-01T12:00:00Z") * second_us);
  CHECK(cast(in_zone(Type::timestamp, "Europe/Paris"), instant) == "timestamp 2024-07-01T14:00:00");
  CHECK(cast(in_zone(Type::timestamp, "-02:00"), instant) == "timestamp 2024-07-01T10:00:00");
  CHECK(cast(rule(Type::timestamp), instant).substr(0, 7) == "refused");
  CHECK(cast(rule(Type::timestamptz), instant) == "timestamptz 2024-07-01T12:00:00Z");
  CHECK(cast(rule(Type::text), instant) == "text 2024-07-01T12:00:00Z");
}

TEST_CASE("a zone that does not exist is known as such, and refuses what needs it") {
  for (const std::string bad : {"Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "+25:00",
                                "EST5", "Europe", "+5:30", "Europe/../Europe/Paris"}) {
    CAPTURE(bad);
    CHECK(Zone::named(bad) == nullptr);
  }
  for (const std::string good : {"UTC", "Z", "+05:30", "-0800", "+02", "Europe/Paris", "Etc/GMT+5",
                                 "America/Argentina/Buenos_Aires"}) {
    CAPTURE(good);
    CHECK(Zone::named(good) != nullptr);
  }
  CHECK(cast(in_zone(Type::timestamptz, "Mars/Olympus"), text("2024-01-01T00:00:00")) ==
        "refused: text \"2024-01-01T00:00:00\" needs the zone \"Mars/Olympus\", which is unknown");
  CHECK(cast(in_zone(Type::timestamptz, "Mars/Olympus"), text("2024-01-01T00:00:00Z")) ==
        "timestamptz 2024-01-01T00:00:00Z");
}

TEST_CASE("zones follow their history, and their rule beyond the listed years") {
  const auto offset = [](const std::string& zone, const std::string& instant) {
    const auto z = Zone::named(zone);
    REQUIRE(z);
    return z->offset_at(seconds_of(instant));
  };
  CHECK(offset("America/New_York", "2024-03-10T06:59:59Z") == hours(-5));
  CHECK(offset("America/New_York", "2024-03-10T07:00:00Z") == hours(-4));
  CHECK(offset("America/New_York", "2024-11-03T05:59:59Z") == hours(-4));
  CHECK(offset("America/New_York", "2024-11-03T06:00:00Z") == hours(-5));
  CHECK(offset("America/New_York", "2500-07-01T00:00:00Z") == hours(-4));
  CHECK(offset("America/New_York", "2500-01-01T00:00:00Z") == hours(-5));
  CHECK(offset("Australia/Sydney", "2500-01-01T00:00:00Z") == hours(11));
  CHECK(offset("Australia/Sydney", "2500-07-01T00:00:00Z") == hours(10));
  CHECK(offset("Asia/Kolkata", "2024-01-01T00:00:00Z") == 19800);
  CHECK(offset("Europe/Dublin", "2500-07-01T00:00:00Z") == 3600);
  CHECK(offset("Europe/Dublin", "2500-01-01T00:00:00Z") == 0);
  CHECK(offset("Europe/Paris", "1850-01-01T00:00:00Z") == 561);
}

TEST_CASE("skipped times are refused and repeated ones are the first of the two") {
  const auto instant = [](const std::string& zone, const std::string& local) {
    return Zone::named(zone)->instant_of(seconds_of(local + "Z"));
  };
  CHECK_FALSE(instant("America/New_York", "2024-03-10T02:00:00").has_value());
  CHECK_FALSE(instant("America/New_York", "2024-03-10T02:59:59").has_value());
  CHECK(instant("America/New_York", "2024-03-10T01:59:59") == seconds_of("2024-03-10T06:59:59Z"));
  CHECK(instant("America/New_York", "2024-03-10T03:00:00") == seconds_of("2024-03-10T07:00:00Z"));
  CHECK(instant("America/New_York", "2024-11-03T01:00:00") == seconds_of("2024-11-03T05:00:00Z"));
  CHECK(instant("America/New_York", "2024-11-03T02:00:00") == seconds_of("2024-11-03T07:00:00Z"));
  CHECK_FALSE(instant("Europe/Paris", "2400-03-26T02:30:00").has_value());
  CHECK_FALSE(instant("Pacific/Apia", "2011-12-30T12:00:00").has_value());
}

TEST_CASE("rules of zones are read in all their forms") {
  const auto rule_of = [](std::string_view text) { return parse_zone_rule(text); };
  REQUIRE(rule_of("EST5EDT,M3.2.0,M11.1.0"));
  CHECK(rule_of("EST5EDT,M3.2.0,M11.1.0")->summer == hours(-4));
  REQUIRE(rule_of("<+0330>-3:30"));
  CHECK(rule_of("<+0330>-3:30")->standard == 12600);
  REQUIRE(rule_of("IST-1GMT0,M10.5.0,M3.5.0/1"));
  CHECK(rule_of("IST-1GMT0,M10.5.0,M3.5.0/1")->summer == 0);
  REQUIRE(rule_of("<-02>2<-01>,M3.5.0/-1,M10.5.0/0"));
  CHECK(rule_of("<-02>2<-01>,M3.5.0/-1,M10.5.0/0")->summer_starts.seconds == -3600);
  REQUIRE(rule_of("XXX3YYY,J60/2,300/167:59:59"));
  for (const std::string bad :
       {"", "E", "EST", "EST5EDT", "EST5EDT,M13.1.0,M1.1.0", "EST5EDT,M3.2.0",
        "EST5EDT,M3.2.0,M11.1.0x", "<+03", "EST5EDT,M3.6.0,M1.1.0"}) {
    CAPTURE(bad);
    CHECK_FALSE(rule_of(bad));
  }
}

TEST_CASE("zones can be used from several threads") {
  std::vector<std::thread> threads;
  std::vector<std::string> results(8);
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      results[i] = cast(in_zone(Type::timestamptz, "Asia/Tokyo"), text("2024-01-01T09:00:00"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) CHECK(result == "timestamptz 2024-01-01T00:00:00Z");
}

TEST_CASE("types are known by their own name and by SQL's") {
  for (const Type type :
       {Type::any, Type::boolean, Type::int16, Type::int32, Type::int64, Type::float32,
        Type::float64, Type::decimal, Type::text, Type::json, Type::jsonb, Type::bytes, Type::date,
        Type::timestamp, Type::timestamptz, Type::uuid}) {
    CHECK(type_named(name_of(type)) == type);
  }
  CHECK(type_named("BIGINT") == Type::int64);
  CHECK(type_named("numeric") == Type::decimal);
  CHECK(type_named("character varying") == Type::text);
  CHECK(type_named("Timestamp With Time Zone") == Type::timestamptz);
  CHECK_FALSE(type_named("money").has_value());
}
