#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <limits>

#include "tests/connectors/postgres/writer.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;

namespace {

// Both ways into a table: COPY binary, and array parameters (a merge of few rows).
template <class Check>
void both_ways(const std::string& columns, Check check) {
  for (const Mode mode : {Mode::append, Mode::merge}) {
    CAPTURE(static_cast<int>(mode));
    const PgSchema schema(server(), "values");
    schema.query("CREATE TABLE t (id bigint PRIMARY KEY, " + columns + ")");
    Writer w(schema.url(), "t", mode,
             mode == Mode::merge ? std::vector<std::string>{"id"} : std::vector<std::string>{});
    const auto opened = w.open();
    REQUIRE_MESSAGE(opened, opened.failure().text());
    check(schema, w);
  }
}

void write_all(Writer& w, const std::vector<Value>& cells) {
  std::vector<std::vector<Value>> rows;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    rows.push_back({number(static_cast<std::int64_t>(i)), cells[i]});
  }
  const auto written = w.write(rows);
  REQUIRE_MESSAGE(written, written.failure().text());
}

}  // namespace

TEST_CASE("numeric holds the token's exact value, with its digits after the point") {
  const std::vector<std::string> tokens = {"1.10",
                                           "0.1",
                                           "100",
                                           "-0.5",
                                           "0",
                                           "0.00",
                                           "9999",
                                           "10000",
                                           "10001",
                                           "99999999.9999",
                                           "0.0001",
                                           "0.00001",
                                           "123456789012345",
                                           "1234567890123456",
                                           "-12345.6789",
                                           "12345678901234567890.123456789012345678",
                                           "-0.000000000000000000000001",
                                           "100000000000000000000000000000000",
                                           "1000000000000000000000000000000000000.0001",
                                           "0.9999",
                                           "0.99999",
                                           "1.230",
                                           "5000.0000",
                                           "20000000.00",
                                           "1000.10000000000000000000"};
  both_ways("n numeric", [&](const PgSchema& schema, Writer& w) {
    std::vector<Value> cells;
    for (const auto& t : tokens) cells.push_back(token(t));
    write_all(w, cells);
    CHECK(lines(schema, "SELECT n FROM t ORDER BY id") == tokens);
    Lines by_server;
    for (const auto& t : tokens) {
      by_server.push_back(*schema.query("SELECT '" + t + "'::numeric")[0][0]);
    }
    CHECK(lines(schema, "SELECT n FROM t ORDER BY id") == by_server);
  });
}

TEST_CASE("numeric takes exponents and negative zero as the same number") {
  both_ways("n numeric", [](const PgSchema& schema, Writer& w) {
    write_all(w, {token("1E+2"), token("1.5e-3"), token("-0.0"), token("12e5"), token("1e-20")});
    CHECK(lines(schema,
                "SELECT n = v FROM t JOIN (VALUES (0, 100), (1, 0.0015), (2, 0), "
                "(3, 1200000), (4, 0.00000000000000000001)) x(k, v) ON id = k") ==
          Lines{"t", "t", "t", "t", "t"});
  });
}

TEST_CASE("whole numbers keep every digit in bigint, numeric and text") {
  constexpr auto low = std::numeric_limits<std::int64_t>::min();
  constexpr auto high = std::numeric_limits<std::int64_t>::max();
  both_ways("b bigint, n numeric, s text", [](const PgSchema& schema, Writer& w) {
    REQUIRE(w.write({{number(1), number(low), number(low), number(low)},
                     {number(2), number(high), number(high), number(high)},
                     {number(9007199254740993), number(9007199254740993), number(9007199254740993),
                      number(9007199254740993)},
                     {number(9007199254740992), number(-1), number(0), number(1)}}));
    CHECK(lines(schema, "SELECT id, b, n, s FROM t ORDER BY id") ==
          Lines{"1|-9223372036854775808|-9223372036854775808|-9223372036854775808",
                "2|9223372036854775807|9223372036854775807|9223372036854775807",
                "9007199254740992|-1|0|1",
                "9007199254740993|9007199254740993|9007199254740993|9007199254740993"});
  });
}

TEST_CASE("null, empty, missing and the word null stay four different things") {
  both_ways("s text, j jsonb, k json, b boolean", [](const PgSchema& schema, Writer& w) {
    REQUIRE(w.write({{number(1), Value::null(), Value::null(), Value::null(), Value::null()},
                     {number(2), Value(), Value(), Value(), Value()},
                     {number(3), text(""), json("null"), json("null"), Value::boolean(false)},
                     {number(4), text("null"), json("[]"), json("{ }"), Value::boolean(true)},
                     {number(5), text("NULL"), json("\"\""), json("\"null\""), Value::null()},
                     {number(6), text("\\N"), json("0"), json("1.0"), Value::null()}}));
    const auto found = lines(schema, "SELECT id, s, j, k, b FROM t ORDER BY id");
    CHECK(found[0] == "1|NULL|NULL|NULL|NULL");
    CHECK(found[1] == "2|NULL|NULL|NULL|NULL");
    CHECK(found[3] == "4|null|[]|{ }|t");
    CHECK(found[4] == "5|NULL|\"\"|\"null\"|NULL");
    CHECK(found[5] == "6|\\N|0|1.0|NULL");
    CHECK(lines(schema, "SELECT id FROM t WHERE s IS NULL ORDER BY id") == Lines{"1", "2"});
    CHECK(lines(schema, "SELECT s = '' FROM t WHERE id = 3") == Lines{"t"});
  });
}

