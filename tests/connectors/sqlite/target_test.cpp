// What the SQLite target writes, and that it is there.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "tests/connectors/sqlite/target_help.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;

TEST_CASE("append writes every row in record order") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER, note TEXT)");
  bench.start();
  for (const int id : {3, 1, 3, 2}) bench.add({num(id), str("n")});
  bench.must_write();
  CHECK(bench.table("SELECT rowid, id FROM orders ORDER BY rowid") ==
        Lines{"1|3", "2|1", "3|3", "4|2"});
}

TEST_CASE("merge keeps the last row of each key, updates what is there and inserts what is new") {
  SqliteBench bench(
      "CREATE TABLE orders(id INTEGER PRIMARY KEY, status TEXT, kept TEXT DEFAULT 'x')",
      Mode::merge, {"id"});
  bench.query("INSERT INTO orders VALUES (2, 'old', 'mine'), (9, 'untouched', 'mine')");
  bench.start({"id", "status"});
  bench.add({num(2), str("a")});
  bench.add({num(1), str("b")});
  bench.add({num(2), str("c")});
  bench.must_write();
  CHECK(bench.table() == Lines{"1|b|x", "2|c|mine", "9|untouched|mine"});
}

TEST_CASE("merge deletes by the whole key, and a row that comes after lives again") {
  SqliteBench bench(
      "CREATE TABLE orders(a TEXT, b INTEGER, v TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID",
      Mode::merge, {"b", "a"});
  bench.query("INSERT INTO orders VALUES ('k', 1, 'one'), ('k', 2, 'two'), ('m', 1, 'three')");
  bench.start();
  bench.add({str("k"), num(1), Value()}, RowOp::erase);
  bench.add({str("m"), num(1), Value()}, RowOp::erase);
  bench.add({str("m"), num(1), str("again")});
  bench.add({str("absent"), num(1), Value()}, RowOp::erase);
  bench.must_write();
  CHECK(bench.table() == Lines{"k|2|two", "m|1|again"});
}

TEST_CASE("a row never carries a value of the row before it") {
  SqliteBench bench("CREATE TABLE orders(k TEXT PRIMARY KEY, a TEXT, b INTEGER)", Mode::merge,
                    {"k"});
  bench.start();
  bench.add({str("k1"), none(), none()});
  bench.add({str("k2"), Value(), Value()});
  bench.add({str("k3"), str("x"), num(9)});
  bench.add({str("k4"), none(), none()});
  bench.add({str("k5"), str("y"), Value()});
  bench.must_write();
  CHECK(bench.table() ==
        Lines{"k1|(null)|(null)", "k2|(null)|(null)", "k3|x|9", "k4|(null)|(null)", "k5|y|(null)"});
}

TEST_CASE("a merge of key columns only inserts what is new and leaves the rest") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER PRIMARY KEY)", Mode::merge, {"id"});
  bench.query("INSERT INTO orders VALUES (1)");
  bench.start();
  bench.add({num(1)});
  bench.add({num(2)});
  bench.must_write();
  CHECK(bench.table() == Lines{"1", "2"});
}

TEST_CASE("awkward names of tables and columns are written as they are") {
  SqliteBench bench(
      "CREATE TABLE \"Order Items\"(\"userId\" INTEGER PRIMARY KEY, \"order\" TEXT,"
      " \"select\" TEXT, \"a\"\"b\" TEXT, \"na\xC3\xAFve\" TEXT, \"with space\" TEXT)",
      Mode::merge, {"userId"});
  bench.spec.table = "main.\"Order Items\"";
  bench.start();
  for (int round = 0; round < 2; ++round) {
    bench.add({num(1), str("o"), str("s"), str("q"), str("n"), str(round == 0 ? "w" : "W")});
    bench.must_write();
  }
  CHECK(bench.table("SELECT * FROM \"Order Items\"") == Lines{"1|o|s|q|n|W"});
}

TEST_CASE("integers keep every digit, as values and as keys") {
  SqliteBench bench("CREATE TABLE orders(id BIGINT PRIMARY KEY, n NUMERIC, t TEXT)", Mode::merge,
                    {"id"});
  bench.start();
  bench.add({num(9007199254740993), dec("9223372036854775807"), str("9007199254740993")});
  bench.add({num(9007199254740992), dec("-9223372036854775808"), str("0007")});
  bench.add({num(INT64_MIN), dec("1"), str("")});
  bench.must_write();
  CHECK(bench.table("SELECT id, n, typeof(n), t FROM orders ORDER BY id") ==
        Lines{"-9223372036854775808|1|integer|",
              "9007199254740992|-9223372036854775808|integer|0007",
              "9007199254740993|9223372036854775807|integer|9007199254740993"});
}

