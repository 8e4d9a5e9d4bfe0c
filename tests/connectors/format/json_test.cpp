#include <doctest/doctest.h>
#include <string>

#include "tests/connectors/format/decoded.h"

using namespace flow;
using flow::test::Decoded;
using flow::test::path;

namespace {

Decoded json(const std::vector<FieldSource>& fields) { return {make_json_decoder(), fields}; }

Decoded json_v() { return json({path({"v"})}); }

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

const std::vector<std::string>& damaged() {
  static const std::vector<std::string> records{
      "",
      " ",
      "{",
      "}",
      "{}}",
      "{} {}",
      "{}x",
      R"({"v":1)",
      R"({"v":1,})",
      R"({"v"})",
      R"({"v" 1})",
      R"({"v":})",
      R"({v:1})",
      R"({'v':1})",
      R"({"v":1 "w":2})",
      R"({"v":1,,"w":2})",
      R"({"w":[1,]})",
      R"({"w":[,1]})",
      R"({"w":[1 2]})",
      R"({"w":[1})",
      R"({"w":{"x":1})",
      R"({"w":{"x":1]})",
      R"({"w":[1}})",
      R"({"w":{"x"}})",
      R"({"w":{"x":1,}})",
      R"({"w":{1:1}})",
      R"({"w":01})",
      R"({"w":-})",
      R"({"w":+1})",
      R"({"w":1.})",
      R"({"w":.5})",
      R"({"w":1e})",
      R"({"w":1e+})",
      R"({"w":0x10})",
      R"({"w":1_000})",
      R"({"w":NaN})",
      R"({"w":Infinity})",
      R"({"w":tru})",
      R"({"w":truex})",
      R"({"w":True})",
      R"({"w":nulll})",
      R"({"w":"open})",
      R"({"w":"a"b})",
      R"({"w":"\x"})",
      R"({"w":"\u12"})",
      R"({"w":"\u12g4"})",
      R"({"w":"\ud800"})",
      R"({"w":"\udc00\ud800"})",
      R"({"w":"\ud800\u0041"})",
      R"({"w":"\ud800x"})",
      R"({"\ud800":1})",
      R"({"w":{"\udc00":1}})",
      R"({"w":[{"x":"\ud834"}]})",
      "{\"w\":\"\xED\xA0\x80\"}",
      "{\"w\":\"\xFF\xFE\"}",
      "{\"w\":\"caf\xE9\"}",
      "{\"w\":\"\xC0\x80\"}",
      "{\"w\":\"\xF4\x90\x80\x80\"}",
      "{\"\xFF\":1}",
      "{\"w\":\"a\nb\"}",
      std::string("{\"w\":\"a\0b\"}", 11),
      std::string("{\"w\":1}\0", 8),
      "{\"w\":1}\xEF\xBB\xBF",
      "{\"w\":\"a\tb\"}",
      R"({"w":1 /* no */})",
      R"({"w":)" + nested(1024) + "}",
  };
  return records;
}

}  // namespace

TEST_CASE("a damaged record is refused whatever columns are asked for") {
  const std::vector<std::vector<FieldSource>> asked{
      {}, {path({"v"})}, {path({"w"})}, {path({"w", "x"})}, {path({"w", "[0]", "x"})},
  };
  for (const auto& fields : asked) {
    Decoded decoded = json(fields);
    for (const std::string& record : damaged()) {
      CAPTURE(record);
      CAPTURE(fields.size());
      CHECK_FALSE(decoded.read(record));
      CHECK(decoded.failure.cls == FailureClass::invalid);
      CHECK_FALSE(decoded.failure.what.empty());
      CHECK(decoded.read(R"({"v":1})"));  // the next record is read
    }
  }
}

TEST_CASE("each cell keeps what the record says") {
  Decoded d = json({path({"id"}), path({"n"}), path({"m"}), path({"s"}), path({"b"}), path({"z"}),
                    path({"o"}), path({"a"}), path({"absent"})});
  REQUIRE(d.read(R"({"id":9007199254740993,"n":-9223372036854775808,"m":9223372036854775808,)"
                 R"("s":"text","b":true,"z":null, "o" : {"k": [1, 2.50]} ,"a":[ ]})"));
  CHECK(d.row() ==
        "int64 9007199254740993 | int64 -9223372036854775808 | decimal 9223372036854775808"
        " | text text | boolean true | null | json {\"k\": [1, 2.50]} | json [ ]"
        " | missing");
}

