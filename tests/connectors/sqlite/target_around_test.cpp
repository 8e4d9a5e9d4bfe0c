// Rows that the table refuses are left out; the rest is one transaction.
#include <doctest/doctest.h>

#include "core/failure_point.h"
#include "tests/connectors/sqlite/target_help.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;

namespace {

void add_rows(SqliteBench& bench, int count, const std::set<int>& bad) {
  for (int i = 0; i < count; ++i) bench.add({num(i), str(bad.contains(i) ? "bad" : "good")});
}

Lines ids(int count, const std::set<int>& without) {
  Lines out;
  for (int i = 0; i < count; ++i) {
    if (!without.contains(i)) out.push_back(std::to_string(i));
  }
  return out;
}

}  // namespace

TEST_CASE("rows that a constraint refuses are named, all others are stored") {
  struct Case {
    const char* ddl;
    const char* code;
  };
  const Case cases[] = {
      {"CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT CHECK (v <> 'bad'))",
       "SQLITE_CONSTRAINT_CHECK"},
      {"CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT); CREATE TRIGGER t BEFORE INSERT ON "
       "orders WHEN NEW.v = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
       "SQLITE_CONSTRAINT_TRIGGER"},
      {"CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT); CREATE TRIGGER t BEFORE INSERT ON "
       "orders WHEN NEW.v = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
       "SQLITE_CONSTRAINT_TRIGGER"},
      {"CREATE TABLE parents (v TEXT PRIMARY KEY); INSERT INTO parents VALUES ('good');"
       "CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT REFERENCES parents)",
       "SQLITE_CONSTRAINT_FOREIGNKEY"},
      {"CREATE TABLE parents (v TEXT PRIMARY KEY); INSERT INTO parents VALUES ('good');"
       "CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT REFERENCES parents DEFERRABLE "
       "INITIALLY DEFERRED)",
       "SQLITE_CONSTRAINT_FOREIGNKEY"}};
  const std::set<int> bad = {0, 499, 500, 999};
  for (const Case& c : cases) {
    for (const Mode mode : {Mode::append, Mode::merge}) {
      CAPTURE(c.ddl);
      SqliteBench bench(c.ddl, mode, mode == Mode::merge ? Lines{"id"} : Lines{});
      bench.start();
      add_rows(bench, 1000, bad);
      const std::string code = c.code;
      CHECK(bench.write_around() ==
            Lines{"0 " + code, "499 " + code, "500 " + code, "999 " + code});
      CHECK(bench.table("SELECT id FROM orders ORDER BY 1") == ids(1000, bad));
    }
  }
}

TEST_CASE("a batch of bad rows ends, and a good one after it is stored") {
  SqliteBench bench("CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT CHECK (v <> 'bad'))");
  bench.start();
  for (int i = 0; i < 100; ++i) bench.add({num(i), str("bad")});
  CHECK(bench.write_around().size() == 100);
  CHECK(bench.table().empty());
  add_rows(bench, 10, {});
  CHECK(bench.write_around().empty());
  CHECK(bench.table("SELECT id FROM orders ORDER BY 1") == ids(10, {}));
}

TEST_CASE("what a trigger did for a row before it refused it is undone") {
  SqliteBench bench(
      "CREATE TABLE seen (id INTEGER);"
      "CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT);"
      "CREATE TRIGGER a BEFORE INSERT ON orders BEGIN INSERT INTO seen VALUES (NEW.id); SELECT "
      "CASE WHEN NEW.v = 'bad' THEN RAISE(FAIL, 'no') END; END");
  bench.start();
  add_rows(bench, 5, {2});
  CHECK(bench.write_around() == Lines{"2 SQLITE_CONSTRAINT_TRIGGER"});
  CHECK(bench.table("SELECT id FROM seen ORDER BY 1") == ids(5, {2}));
}

TEST_CASE("a child that comes before its parent in the batch is stored, where COMMIT checks") {
  SqliteBench bench(
      "CREATE TABLE orders (id INTEGER PRIMARY KEY, v INTEGER REFERENCES orders(id) DEFERRABLE "
      "INITIALLY DEFERRED)");
  bench.start();
  bench.add({num(1), num(2)});
  bench.add({num(2), none()});
  CHECK(bench.write_around().empty());
  CHECK(bench.table("SELECT id FROM orders ORDER BY 1") == Lines{"1", "2"});
}

TEST_CASE("a write names the record whose foreign key only COMMIT found open") {
  SqliteBench bench(
      "CREATE TABLE parents (v TEXT PRIMARY KEY); INSERT INTO parents VALUES ('good');"
      "CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT REFERENCES parents DEFERRABLE "
      "INITIALLY DEFERRED)");
  bench.start();
  add_rows(bench, 9, {7});
  const auto done = bench.write();
  REQUIRE_FALSE(done);
  CHECK(done.failure().record == 7U);
  CHECK(done.failure().effect == Effect::none);
  CHECK(bench.table().empty());
}

TEST_CASE("a verdict that ends the write leaves nothing behind") {
  SqliteBench bench("CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT CHECK (v <> 'bad'))");
  bench.start();
  add_rows(bench, 100, {10, 20});
  const Aside stop{.refused = [](const RecordFailure& f) -> Result<std::optional<DeadLetter>> {
    if (f.record == 20) return Failure{.cls = FailureClass::invalid, .what = "flood"};
    return std::optional<DeadLetter>();
  }};
  CHECK(bench.write_around(stop) == Lines{"failed: flood"});
  CHECK(bench.table().empty());
}