TEST_CASE("text holds U+0000 and empty is not null") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER, s TEXT, b BLOB)");
  bench.start();
  bench.add({num(1), str({"a\0b", 3}), Value::text({"\0\xFF", 2}, Kind::bytes)});
  bench.add({num(2), str(""), Value::text("", Kind::bytes)});
  bench.add({num(3), str({nullptr, 0}), Value::text({nullptr, 0}, Kind::bytes)});
  bench.add({num(4), none(), none()});
  bench.add({num(5), str("null"), none()});
  bench.must_write();
  CHECK(bench.table("SELECT id, typeof(s), hex(s), typeof(b), hex(b) FROM orders ORDER BY id") ==
        Lines{"1|text|610062|blob|00FF", "2|text||blob|", "3|text||blob|", "4|null||null|",
              "5|text|6E756C6C|null|"});
}

TEST_CASE("decimals keep their token where the column is text or has no type") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER, t DECIMAL_TEXT(40,20), a)");
  bench.start();
  const Lines tokens{"1.10", "0.1", "100", "-0.0", "12345678901234567890.123456789012345678"};
  Lines expected;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    bench.add({num(static_cast<std::int64_t>(i)), dec(tokens[i]), dec(tokens[i])});
    expected.push_back(std::to_string(i) + "|text|" + tokens[i] + "|text|" + tokens[i]);
  }
  bench.must_write();
  CHECK(bench.table("SELECT id, typeof(t), t, typeof(a), a FROM orders ORDER BY id") == expected);
}

TEST_CASE(
    "decimals in a numeric column are stored as numbers, or refused when digits would be lost") {
  for (const char* declared : {"NUMERIC", "DECIMAL(30,10)", "REAL", "MONEY"}) {
    CAPTURE(declared);
    SqliteBench bench("CREATE TABLE orders(id INTEGER, n " + std::string(declared) + ")");
    bench.start();
    bench.add({num(0), dec("1.10")});
    bench.add({num(1), dec("0.000000000000123456789012345")});
    bench.add({num(2), dec("99999999999999.9")});
    bench.must_write();
    CHECK(bench.table("SELECT id, n = 1.1 OR n = 1.23456789012345e-13 OR n = 99999999999999.9,"
                      " typeof(n) FROM orders ORDER BY id") ==
          Lines{"0|1|real", "1|1|real", "2|1|real"});
    for (const char* lost :
         {"1234567890.123456", "12345678901234567890", "1234567890123456789.0"}) {
      CAPTURE(lost);
      bench.add({num(7), dec("2")});
      bench.add({num(8), dec(lost)});
      const auto done = bench.write();
      REQUIRE_FALSE(done.ok());
      CHECK(done.failure().cls == FailureClass::invalid);
      CHECK(done.failure().where == "target sqlite orders: orders/0@1, column n");
      CHECK(done.failure().hint.find("TEXT") != std::string::npos);
      CHECK(bench.table("SELECT count(*) FROM orders") == Lines{"3"});
    }
  }
}

TEST_CASE("text that a column of numeric affinity would turn into a number is refused") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER, code STRING, j JSON)");
  bench.start();
  bench.add({num(1), str("abc"), Value::text("{\"a\":1.10}", Kind::json)});
  bench.add({num(2), str("1 2"), Value::text("\"007\"", Kind::json)});
  bench.add({num(3), str("-"), Value::text("[1.10]", Kind::json)});
  bench.add({num(4), str("1e"), none()});
  bench.add({num(5), str(""), none()});
  bench.must_write();
  CHECK(bench.table() ==
        Lines{"1|abc|{\"a\":1.10}", "2|1 2|\"007\"", "3|-|[1.10]", "4|1e|(null)", "5||(null)"});
  for (const char* text : {"007", " 12 ", "1.50", ".5", "5.", "+3", "1e5", "-1E-5"}) {
    CAPTURE(text);
    bench.add({num(8), str(text), none()});
    const auto done = bench.write();
    REQUIRE_FALSE(done.ok());
    CHECK(done.failure().cls == FailureClass::invalid);
    // The rule is SQLite's own: the same text written without us changes.
    bench.query("INSERT INTO orders VALUES (9, '" + std::string(text) + "', NULL)");
    CHECK(bench.table("SELECT typeof(code) FROM orders WHERE id = 9") != Lines{"text"});
    bench.query("DELETE FROM orders WHERE id = 9");
  }
}

