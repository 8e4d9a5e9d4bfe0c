#include <doctest/doctest.h>
#include <thread>

#include "core/failure_point.h"
#include "tests/connectors/postgres/writer.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;
using Row = Writer::Row;

namespace {

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::vector<Value>> numbered(std::int64_t count, std::int64_t from = 0) {
  std::vector<std::vector<Value>> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back({number(from + i), text("v")});
  return rows;
}

Writer opened(const PgSchema& schema, Mode mode, const std::string& name) {
  Writer w(schema.url() + "&application_name=" + name, "t", mode,
           mode == Mode::merge ? Lines{"id"} : Lines{});
  const auto r = w.open();
  REQUIRE_MESSAGE(r, r.failure().text());
  return w;
}

void must(const Result<void>& r) { REQUIRE_MESSAGE(r, Result<void>(r).failure().text()); }

// Ends the session of that application once `query` holds for it; false when that never came.
bool end_session(const PgSchema& schema, const std::string& name, const std::string& query) {
  return wait_for(20s, [&] {
    return !schema
                .query(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                    "application_name = '" +
                    name + "' AND " + query)
                .empty();
  });
}

std::string counts(const PgSchema& schema) {
  return lines(schema, "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t")[0];
}

}  // namespace

TEST_CASE("a batch after one that failed loads: nothing is left aborted") {
  const PgSchema schema(server(), "failure");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text CHECK (v <> 'bad'))");
  for (const Mode mode : {Mode::append, Mode::merge}) {
    Writer w = opened(schema, mode, unique_name("f"));
    CHECK_FALSE(w.write({{number(1), text("good")}, {number(2), text("bad")}}));
    CHECK(lines(schema, "SELECT * FROM t").empty());
    must(w.write({{number(1), text("good")}, {number(3), text("good")}}));
    CHECK(lines(schema, "SELECT id FROM t ORDER BY 1") == Lines{"1", "3"});
    schema.query("TRUNCATE t");
  }
}

TEST_CASE("the record that a constraint refuses is named, wherever it stands in the batch") {
  struct Case {
    const char* ddl;
    Value good, bad;
    const char* code;
  };
  const Case cases[] = {
      {"v text CHECK (v <> 'bad')", text("good"), text("bad"), "23514"},
      {"v text REFERENCES parents", text("a"), text("b"), "23503"},
      {"v text REFERENCES parents DEFERRABLE INITIALLY DEFERRED", text("a"), text("b"), "23503"},
      {"v inet", text("10.0.0.1"), text("10.0.0.999"), "22P02"},
      {"v mood", text("sad"), text("glad"), "22P02"},
      {"v positive", number(1), number(-1), "23514"},
  };
  const PgSchema schema(server(), "failure");
  schema.query(
      "CREATE TABLE parents (k text PRIMARY KEY); INSERT INTO parents VALUES ('a'); "
      "CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)");
  for (const Case& c : cases) {
    for (const Mode mode : {Mode::append, Mode::merge}) {
      for (const std::size_t count : {1UL, 700UL, 2000UL}) {
        CAPTURE(c.ddl);
        CAPTURE(count);
        CAPTURE(static_cast<int>(mode));
        schema.query(
            std::string("DROP TABLE IF EXISTS t; CREATE TABLE t (id bigint PRIMARY KEY, ") + c.ddl +
            ")");
        Writer w = opened(schema, mode, "f");
        std::vector<std::vector<Value>> rows;
        for (std::size_t i = 0; i < count; ++i)
          rows.push_back({number(static_cast<std::int64_t>(i)), c.good});
        const std::size_t bad = count * 2 / 3;
        rows[bad][1] = c.bad;
        const auto written = w.write(rows);
        REQUIRE_FALSE(written);
        const Failure& f = written.failure();
        CAPTURE(f.text());
        CHECK(f.of_record());
        CHECK(f.effect == Effect::none);
        CHECK(f.code == c.code);
        CHECK(f.record == bad);
        CHECK(holds(f.where, "topic/0@" + std::to_string(100 + bad)));
        CHECK_FALSE(holds(f.text(), "glad"));
        CHECK_FALSE(holds(f.text(), "999"));
        CHECK(lines(schema, "SELECT * FROM t").empty());
        rows[bad][1] = c.good;
        must(w.write(rows));
        CHECK(lines(schema, "SELECT count(*) FROM t") == Lines{std::to_string(count)});
      }
    }
  }
}

