// Rows that the table refuses are left out; the rest is one transaction.
#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <set>

#include "tests/connectors/postgres/writer.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;

namespace {

constexpr std::int64_t many = 10'000;

std::vector<std::vector<Value>> rows_with(std::int64_t count, const std::set<std::int64_t>& bad) {
  std::vector<std::vector<Value>> rows;
  for (std::int64_t i = 0; i < count; ++i)
    rows.push_back({number(i), text(bad.contains(i) ? "bad" : "good")});
  return rows;
}

std::set<std::int64_t> every(std::int64_t step, std::int64_t count) {
  std::set<std::int64_t> out;
  for (std::int64_t i = 0; i < count; i += step) out.insert(i);
  return out;
}

Writer opened(const PgSchema& schema, Mode mode) {
  Writer w(schema.url(), "t", mode, mode == Mode::merge ? Lines{"id"} : Lines{});
  const auto r = w.open({"id", "v"});
  REQUIRE_MESSAGE(r, r.failure().text());
  return w;
}

// What was told of while the transaction was open.
struct Told {
  std::set<std::int64_t> records;
  Aside aside() {
    return {.refused = [this](const RecordFailure& f) -> Result<std::optional<DeadLetter>> {
      records.insert(f.record);
      return std::optional<DeadLetter>();
    }};
  }
};

void check_refused(const Result<std::vector<RecordFailure>>& refused,
                   const std::set<std::int64_t>& bad, const std::string& code) {
  REQUIRE_MESSAGE(refused, refused.failure().text());
  std::set<std::int64_t> records;
  for (const RecordFailure& f : *refused) {
    CHECK(records.insert(f.record).second);
    if (f.failure.code != code) CHECK(f.failure.code == code);
    if (f.failure.record != f.record) CHECK(f.failure.record == f.record);
  }
  CHECK(records == bad);
}

void check_stored(const PgSchema& schema, std::int64_t count, const std::set<std::int64_t>& bad) {
  std::set<std::int64_t> expected, stored;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!bad.contains(i)) expected.insert(i);
  }
  std::size_t rows = 0;
  for (const std::string& id : lines(schema, "SELECT id FROM t")) {
    stored.insert(std::stoll(id));
    ++rows;
  }
  CHECK(stored == expected);
  CHECK(rows == expected.size());
}

}  // namespace

TEST_CASE("rows that the table refuses are named; the others are stored in one transaction") {
  struct Case {
    const char* ddl;
    const char* code;
  };
  const Case cases[] = {
      {"v text CHECK (v <> 'bad')", "23514"},
      {"v text REFERENCES parents", "23503"},
      {"v text REFERENCES parents DEFERRABLE INITIALLY DEFERRED", "23503"},
      {"v mood", "22P02"},
      {"v word", "23514"},
      {"v varchar(4) CHECK (v <> 'bad')", "23514"},
  };
  const PgSchema schema(server(), "around");
  schema.query(
      "CREATE TABLE parents (k text PRIMARY KEY); INSERT INTO parents VALUES ('good'); "
      "CREATE TYPE mood AS ENUM ('good'); CREATE DOMAIN word AS text CHECK (VALUE <> 'bad')");
  for (const Case& c : cases) {
    for (const Mode mode : {Mode::append, Mode::merge}) {
      for (const std::int64_t count : {1L, 300L, 2500L}) {
        for (const std::int64_t step :
             {count + 1, count / 2 + 1, std::int64_t{10}, std::int64_t{1}}) {
          CAPTURE(c.ddl);
          CAPTURE(count);
          CAPTURE(step);
          CAPTURE(static_cast<int>(mode));
          schema.query(std::string("DROP TABLE IF EXISTS t; CREATE TABLE t (id bigint PRIMARY "
                                   "KEY, x bigint DEFAULT txid_current(), ") +
                       c.ddl + ")");
          Writer w = opened(schema, mode);
          const auto bad = every(step, count);
          Told told;
          check_refused(w.write_around(rows_with(count, bad), told.aside()), bad, c.code);
          CHECK(told.records == bad);
          check_stored(schema, count, bad);
          if (bad.size() < static_cast<std::size_t>(count))
            CHECK(lines(schema, "SELECT count(DISTINCT x) FROM t") == Lines{"1"});
        }
      }
    }
  }
}

TEST_CASE("one bad row in 10,000 costs at most 2 log2(10,000) + 2 write attempts") {
  const PgSchema schema(server(), "around");
  for (const Mode mode : {Mode::append, Mode::merge}) {
    for (const std::int64_t bad : {0L, 1L, 4999L, 5000L, 7777L, 9999L}) {
      CAPTURE(bad);
      schema.query(
          "DROP TABLE IF EXISTS t; DROP SEQUENCE IF EXISTS attempts; CREATE SEQUENCE attempts; "
          "CREATE TABLE t (id bigint PRIMARY KEY, v text CHECK (v <> 'bad')); "
          "CREATE OR REPLACE FUNCTION count_attempt() RETURNS trigger LANGUAGE plpgsql AS "
          "'BEGIN PERFORM nextval(''attempts''); RETURN NULL; END'; "
          "CREATE TRIGGER c BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION "
          "count_attempt()");
      Writer w = opened(schema, mode);
      check_refused(w.write_around(rows_with(many, {bad})), {bad}, "23514");
      check_stored(schema, many, {bad});
      const double attempts = std::stod(*schema.query("SELECT last_value FROM attempts")[0][0]);
      CHECK(attempts <= 2 * std::log2(static_cast<double>(many)) + 2);
      CHECK(attempts >= 2);
    }
  }
}

