#include <doctest/doctest.h>

#include "tests/connectors/postgres/writer.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;
using Row = Writer::Row;

namespace {

constexpr std::int64_t many = 1'500;  // more than array parameters are used for

Row put(std::vector<Value> cells) { return {std::move(cells)}; }
Row erase(std::vector<Value> cells) { return {std::move(cells), RowOp::erase}; }

void must(const Result<void>& r) { REQUIRE_MESSAGE(r, Result<void>(r).failure().text()); }

}  // namespace

TEST_CASE("the last record of a key in the batch wins, with the key absent and present before") {
  const PgSchema schema(server(), "merge");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v bigint)");
  Writer w(schema.url(), "t", Mode::merge, {"id"});
  REQUIRE(w.open());
  for (int round = 0; round < 2; ++round) {
    must(w.write({{number(7), number(1)},
                  {number(8), number(1)},
                  {number(7), number(2)},
                  {number(7), number(3)}}));
    CHECK(lines(schema, "SELECT id, v FROM t ORDER BY id") == Lines{"7|3", "8|1"});
  }
}

TEST_CASE("a record that lacks a column gets null there, never the value of the record before") {
  const PgSchema schema(server(), "merge");
  schema.query("CREATE TABLE t (k text PRIMARY KEY, a text, b bigint)");
  schema.query("INSERT INTO t VALUES ('k1', 'old', 1), ('k4', 'old', 4), ('k5', 'old', 5)");
  Writer w(schema.url(), "t", Mode::merge, {"k"});
  REQUIRE(w.open());
  must(w.write({erase({text("k1")}), erase({text("k2")}), put({text("k3"), text("x"), number(9)}),
                erase({text("k4")}), put({text("k5"), text("y")})}));
  CHECK(lines(schema, "SELECT * FROM t ORDER BY k") == Lines{"k3|x|9", "k5|y|NULL"});
}

TEST_CASE("a chain of key changes ends as if its events came one by one") {
  const PgSchema schema(server(), "merge");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text)");
  schema.query("INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 3000) i");
  Writer w(schema.url(), "t", Mode::merge, {"id"});
  REQUIRE(w.open());
  std::vector<Row> rows;
  for (std::int64_t i = 3000; i >= 1; --i) {
    rows.push_back(erase({number(i)}));
    rows.push_back(put({number(i + 1), text(w.keep("row " + std::to_string(i)))}));
  }
  must(w.write(rows));
  CHECK(
      lines(schema, "SELECT count(*), min(id), max(id), bool_and(v = 'row ' || (id - 1)) FROM t") ==
      Lines{"3000|2|3001|t"});
}