TEST_CASE("an error in row 700 of 1,000 commits nothing and names row 700") {
  const PgSchema schema(server(), "failure");
  schema.query("CREATE TABLE t (id integer PRIMARY KEY, v text)");
  Writer w = opened(schema, Mode::append, "f");
  auto rows = numbered(1000);
  rows[700][0] = number(3);
  const auto written = w.write(rows);
  REQUIRE_FALSE(written);
  CHECK(written.failure().code == "23505");
  CHECK(written.failure().record == 700U);
  CHECK(counts(schema) == "0|0|NULL|NULL");
}

TEST_CASE("a trigger that drops rows is no success, unless it was seen and said before") {
  const PgSchema schema(server(), "failure");
  schema.query(
      "CREATE TABLE t (id bigint, v text) PARTITION BY RANGE (id); "
      "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100); "
      "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN IF NEW.id = 5 THEN RETURN NULL; END IF; RETURN NEW; END'; "
      "CREATE TRIGGER skip BEFORE INSERT ON t1 FOR EACH ROW EXECUTE FUNCTION skip()");
  Writer w = opened(schema, Mode::append, "f");
  const auto written = w.write(numbered(10));
  REQUIRE_FALSE(written);
  CHECK(written.failure().cls == FailureClass::setup);
  CHECK(holds(written.failure().text(), "9 of 10 rows"));
  CHECK(counts(schema) == "0|0|NULL|NULL");
  schema.query(
      "DROP TABLE t; CREATE TABLE t (id bigint, v text); "
      "CREATE TRIGGER skip BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION skip()");
  Writer noted(schema.url(), "t");
  const auto prepared = noted.open();
  REQUIRE(prepared);
  REQUIRE(prepared.value().notes.size() == 1);
  CHECK(holds(prepared.value().notes[0], "BEFORE INSERT trigger"));
  must(noted.write(numbered(10)));
  CHECK(counts(schema) == "9|9|0|9");
}

TEST_CASE(
    "a session killed in the middle of a batch: the next attempt reconnects and doubles nothing") {
  for (const Mode mode : {Mode::append, Mode::merge}) {
    const PgSchema schema(server(), "failure");
    schema.query(
        "CREATE TABLE t (id bigint PRIMARY KEY, v text); "
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF NEW.id = 1500 THEN PERFORM pg_sleep(30); END IF; RETURN NEW; END'; "
        "CREATE TRIGGER slow AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION slow()");
    const std::string name = unique_name("kill");
    Writer w = opened(schema, mode, name);
    must(w.write(numbered(10)));
    Result<void> written;
    std::thread writing([&] { written = w.write(numbered(3000, 10)); });
    const bool ended = end_session(schema, name, "wait_event = 'PgSleep'");
    writing.join();
    CHECK(ended);
    REQUIRE_FALSE(written);
    CHECK(written.failure().cls == FailureClass::transient);
    CHECK(written.failure().effect == Effect::none);
    CHECK(counts(schema) == "10|10|0|9");
    schema.query("DROP TRIGGER slow ON t");
    must(w.write(numbered(3000, 10)));
    CHECK(counts(schema) == "3010|3010|0|3009");
  }
}

TEST_CASE("a session killed between batches is noticed and replaced") {
  const PgSchema schema(server(), "failure");
  schema.query("CREATE TABLE t (id bigint, v text)");
  const std::string name = unique_name("kill");
  Writer w = opened(schema, Mode::append, name);
  must(w.write(numbered(10)));
  CHECK(end_session(schema, name, "state = 'idle'"));
  REQUIRE(wait_for(10s, [&] {
    return schema.query("SELECT 1 FROM pg_stat_activity WHERE application_name = '" + name + "'")
        .empty();
  }));
  const auto first = w.write(numbered(10, 10));
  REQUIRE_FALSE(first);
  CHECK(first.failure().cls == FailureClass::transient);
  must(w.write(numbered(10, 10)));
  CHECK(counts(schema) == "20|20|0|19");
}

TEST_CASE(
    "a connection lost during COMMIT is an unknown outcome, not a failure to repeat blindly") {
  const PgSchema schema(server(), "failure");
  schema.query(
      "CREATE TABLE t (id bigint, v text); "
      "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'; "
      "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION slow()");
  const std::string name = unique_name("commit");
  Writer w = opened(schema, Mode::append, name);
  Result<void> written;
  std::thread writing([&] { written = w.write(numbered(1)); });
  const bool ended = end_session(schema, name, "query = 'COMMIT' AND wait_event = 'PgSleep'");
  writing.join();
  CHECK(ended);
  REQUIRE_FALSE(written);
  CHECK(written.failure().cls == FailureClass::transient);
  CHECK(written.failure().effect == Effect::unknown);
}