TEST_CASE("number tokens stay as they stood") {
  Decoded d = json_v();
  for (const std::string token :
       {"1.10", "0.1", "1E+2", "-0.0", "1e400", "12345678901234567890.123456789012345678"}) {
    REQUIRE(d.read("{\"v\":" + token + "}"));
    CHECK(d.cells[0].kind() == Kind::decimal);
    CHECK(d.cells[0].text() == token);
  }
  REQUIRE(d.read("{\"v\":100}"));
  CHECK(d.cells[0].kind() == Kind::int64);
  CHECK(d.cells[0].i() == 100);
}

TEST_CASE("text keeps every character, U+0000 and pairs of surrogates among them") {
  Decoded d = json_v();
  REQUIRE(d.read(R"({"v":"a\u0000b"})"));
  CHECK(d.cells[0].text() == std::string_view("a\0b", 3));
  REQUIRE(d.read(R"({"v":"ok \ud83d\ude00 \"\\\/\b\f\n\r\t\u00e9"})"));
  CHECK(d.cells[0].text() == "ok \xF0\x9F\x98\x80 \"\\/\b\f\n\r\t\xC3\xA9");
  REQUIRE(d.read("{\"v\":\"\xEF\xBF\xBF\xF4\x8F\xBF\xBF\x7F\"}"));
  CHECK(d.cells[0].text() == "\xEF\xBF\xBF\xF4\x8F\xBF\xBF\x7F");
}

TEST_CASE("text without escapes is not copied") {
  Decoded d = json_v();
  REQUIRE(d.read(R"({"v":"in place"})"));
  const std::string_view text = d.cells[0].text();
  CHECK(text == "in place");
  CHECK(text.data() == d.record.value.data() + 6);
}

TEST_CASE("null, empty, missing and the word null are four things") {
  Decoded d = json_v();
  REQUIRE(d.read(R"({"v":null})"));
  CHECK(d.row() == "null");
  REQUIRE(d.read(R"({"v":""})"));
  CHECK(d.row() == "text ");
  REQUIRE(d.read("{}"));
  CHECK(d.row() == "missing");
  REQUIRE(d.read(R"({"v":"null"})"));
  CHECK(d.row() == "text null");
}

TEST_CASE("a name that comes twice in a walked object is a decode error that names it") {
  Decoded d = json({path({"id"}), path({"o", "x"})});
  const auto refused = [&](const std::string& record, const std::string& name) {
    CAPTURE(record);
    CHECK_FALSE(d.read(record));
    CHECK(d.failure.what.find("\"" + name + "\" twice") != std::string::npos);
  };
  refused(R"({"id":1,"amount":5,"id":2})", "id");
  refused(R"({"id":1,"amount":5,"amount":5})", "amount");
  refused(R"({"a":1,"b":2,"c":3,"a":4})", "a");
  refused(R"({"id":1,"o":{"x":1,"x":2}})", "x");
  refused(R"({"id":1,"o":{"y":1,"x":2,"y":3}})", "y");
  refused(R"({"id":1,"\u0069d":2})", "id");
  refused(R"({"":1,"":2})", "");
  CHECK(d.read(R"({"id":1,"o":{"x":1}})"));
  CHECK(d.read(R"({"o":{"id":1},"id":2})"));
}

TEST_CASE("the outermost names must differ when no column is asked for, too") {
  Decoded d = json({});
  CHECK_FALSE(d.read(R"({"a":1,"b":2,"a":3})"));
  CHECK(d.read(R"({"a":1,"b":2})"));
  CHECK(d.read("[1,2]"));
  CHECK(d.read("7"));
  CHECK(d.read("\"text\""));
}

