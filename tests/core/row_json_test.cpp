#include "core/row_json.h"

#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

using namespace flow;

namespace {

std::string json(const Value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

std::string csv(const std::vector<Value>& cells) {
  std::string out;
  append_csv_row(out, cells.size(), cells.data());
  return out;
}

Column column(const std::string& name) {
  Column c;
  c.name = name;
  return c;
}

}  // namespace

TEST_CASE("numbers are written as they stood") {
  CHECK(json(Value::text("1.10", Kind::decimal)) == "1.10");
  CHECK(json(Value::text("1E+2", Kind::decimal)) == "1E+2");
  CHECK(json(Value::int64(std::numeric_limits<std::int64_t>::min())) == "-9223372036854775808");
  CHECK(json(Value::int64(9007199254740993)) == "9007199254740993");
  CHECK(json(Value::float64(0.1)) == "0.1");
  CHECK(json(Value::float64(1e300)) == "1e+300");
  CHECK(json(Value::float64(std::numeric_limits<double>::infinity())) == "null");
  CHECK(json(Value::float64(std::numeric_limits<double>::quiet_NaN())) == "null");
}

TEST_CASE("every character of a string that needs an escape gets one, and no other") {
  std::string control;
  for (char c = 0; c < 0x20; ++c) control.push_back(c);
  CHECK(
      json(Value::text(control)) ==
      "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u00"
      "0f"
      "\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c"
      "\\u001d\\u001e\\u001f\"");
  CHECK(json(Value::text("a\"b\\c/d")) == "\"a\\\"b\\\\c/d\"");
  CHECK(json(Value::text("\x7F \xC3\xA9 \xF0\x9F\x98\x80")) ==
        "\"\x7F \xC3\xA9 \xF0\x9F\x98\x80\"");
  CHECK(json(Value::text("")) == "\"\"");
}

TEST_CASE("an escape is found at every place of a string") {
  for (std::size_t length = 1; length < 40; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      for (const auto& [c, escaped] : std::vector<std::pair<char, std::string>>{
               {'"', "\\\""}, {'\\', "\\\\"}, {'\x1F', "\\u001f"}, {'\0', "\\u0000"}}) {
        std::string text(length, '\xC3');
        text[at] = c;
        std::string expected = "\"" + std::string(length, '\xC3') + "\"";
        expected.replace(at + 1, 1, escaped);
        REQUIRE(json(Value::text(text)) == expected);
      }
    }
  }
}

TEST_CASE("times, dates, bytes and UUIDs are strings") {
  CHECK(json(Value::number(Kind::timestamptz, 1'700'000'000'000'000)) ==
        "\"2023-11-14T22:13:20Z\"");
  CHECK(json(Value::number(Kind::timestamptz, -1)) == "\"1969-12-31T23:59:59.999999Z\"");
  CHECK(json(Value::number(Kind::timestamp, 250'000)) == "\"1970-01-01T00:00:00.25\"");
  CHECK(json(Value::number(Kind::date, -1)) == "\"1969-12-31\"");
  CHECK(json(Value::number(Kind::date, -719162)) == "\"0001-01-01\"");
  CHECK(json(Value::text(std::string_view("\0\xFF\x10", 3), Kind::bytes)) == "\"AP8Q\"");
  CHECK(json(Value::text("a", Kind::bytes)) == "\"YQ==\"");
  CHECK(json(Value::text("ab", Kind::bytes)) == "\"YWI=\"");
  CHECK(json(Value::text("", Kind::bytes)) == "\"\"");
  CHECK(json(Value::text("6f9619ff-8b86-d011-b42d-00c04fc964ff", Kind::uuid)) ==
        "\"6f9619ff-8b86-d011-b42d-00c04fc964ff\"");
}

TEST_CASE("JSON goes as it is, but on one line") {
  CHECK(json(Value::text("{\"a\": 1.0}", Kind::json)) == "{\"a\": 1.0}");
  CHECK(json(Value::text("{\n \"a\":\r\n 1 }", Kind::json)) == "{  \"a\":   1 }");
}

TEST_CASE("a row leaves out what is missing and says what is null") {
  const Columns columns{column("a"), column("b\"c"), column("d")};
  const auto row = [&](const std::vector<Value>& cells) {
    std::string out = "before ";
    append_json_row(out, columns, cells.data());
    return out;
  };
  CHECK(row({Value::int64(1), Value::text("x"), Value::boolean(true)}) ==
        R"(before {"a":1,"b\"c":"x","d":true})");
  CHECK(row({Value(), Value::null(), Value()}) == R"(before {"b\"c":null})");
  CHECK(row({Value(), Value(), Value()}) == "before {}");
}

TEST_CASE("CSV tells null from empty text and quotes what needs it") {
  CHECK(csv({Value::null(), Value(), Value::text("")}) == ",,\"\"");
  CHECK(csv({Value::text("a,b"), Value::text("say \"hi\""), Value::text("two\nlines"),
             Value::text("cr\r")}) == "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"cr\r\"");
  CHECK(csv({Value::text("plain"), Value::int64(1), Value::text("1.10", Kind::decimal),
             Value::boolean(false), Value::text("[1,2]", Kind::json)}) ==
        "plain,1,1.10,false,\"[1,2]\"");
  CHECK(csv({Value::number(Kind::date, 0)}) == "1970-01-01");
}