TEST_CASE("booleans are 0 and 1, floats keep their bits and NaN is refused") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER, b BOOLEAN, f DOUBLE PRECISION)");
  bench.start();
  bench.add({num(1), Value::boolean(true), Value::float64(0.1)});
  bench.add({num(2), Value::boolean(false), Value::float64(-1.7976931348623157e308)});
  bench.must_write();
  CHECK(bench.table("SELECT id, b, typeof(b), f = 0.1, f = -1.7976931348623157e308 FROM orders") ==
        Lines{"1|1|integer|1|0", "2|0|integer|0|1"});
  bench.add({num(3), none(), Value::float64(std::nan(""))});
  const auto done = bench.write();
  REQUIRE_FALSE(done.ok());
  CHECK(done.failure().cls == FailureClass::invalid);
}

TEST_CASE("dates and times are text that sorts by time") {
  SqliteBench bench(
      "CREATE TABLE orders(id INTEGER, d DATE, t TIMESTAMP, w TIMESTAMP WITHOUT TIME ZONE,"
      " u UUID)");
  bench.start();
  CHECK(bench.plan[2].type == Type::timestamptz);
  CHECK(bench.plan[3].type == Type::timestamp);
  const auto at = [](Kind kind, std::int64_t i) { return Value::number(kind, i); };
  bench.add({num(1), at(Kind::date, 0), at(Kind::timestamptz, 1'767'225'600'123'456),
             at(Kind::timestamp, 1'767'225'600'000'000),
             Value::text("00000000-0000-0000-0000-000000000001", Kind::uuid)});
  bench.must_write();
  CHECK(bench.table() == Lines{"1|1970-01-01|2026-01-01T00:00:00.123456Z|2026-01-01T00:00:00|"
                               "00000000-0000-0000-0000-000000000001"});
}

TEST_CASE("strict tables take every type they have") {
  SqliteBench bench(
      "CREATE TABLE orders(id INTEGER PRIMARY KEY, r REAL, t TEXT, b BLOB, a ANY) STRICT",
      Mode::merge, {"id"});
  bench.start();
  CHECK(bench.plan[4].type == Type::any);
  bench.add(
      {num(1), Value::float64(2.5), str("1.10"), Value::text("\x01", Kind::bytes), str("007")});
  bench.must_write();
  CHECK(bench.table("SELECT id, r, t, hex(b), typeof(a), a FROM orders") ==
        Lines{"1|2.5|1.10|01|text|007"});
}

TEST_CASE("a refused row leaves nothing of its batch and names its record") {
  SqliteBench bench(
      "CREATE TABLE orders(id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n > 0),"
      " code TEXT UNIQUE)",
      Mode::merge, {"id"});
  bench.start();
  struct Case {
    Row row;
    std::string code;
    std::string column;
  };
  for (const Case& bad :
       {Case{{num(2), none(), str("b")}, "SQLITE_CONSTRAINT_NOTNULL", "orders.n"},
        Case{{num(2), num(0), str("b")}, "SQLITE_CONSTRAINT_CHECK", "n > 0"},
        Case{{num(2), num(1), str("a")}, "SQLITE_CONSTRAINT_UNIQUE", "orders.code"}}) {
    CAPTURE(bad.code);
    bench.add({num(1), num(1), str("a")});
    bench.add(bad.row);
    const auto done = bench.write();
    REQUIRE_FALSE(done.ok());
    CHECK(done.failure().cls == FailureClass::invalid);
    CHECK(done.failure().effect == Effect::none);
    CHECK(done.failure().code == bad.code);
    CHECK(done.failure().where == "target sqlite orders: orders/0@1");
    CHECK(done.failure().what.find(bad.column) != std::string::npos);
    CHECK(bench.table().empty());
  }
  bench.add({num(1), num(1), str("a")});
  bench.must_write();
  CHECK(bench.table() == Lines{"1|1|a"});
}

TEST_CASE("an empty batch writes nothing and is fine") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER)");
  bench.start();
  bench.must_write();
  CHECK(bench.table().empty());
}

TEST_CASE("after close the database is one file, and it can be started again") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER)");
  for (int round = 1; round <= 2; ++round) {
    bench.start();
    bench.add({num(round)});
    bench.must_write();
    bench.target->close();
    CHECK_FALSE(std::filesystem::exists(bench.path().string() + "-wal"));
  }
  CHECK(bench.table() == Lines{"1", "2"});
}