TEST_CASE(
    "cancel ends a write under way at once, the server lets go of its locks, and the next write "
    "works") {
  const PgSchema schema(server(), "failure");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text)");
  const std::string name = unique_name("cancel");
  Writer w = opened(schema, Mode::merge, name);
  w.target().cancel();  // nothing is under way
  must(w.write(numbered(1)));
  PgConnection holder(schema.url());
  holder.query("BEGIN");
  holder.query("LOCK TABLE t");
  Result<void> written;
  std::thread writing([&] { written = w.write(numbered(10)); });
  const std::string waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = '" + name +
                              "' AND wait_event_type = 'Lock'";
  const bool waited = wait_for(20s, [&] { return !schema.query(waiting).empty(); });
  w.target().cancel();
  writing.join();
  CHECK(waited);
  REQUIRE_FALSE(written);
  CHECK(written.failure().cls == FailureClass::transient);
  CHECK(written.failure().effect == Effect::none);
  CHECK(holds(written.failure().text(), "cancelled"));
  CHECK(wait_for(20s, [&] { return schema.query(waiting).empty(); }));
  holder.query("ROLLBACK");
  must(w.write(numbered(10)));
  CHECK(counts(schema) == "10|10|0|9");
}

TEST_CASE("two writers of the same keys in opposite arrival orders finish without a deadlock") {
  const PgSchema schema(server(), "failure");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text)");
  std::vector<std::thread> writers;
  std::atomic<int> failures{0};
  for (int k = 0; k < 2; ++k) {
    writers.emplace_back([&, k] {
      Writer w = opened(schema, Mode::merge, "f");
      for (int round = 0; round < 30; ++round) {
        std::vector<std::vector<Value>> rows;
        for (std::int64_t i = 0; i < 2000; ++i) {
          const std::int64_t id = (k == 0 ? i : 1999 - i) % 200;
          rows.push_back(
              {number(id), text(w.keep(std::to_string(k) + "/" + std::to_string(round)))});
        }
        if (!w.write(rows)) ++failures;
      }
    });
  }
  for (auto& t : writers) t.join();
  CHECK(failures == 0);
  CHECK(counts(schema) == "200|200|0|199");
}

TEST_CASE(
    "each failure point of a write leaves all of the batch or none, and the next write is whole") {
  struct Case {
    const char* point;
    bool stored;
  };
  const Case cases[] = {{"target_write.before", false},
                        {"target_write.torn", false},
                        {"target_commit.before", false},
                        {"target_commit.applied", true},
                        {"target_commit.after", true}};
  for (const Case& c : cases) {
    for (const Mode mode : {Mode::append, Mode::merge}) {
      for (const std::int64_t count : {10, 3000}) {
        CAPTURE(c.point);
        const PgSchema schema(server(), "failure");
        schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text)");
        Writer w = opened(schema, mode, "f");
        REQUIRE(failure_point::arm(std::string(c.point) + "=error:transient"));
        const auto written = w.write(numbered(count));
        failure_point::armed = 0;
        REQUIRE_FALSE(written);
        CHECK(written.failure().cls == FailureClass::transient);
        CHECK(counts(schema).starts_with(c.stored ? std::to_string(count) + "|" : "0|"));
        must(w.write(numbered(count, count)));
        CHECK(counts(schema).starts_with(std::to_string(c.stored ? 2 * count : count) + "|"));
      }
    }
  }
}

TEST_CASE("a failure that does not come again names no record") {
  const PgSchema schema(server(), "failure");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text)");
  Writer w = opened(schema, Mode::merge, "f");
  REQUIRE(failure_point::arm("target_commit.before=error:invalid"));
  const auto written = w.write(numbered(100));
  failure_point::armed = 0;
  REQUIRE_FALSE(written);
  CHECK(written.failure().cls == FailureClass::invalid);
  CHECK_FALSE(written.failure().record.has_value());
  CHECK(counts(schema) == "0|0|NULL|NULL");
}

TEST_CASE("a number beyond numeric is the fault of its record alone") {
  const PgSchema schema(server(), "failure");
  schema.query("CREATE TABLE t (id bigint, v numeric(4,2))");
  Writer w = opened(schema, Mode::append, "f");
  CHECK_THROWS(w.write({{number(1), token("12345.6")}}));  // the cast refuses it already
  must(w.write({{number(1), token("12.34")}}));
  CHECK(lines(schema, "SELECT v FROM t") == Lines{"12.34"});
}