TEST_CASE(
    "keys reach the same row whatever their spelling: uuid, bigint from text, numeric, char") {
  struct Case {
    const char* type;
    Value first, again;
  };
  const Case cases[] = {
      {"uuid", text("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
       text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")},
      {"bigint", text("42"), number(42)},
      {"numeric(10,2)", token("1.5"), token("1.50")},
      {"numeric", token("100"), token("1E+2")},
      {"char(4)", text("ab"), text("ab  ")},
      {"timestamptz", text("2024-01-01T00:00:00Z"), text("2024-01-01T05:30:00+05:30")},
      {"date", text("2024-01-01"), text("2024-01-01")},
      {"boolean", Value::boolean(true), Value::boolean(true)},
      {"bytea", text("ab"), text("ab")},
  };
  for (const Case& c : cases) {
    CAPTURE(c.type);
    const PgSchema schema(server(), "merge");
    schema.query(std::string("CREATE TABLE t (k ") + c.type + " PRIMARY KEY, v bigint)");
    Writer w(schema.url(), "t", Mode::merge, {"k"});
    const auto opened = w.open();
    REQUIRE_MESSAGE(opened, opened.failure().text());
    must(w.write({{c.first, number(1)}, {c.again, number(2)}}));
    CHECK(lines(schema, "SELECT v FROM t") == Lines{"2"});
    must(w.write({{c.first, number(3)}}));
    CHECK(lines(schema, "SELECT v FROM t") == Lines{"3"});
    must(w.write({erase({c.again})}));
    CHECK(lines(schema, "SELECT v FROM t").empty());
  }
}

TEST_CASE("many rows merge as few do: inserts, updates and erases of one batch") {
  const PgSchema schema(server(), "merge");
  schema.query(
      "CREATE TABLE t (a bigint, b text, v numeric, w bigint DEFAULT 5, PRIMARY KEY (b, a))");
  schema.query("INSERT INTO t SELECT i, 'x', i, 1 FROM generate_series(1, 1000) i");
  Writer w(schema.url(), "t", Mode::merge, {"a", "b"});
  REQUIRE(w.open({"v", "b", "a"}));
  std::vector<Row> rows;
  for (std::int64_t i = 501; i <= 500 + many; ++i)
    rows.push_back(put({token("0.50"), text("x"), number(i)}));
  for (std::int64_t i = 1; i <= 10; ++i) rows.push_back(erase({Value(), text("x"), number(i)}));
  must(w.write(rows));
  CHECK(lines(schema, "SELECT count(*), min(a), max(a) FROM t") == Lines{"1990|11|2000"});
  CHECK(lines(schema, "SELECT count(*) FROM t WHERE a <= 500 AND v = a AND w = 1") == Lines{"490"});
  CHECK(lines(schema, "SELECT v, w, count(*) FROM t WHERE a > 500 GROUP BY 1, 2 ORDER BY 2") ==
        Lines{"0.50|1|500", "0.50|5|1000"});
}

TEST_CASE("a row that is there already, to the byte, is not written again") {
  const PgSchema schema(server(), "merge");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, n numeric, j json, s text)");
  Writer w(schema.url(), "t", Mode::merge, {"id"});
  REQUIRE(w.open());
  const std::vector<std::vector<Value>> rows = {
      {number(1), token("1.5"), json("{\"a\":1}"), Value::null()},
      {number(2), token("2"), Value::null(), text("x")}};
  must(w.write(rows));
  const auto before = lines(schema, "SELECT ctid, xmin FROM t ORDER BY id");
  must(w.write(rows));
  CHECK(lines(schema, "SELECT ctid, xmin FROM t ORDER BY id") == before);
  must(w.write({{number(1), token("1.50"), json("{\"a\":1}"), Value::null()}}));
  CHECK(lines(schema, "SELECT id, n FROM t ORDER BY id") == Lines{"1|1.50", "2|2"});
}

TEST_CASE("a table of key columns alone is merged, and rows that exist stay") {
  const PgSchema schema(server(), "merge");
  schema.query("CREATE TABLE t (a bigint, b bigint, PRIMARY KEY (a, b))");
  Writer w(schema.url(), "t", Mode::merge, {"a", "b"});
  REQUIRE(w.open());
  must(w.write({{number(1), number(2)}, {number(1), number(2)}, {number(3), number(4)}}));
  must(w.write({{number(1), number(2)}, {number(5), number(6)}}));
  CHECK(lines(schema, "SELECT * FROM t ORDER BY 1") == Lines{"1|2", "3|4", "5|6"});
}

TEST_CASE("an upsert may take the unique value of a row that the same batch erases") {
  const PgSchema schema(server(), "merge");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, mail text UNIQUE)");
  schema.query("INSERT INTO t VALUES (1, 'a@b')");
  Writer w(schema.url(), "t", Mode::merge, {"id"});
  REQUIRE(w.open());
  must(w.write({put({number(2), text("a@b")}), erase({number(1)})}));
  CHECK(lines(schema, "SELECT * FROM t") == Lines{"2|a@b"});
}

TEST_CASE("names with capitals, quotes, spaces and reserved words are found and kept apart") {
  const PgSchema schema(server(), "merge");
  const std::string mixed = unique_name("Mixed");
  pg_query(server(), "CREATE SCHEMA \"" + mixed + "\"");
  const std::string table = "\"" + mixed + "\".\"Order \"\"Items\"";
  const std::vector<std::string> names = {"userId", "userid", "order",      "select",
                                          "a\"b",   "naïve",  "with space", "new"};
  std::string ddl;
  for (const std::string& name : names) {
    std::string quoted;
    for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
    ddl += "\"" + quoted + "\" bigint, ";
  }
  pg_query(server(), "CREATE TABLE " + table + " (" + ddl + "PRIMARY KEY (\"order\", \"a\"\"b\"))");
  for (const Mode mode : {Mode::merge, Mode::append}) {
    for (const std::int64_t count : {std::int64_t{2}, many}) {
      pg_query(server(), "TRUNCATE " + table);
      Writer w(server(), table, mode, mode == Mode::merge ? Lines{"order", "a\"b"} : Lines{});
      const auto opened = w.open(names);
      REQUIRE_MESSAGE(opened, opened.failure().text());
      std::vector<Row> rows;
      for (std::int64_t i = 0; i < count; ++i) {
        std::vector<Value> cells;
        for (std::int64_t c = 0; c < 8; ++c) cells.push_back(number(i * 10 + c));
        rows.push_back(put(cells));
      }
      must(w.write(rows));
      const auto found = pg_query(
          server(), "SELECT count(*), sum(\"userId\"), sum(\"new\") - count(*) * 7 FROM " + table);
      CHECK(found[0][0] == std::to_string(count));
      CHECK(found[0][1] == std::to_string(count * (count - 1) * 5));
      CHECK(found[0][2] == found[0][1]);
    }
  }
  pg_query(server(), "DROP SCHEMA \"" + mixed + "\" CASCADE");
}