TEST_CASE(
    "U+0000 is refused before it reaches the server, in text and in values and keys of JSON") {
  both_ways("s text, j jsonb, k json", [](const PgSchema& schema, Writer& w) {
    const Value null;
    CHECK_THROWS(w.write({{number(1), text(std::string_view("a\0b", 3)), null, null}}));
    CHECK_THROWS(w.write({{number(1), null, json("\"a\\u0000b\""), null}}));
    CHECK_THROWS(w.write({{number(1), null, json("{\"a\\u0000b\":1}"), null}}));
    CHECK_THROWS(w.write({{number(1), null, null, json("\"a\\u0000b\"")}}));
    REQUIRE(w.write({{number(2), text("a\\u0000b"), json("\"a\\\\u0000b\""), null}}));
    CHECK(lines(schema, "SELECT id, s, j FROM t") == Lines{"2|a\\u0000b|\"a\\\\u0000b\""});
  });
}

TEST_CASE("times are the same instants whatever the zones of client, role and session are") {
  for (const char* zone : {"UTC", "Asia/Kolkata", "America/New_York"}) {
    CAPTURE(zone);
    setenv("TZ", zone, 1);
    setenv("PGTZ", zone, 1);
    both_ways("z timestamptz, w timestamp, d date", [](const PgSchema& schema, Writer& w) {
      REQUIRE(w.write({{number(1), text("2024-03-10T02:30:00+05:30"), text("2024-03-10T02:30:00"),
                        text("2024-02-29")},
                       {number(2), text("1999-12-31T23:59:59.999999Z"), text("0001-01-01T00:00:00"),
                        text("0001-01-01")},
                       {number(3), text("2000-01-01T00:00:00Z"), text("1969-12-31T23:59:59.5"),
                        text("1970-01-01")}}));
      CHECK(lines(schema, "SELECT z AT TIME ZONE 'UTC', w, d FROM t ORDER BY id") ==
            Lines{"2024-03-09 21:00:00|2024-03-10 02:30:00|2024-02-29",
                  "1999-12-31 23:59:59.999999|0001-01-01 00:00:00|0001-01-01",
                  "2000-01-01 00:00:00|1969-12-31 23:59:59.5|1970-01-01"});
    });
  }
  unsetenv("TZ");
  unsetenv("PGTZ");
}

TEST_CASE("small integers, floats, bytes and uuids arrive as they were") {
  both_ways("a smallint, b integer, c real, d double precision, e bytea, f uuid",
            [](const PgSchema& schema, Writer& w) {
              REQUIRE(w.write({{number(1), number(-32768), number(-2147483648), token("0.1"),
                                token("0.1"), text(w.keep(std::string("\x00\xff\\", 3))),
                                text("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")}}));
              CHECK(lines(schema, "SELECT a, b, c, d, f FROM t") ==
                    Lines{"-32768|-2147483648|0.1|0.1|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"});
            });
}

TEST_CASE("enums, domains, citext-like and text-only types take their text, both ways") {
  const PgSchema schema(server(), "special");
  schema.query(
      "CREATE TYPE \"Mood\" AS ENUM ('sad', 'so so'); "
      "CREATE DOMAIN amount AS numeric(10,2) CHECK (VALUE >= 0); "
      "CREATE DOMAIN small_amount AS amount NOT NULL");
  const std::string columns =
      "id bigint PRIMARY KEY, m \"Mood\", a small_amount, v varchar(5), c char(3), i inet, "
      "l text[], t time, iv interval, b bit(3)";
  for (const Mode mode : {Mode::append, Mode::merge}) {
    for (const std::int64_t count : {2, 1500}) {
      CAPTURE(count);
      schema.query("DROP TABLE IF EXISTS t; CREATE TABLE t (" + columns + ")");
      Writer w(schema.url(), "t", mode,
               mode == Mode::merge ? std::vector<std::string>{"id"} : std::vector<std::string>{});
      const auto opened = w.open();
      REQUIRE_MESSAGE(opened, opened.failure().text());
      CHECK(opened.value().columns[2].type == Type::decimal);
      CHECK(opened.value().columns[2].limits.precision == 10);
      CHECK_FALSE(opened.value().columns[2].nullable);
      CHECK(opened.value().columns[3].limits.length == 5);
      std::vector<std::vector<Value>> rows;
      for (std::int64_t i = 0; i < count; ++i) {
        rows.push_back({number(i), text("so so"), token("1.5"), text("äöüß€"), text("x"),
                        text("10.0.0.1"), text("{a,\"b c\"}"), text("12:30"), text("1 day"),
                        text("101")});
      }
      const auto written = w.write(rows);
      REQUIRE_MESSAGE(written, written.failure().text());
      CHECK(lines(schema,
                  "SELECT m, a, v, c, i, l, t, iv, b, count(*) FROM t "
                  "GROUP BY 1,2,3,4,5,6,7,8,9") ==
            Lines{"so so|1.50|äöüß€|x  |10.0.0.1|{a,\"b c\"}|12:30:00|1 day|101|" +
                  std::to_string(count)});
      CHECK(lines(schema, "SELECT count(DISTINCT id), min(id), max(id) FROM t") ==
            Lines{std::to_string(count) + "|0|" + std::to_string(count - 1)});
    }
  }
}