TEST_CASE("with every tenth row bad more than 20,000 rows a second go through") {
  const PgSchema schema(server(), "around");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text CHECK (v <> 'bad'))");
  constexpr std::int64_t count = 50'000;
  for (const Mode mode : {Mode::append, Mode::merge}) {
    schema.query("TRUNCATE t");
    Writer w = opened(schema, mode);
    const auto bad = every(10, count);
    const auto rows = rows_with(count, bad);
    const auto start = std::chrono::steady_clock::now();
    const auto refused = w.write_around(rows);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    check_refused(refused, bad, "23514");
    check_stored(schema, count, bad);
    MESSAGE("rows a second: " << static_cast<double>(count) / took.count());
    CHECK(static_cast<double>(count) / took.count() > 20'000);
  }
}

TEST_CASE("a batch of puts and deletes where a delete is refused: each is applied or named") {
  const PgSchema schema(server(), "around");
  schema.query(
      "CREATE TABLE t (id bigint PRIMARY KEY, v text); "
      "CREATE TABLE children (t bigint REFERENCES t); "
      "INSERT INTO t SELECT i, 'old' FROM generate_series(0, 9) i; INSERT INTO children VALUES "
      "(4)");
  Writer w = opened(schema, Mode::merge);
  std::vector<Writer::Row> rows;
  for (std::int64_t i = 0; i < 10; ++i) {
    if (i % 2 == 0) rows.push_back({{number(i)}, RowOp::erase});
    if (i % 2 != 0) rows.push_back({{number(i), text("new")}});
  }
  check_refused(w.write_around(rows, {}), {4}, "23503");
  CHECK(lines(schema, "SELECT id, v FROM t ORDER BY 1") ==
        Lines{"1|new", "3|new", "4|old", "5|new", "7|new", "9|new"});
}

TEST_CASE("a role that may not make temporary functions still gets every good row stored") {
  const std::string name = unique_name("around");
  pg_query(server(), "CREATE DATABASE " + name);
  pg_query(server(), "CREATE ROLE " + name + " LOGIN");
  std::string url = server();
  url.replace(url.rfind('/') + 1, std::string::npos, name);
  pg_query(url, "REVOKE TEMPORARY ON DATABASE " + name + " FROM PUBLIC; " +
                    "CREATE TABLE t (id bigint, v text CHECK (v <> 'bad')); " +
                    "GRANT SELECT, INSERT ON t TO " + name);
  {
    Writer w(url + "?user=" + name, "public.t");
    REQUIRE(w.open());
    const auto bad = every(10, 1000);
    check_refused(w.write_around(rows_with(1000, bad)), bad, "23514");
    CHECK(pg_query(url, "SELECT count(DISTINCT id), count(*) FROM t WHERE id % 10 <> 0") ==
          std::vector<PgRow>{{"900", "900"}});
  }
  pg_query(server(), "DROP DATABASE " + name);
  pg_query(server(), "DROP ROLE " + name);
}

TEST_CASE("stored row by row, each type keeps its value") {
  const PgSchema schema(server(), "around");
  schema.query(
      "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN positive AS int4 CHECK (VALUE > 0); "
      "CREATE TABLE t (id bigint, b bool, i2 int2, f4 float4, f8 float8, n numeric(10,2), c "
      "char(3), vc varchar(3), j json, jb jsonb, d date, ts timestamp, tz timestamptz, u uuid, by "
      "bytea, e mood, p positive, net inet, a int[], ok bool CHECK (ok))");
  Writer w(schema.url(), "t");
  const auto opened = w.open();
  REQUIRE_MESSAGE(opened, opened.failure().text());
  std::vector<std::vector<Value>> rows;
  std::set<std::int64_t> bad;
  for (std::int64_t i = 0; i < 400; ++i) {
    if (i % 2 != 0) bad.insert(i);
    rows.push_back({number(i),
                    Value::boolean(true),
                    number(7),
                    token("1.5"),
                    token("2.25"),
                    token("12.30"),
                    text("abc"),
                    text("abc"),
                    json("[1]"),
                    json("{\"a\":1}"),
                    text("2024-02-29"),
                    text("2024-02-29T10:00:00"),
                    text("2024-02-29T10:00:00Z"),
                    text("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
                    text("xy"),
                    text("glad"),
                    number(3),
                    text("10.0.0.1"),
                    text("{1,2}"),
                    Value::boolean(i % 2 == 0)});
  }
  check_refused(w.write_around(rows), bad, "23514");
  check_stored(schema, 400, bad);
  CHECK(lines(schema,
              "SELECT DISTINCT b, i2, f4, f8, n, c, vc, j::text, jb, d, ts, tz AT TIME ZONE 'UTC', "
              "u, by, "
              "e, p, net, a FROM t") ==
        Lines{"t|7|1.5|2.25|12.30|abc|abc|[1]|{\"a\": 1}|2024-02-29|2024-02-29 10:00:00|2024-02-29 "
              "10:00:00|6ba7b810-9dad-11d1-80b4-00c04fd430c8|\\x7879|glad|3|10.0.0.1|{1,2}"});
}

TEST_CASE("a verdict that ends the write leaves nothing behind") {
  const PgSchema schema(server(), "around");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text CHECK (v <> 'bad'))");
  Writer w = opened(schema, Mode::append);
  std::size_t told = 0;
  const Aside stop{.refused = [&](const RecordFailure&) -> Result<std::optional<DeadLetter>> {
    if (++told > 5) return Failure{.cls = FailureClass::invalid, .what = "flood"};
    return std::optional<DeadLetter>();
  }};
  const auto refused = w.write_around(rows_with(1000, every(10, 1000)), stop);
  REQUIRE_FALSE(refused);
  CHECK(refused.failure().what == "flood");
  CHECK(lines(schema, "SELECT * FROM t").empty());
  check_refused(w.write_around(rows_with(100, {50})), {50}, "23514");
  check_stored(schema, 100, {50});
}