TEST_CASE("names beyond what is remembered are still compared") {
  Decoded d = json_v();
  std::string names;
  for (int i = 0; i < 3000; ++i) names += "\"k" + std::to_string(i) + "\":0,";
  REQUIRE(d.read("{" + names + "\"v\":1}"));
  CHECK(d.row() == "int64 1");
  CHECK_FALSE(d.read("{" + names + "\"v\":1,\"k2999\":1}"));
  CHECK(d.failure.what.find("\"k2999\" twice") != std::string::npos);
  CHECK_FALSE(d.read("{" + names + "\"v\":1,\"k3\":1}"));
  CHECK(d.failure.what.find("\"k3\" twice") != std::string::npos);
  const std::string long_name(300, 'x');
  CHECK_FALSE(d.read("{\"" + long_name + "\":1,\"" + long_name + "\":2}"));
  CHECK(d.read("{\"" + long_name + "\":1,\"v\":2}"));
}

TEST_CASE("fields are found in any order, and one record's order does not matter to the next") {
  Decoded d = json({path({"a"}), path({"b"}), path({"c"})});
  for (int round = 0; round < 3; ++round) {
    REQUIRE(d.read(R"({"a":1,"b":2,"c":3})"));
    CHECK(d.row() == "int64 1 | int64 2 | int64 3");
    REQUIRE(d.read(R"({"c":3,"x":0,"b":2,"aa":9,"a":1})"));
    CHECK(d.row() == "int64 1 | int64 2 | int64 3");
    REQUIRE(d.read(R"({"b":2})"));
    CHECK(d.row() == "missing | int64 2 | missing");
  }
}

TEST_CASE("paths go into objects and arrays") {
  Decoded d = json({path({"a", "b"}), path({"a"}), path({"l", "[1]"}), path({"l", "[2]", "x"}),
                    path({"a", "b"}), path({"s", "t"})});
  REQUIRE(d.read(R"({"a":{"b":1,"c":[{}]},"l":[10,11,{"x":"y"}],"s":"text"})"));
  CHECK(d.row() == R"(int64 1 | json {"b":1,"c":[{}]} | int64 11 | text y | int64 1 | missing)");
  REQUIRE(d.read(R"({"a":null,"l":[],"s":{"t":false}})"));
  CHECK(d.row() == "missing | null | missing | missing | missing | boolean false");
  REQUIRE(d.read(R"({"a":[1],"l":{"x":1}})"));
  CHECK(d.row() == "missing | json [1] | missing | missing | missing | missing");
}

TEST_CASE("the whole value can be a column") {
  Decoded d = json({path({}), path({"a"})});
  REQUIRE(d.read("\xEF\xBB\xBF {\"a\": 1 } "));
  CHECK(d.row() == "json {\"a\": 1 } | int64 1");
}

TEST_CASE("a record that is not an object is refused when a field is asked for") {
  Decoded d = json_v();
  for (const std::string record : {"[1]", "1", "\"v\"", "null", "true"}) {
    CHECK_FALSE(d.read(record));
    CHECK(d.failure.what.find("not an object") != std::string::npos);
  }
}

TEST_CASE("a byte order mark at the start is not part of the record") {
  Decoded d = json_v();
  REQUIRE(d.read("\xEF\xBB\xBF{\"v\":1}"));
  CHECK(d.row() == "int64 1");
  CHECK_FALSE(d.read("\xEF\xBB\xBF"));
  CHECK_FALSE(d.read("\xEF\xBB\xBF\xEF\xBB\xBF{}"));
}

TEST_CASE("depth is bounded the same way inside asked and unasked values") {
  const std::string deep = "{\"v\":" + nested(1023) + ",\"w\":" + nested(1023) + "}";
  const std::string deeper = "{\"v\":1,\"w\":" + nested(1024) + "}";
  for (const auto& field : {path({"v"}), path({"w"}), path({"w", "[0]"})}) {
    Decoded d = json({field});
    CHECK(d.read(deep));
    CHECK_FALSE(d.read(deeper));
    CHECK(d.failure.what.find("too deeply") != std::string::npos);
  }
}

TEST_CASE("a decode error says at which byte") {
  Decoded d = json_v();
  REQUIRE_FALSE(d.read(R"({"v":1,"w":tru})"));
  CHECK(d.failure.what == "the record is not the JSON that is wanted: not a value at byte 11");
}

TEST_CASE("records larger than any before are read") {
  Decoded d = json_v();
  const std::string large(300'000, 'x');
  REQUIRE(d.read("{\"v\":\"" + large + "\"}"));
  CHECK(d.cells[0].text() == large);
  CHECK(d.read(R"({"v":1})"));
}