TEST_CASE("20 columns x 5,000 rows are one transaction, appended and merged") {
  const PgSchema schema(server(), "merge");
  std::string ddl = "id bigint PRIMARY KEY";
  for (int i = 1; i < 20; ++i) ddl += ", c" + std::to_string(i) + " text";
  for (const Mode mode : {Mode::append, Mode::merge}) {
    for (const std::int64_t count : {1000, 5000}) {
      schema.query("DROP TABLE IF EXISTS t; CREATE TABLE t (" + ddl + ")");
      Writer w(schema.url(), "t", mode, mode == Mode::merge ? Lines{"id"} : Lines{});
      REQUIRE(w.open());
      std::vector<std::vector<Value>> rows;
      for (std::int64_t i = 0; i < count; ++i) {
        std::vector<Value> cells = {number(i)};
        for (int c = 1; c < 20; ++c) {
          cells.push_back(text(w.keep(std::to_string(i) + "/" + std::to_string(c))));
        }
        rows.push_back(cells);
      }
      must(w.write(rows));
      CHECK(lines(schema,
                  "SELECT count(DISTINCT id), count(DISTINCT xmin::text), "
                  "bool_and(c1 = id || '/1' AND c19 = id || '/19') FROM t") ==
            Lines{std::to_string(count) + "|1|t"});
    }
  }
}

TEST_CASE("nothing is left in the session: no temporary table, no setting, no prepared statement") {
  const PgSchema schema(server(), "merge");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, i inet)");
  Writer w(schema.url(), "t", Mode::merge, {"id"});
  REQUIRE(w.open());
  std::vector<Row> rows = {erase({number(-1)})};
  for (std::int64_t i = 0; i < many; ++i) rows.push_back(put({number(i), text("::1")}));
  must(w.write(rows));
  must(w.write({{number(1), text("::2")}}));
  CHECK(lines(schema, "SELECT count(*) FROM pg_class WHERE relname = 'flow_stage'") == Lines{"0"});
  CHECK(lines(schema,
              "SELECT state, xact_start IS NULL FROM pg_stat_activity WHERE application_name "
              "= 'flow/test' AND query = 'COMMIT'")[0] == "idle|t");
  CHECK(lines(schema, "SELECT count(*) FROM t WHERE i = '::1'") == Lines{"1499"});
}

TEST_CASE(
    "append keeps every record, in record order, and leaves unnamed columns to their defaults") {
  const PgSchema schema(server(), "append");
  schema.query(
      "CREATE TABLE t (n bigint GENERATED ALWAYS AS IDENTITY, v text, "
      "w text DEFAULT 'none', x text GENERATED ALWAYS AS (v || '!') STORED)");
  Writer w(schema.url(), "t");
  const auto opened = w.open({"v"});
  REQUIRE_MESSAGE(opened, opened.failure().text());
  CHECK(opened.value().columns[0].generated);
  CHECK(opened.value().columns[2].has_default);
  CHECK(opened.value().columns[3].generated);
  must(w.write(std::vector<std::vector<Value>>{{text("b")}, {text("a")}, {text("b")}}));
  CHECK(lines(schema, "SELECT * FROM t ORDER BY n") ==
        Lines{"1|b|none|b!", "2|a|none|a!", "3|b|none|b!"});
}

TEST_CASE("an empty batch begins no transaction") {
  const PgSchema schema(server(), "append");
  schema.query("CREATE TABLE t (v bigint)");
  Writer w(schema.url(), "t");
  REQUIRE(w.open());
  const auto seen = [&] {
    return lines(schema,
                 "SELECT state_change FROM pg_stat_activity WHERE application_name = "
                 "'flow/test' AND query LIKE '%indnkeyatts%' ORDER BY backend_start DESC LIMIT 1");
  };
  const auto before = seen();
  REQUIRE(before.size() == 1);
  must(w.write(std::vector<Row>{}));
  CHECK(seen() == before);
}

TEST_CASE("partitioned tables, updatable views and tables with row security take rows") {
  const PgSchema schema(server(), "append");
  schema.query(
      "CREATE TABLE p (id bigint PRIMARY KEY, v text) PARTITION BY RANGE (id); "
      "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); "
      "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (10000)");
  for (const Mode mode : {Mode::append, Mode::merge}) {
    Writer w(schema.url(), "p", mode, mode == Mode::merge ? Lines{"id"} : Lines{});
    REQUIRE(w.open());
    must(w.write({{number(1), text("a")}, {number(11), text("b")}}));
    CHECK(lines(schema, "SELECT tableoid::regclass, v FROM p ORDER BY id") ==
          Lines{"p1|a", "p2|b"});
    schema.query("TRUNCATE p");
  }
  schema.query("CREATE TABLE behind (id bigint, v text); CREATE VIEW v AS SELECT * FROM behind");
  Writer view(schema.url(), "v");
  REQUIRE(view.open());
  must(view.write({{number(1), text("a")}}));
  CHECK(lines(schema, "SELECT * FROM behind") == Lines{"1|a"});
}
