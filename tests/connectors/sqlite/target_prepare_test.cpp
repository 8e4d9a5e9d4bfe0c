// What the SQLite target finds out before the first read.
#include <doctest/doctest.h>
#include <map>
#include <sys/stat.h>

#include "tests/connectors/sqlite/target_help.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;

namespace {

ColumnSpec typed(const std::string& name, Type type, Limits limits = {}) {
  ColumnSpec column;
  column.name = name;
  column.type = type;
  column.limits = limits;
  return column;
}

// Every file of the directory with its bytes.
std::map<std::string, std::string> bytes_in(const TempDir& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    files[entry.path().filename().string()] = read_file(entry.path());
  }
  return files;
}

Failure refused(SqliteBench& bench, const std::vector<ColumnSpec>& columns = {}) {
  auto schema = bench.prepare(columns);
  REQUIRE_FALSE(schema.ok());
  return schema.failure();
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("declared types become the types that values are cast to") {
  SqliteBench bench(
      "CREATE TABLE orders(id INTEGER PRIMARY KEY, a BIGINT NOT NULL, b varchar(20), c REAL, d "
      "double,"
      " e BLOB, f, g NUMERIC(10,2), h decimal, i BOOLEAN DEFAULT 0, j DATE, k DATETIME, l JSON, m "
      "uuid,"
      " n whatever, o NTEXT, p INTEGER GENERATED ALWAYS AS (a + 1) STORED, q AS (a) VIRTUAL)");
  const auto schema = bench.prepare().value();
  CHECK(schema.fixed);
  std::map<std::string, Column> columns;
  for (const Column& column : schema.columns) columns[column.name] = column;
  const std::map<std::string, Type> expected{
      {"id", Type::int64},  {"a", Type::int64},   {"b", Type::text}, {"c", Type::float64},
      {"d", Type::float64}, {"e", Type::bytes},   {"f", Type::any},  {"g", Type::decimal},
      {"h", Type::decimal}, {"i", Type::boolean}, {"j", Type::date}, {"k", Type::timestamptz},
      {"l", Type::json},    {"m", Type::uuid},    {"n", Type::any},  {"o", Type::text}};
  for (const auto& [name, type] : expected) {
    CAPTURE(name);
    CHECK(columns[name].type == type);
    CHECK_FALSE(columns[name].generated);
  }
  CHECK(columns["g"].limits.precision == 10);
  CHECK(columns["g"].limits.scale == 2);
  CHECK_FALSE(columns["a"].nullable);
  CHECK(columns["b"].nullable);
  CHECK(columns["i"].has_default);
  CHECK(columns["id"].has_default);
  CHECK(columns["p"].generated);
  CHECK(columns["q"].generated);
  CHECK(columns["g"].type_text == "NUMERIC(10,2)");
}

TEST_CASE("a key column of a merge takes no null and no default") {
  SqliteBench bench("CREATE TABLE orders(id INTEGER PRIMARY KEY, v TEXT)", Mode::merge, {"id"});
  const auto schema = bench.prepare().value();
  CHECK(schema.key == Lines{"id"});
  CHECK_FALSE(schema.columns[0].nullable);
  CHECK_FALSE(schema.columns[0].has_default);
}

TEST_CASE("a merge key must be a whole unique constraint that compares exactly") {
  const std::map<std::string, std::string> faulty{
      {"CREATE TABLE orders(a INT, b INT, c TEXT)", "exactly on key (a, b)"},
      {"CREATE TABLE orders(a INT, b INT, c TEXT, PRIMARY KEY (a, b, c))", "exactly on key (a, b)"},
      {"CREATE TABLE orders(a INT PRIMARY KEY, b INT UNIQUE)", "exactly on key (a, b)"},
      {"CREATE TABLE orders(a INT, b INT); CREATE UNIQUE INDEX part ON orders(a, b) WHERE b > 0",
       "part covers only a part of the rows"},
      {"CREATE TABLE orders(a INT, b INT); CREATE INDEX plain ON orders(a, b)",
       "exactly on key (a, b)"},
      {"CREATE TABLE orders(a INT, b TEXT COLLATE NOCASE, PRIMARY KEY (a, b))",
       "compares b as NOCASE"},
      {"CREATE TABLE orders(a INT, b INT); CREATE UNIQUE INDEX e ON orders(a, abs(b))",
       "exactly on key (a, b)"},
      {"CREATE TABLE orders(a INT, bb INT, PRIMARY KEY (a, bb))", "no column b"},
      {"CREATE TABLE orders(a INT, b DECIMAL_TEXT, PRIMARY KEY (a, b))", "1.5 is not 1.50"}};
  for (const auto& [ddl, why] : faulty) {
    CAPTURE(ddl);
    SqliteBench bench(ddl, Mode::merge, {"a", "b"});
    const Failure failure = refused(bench);
    CHECK(failure.exit_code() == ExitCode::configuration);
    CHECK_MESSAGE(holds(failure.what, why), failure.text());
    CHECK_FALSE(failure.hint.empty());
  }
  for (const char* ddl :
       {"CREATE TABLE orders(a INT, b INT, PRIMARY KEY (b, a))",
        "CREATE TABLE orders(a INT, b INT, UNIQUE (a, b))",
        "CREATE TABLE orders(a INT, b INT, PRIMARY KEY (a, b)) WITHOUT ROWID",
        "CREATE TABLE orders(a INT, b INT); CREATE UNIQUE INDEX u ON orders(b, a)",
        "CREATE TABLE orders(a INT, b NUMERIC, PRIMARY KEY (a, b))"}) {
    CAPTURE(ddl);
    SqliteBench bench(ddl, Mode::merge, {"a", "b"});
    bench.start();
    bench.add({num(1), num(1)});
    bench.must_write();
    CHECK(bench.table("SELECT a, b FROM orders") == Lines{"1|1"});
  }
}

TEST_CASE("the hint for a missing constraint makes it") {
  SqliteBench bench("CREATE TABLE orders(a INT, \"b c\" INT)", Mode::merge, {"a", "b c"});
  bench.query(refused(bench).hint);
  CHECK(bench.prepare().ok());
}

TEST_CASE("what is not an ordinary table is refused with the next thing to do") {
  SqliteBench bench(
      "CREATE TABLE order_lines(id INT); CREATE VIEW orders_view AS SELECT 1;"
      "CREATE VIRTUAL TABLE fts USING fts5(x)");
  bench.spec.table = "order_line";
  CHECK(holds(refused(bench).what, "did you mean \"order_lines\""));
  bench.spec.table = "orders_view";
  CHECK(holds(refused(bench).what, "is a view"));
  bench.spec.table = "fts";
  CHECK(holds(refused(bench).what, "is a virtual table"));
  bench.spec.table = "public.order_lines";
  CHECK(holds(refused(bench).what, "no schema public"));
  bench.spec.table = "ORDER_LINES";
  CHECK(bench.prepare().ok());
}

TEST_CASE(
    "a file that is missing, foreign, a directory or not writable is found before the first read") {
  SqliteBench bench;
  CHECK(refused(bench).exit_code() == ExitCode::configuration);
  bench.dir().write("warehouse.db",
                    "this is no database, but long enough to look like a file of one .....");
  CHECK(refused(bench).code == "SQLITE_NOTADB");
  std::filesystem::remove(bench.path());
  std::filesystem::create_directory(bench.path());
  CHECK(holds(refused(bench).what, "must be a file"));
  CHECK_FALSE(std::filesystem::exists(bench.path() / "x"));
}

TEST_CASE("prepare without create_table leaves every byte as it was, in any journal mode") {
  for (const char* mode : {"DELETE", "WAL"}) {
    CAPTURE(mode);
    SqliteBench bench("PRAGMA journal_mode=" + std::string(mode) +
                      "; CREATE TABLE orders(id INTEGER)");
    const auto before = bytes_in(bench.dir());
    REQUIRE(bench.prepare().ok());
    bench.target->close();
    CHECK(bytes_in(bench.dir()) == before);
  }
}

TEST_CASE(
    "create_table makes the file for this user alone, and the types come back as they were given") {
  SqliteBench bench("", Mode::merge, {"id", "price"});
  bench.spec.create_table = true;
  const std::vector<ColumnSpec> columns{
      typed("id", Type::int64),
      typed("price", Type::decimal, {.precision = 12, .scale = 2}),
      typed("amount", Type::decimal, {.precision = 30, .scale = 4}),
      typed("free", Type::decimal),
      typed("t", Type::text),
      typed("j", Type::jsonb),
      typed("b", Type::boolean),
      typed("f", Type::float64),
      typed("raw", Type::bytes),
      typed("d", Type::date),
      typed("w", Type::timestamp),
      typed("z", Type::timestamptz),
      typed("u", Type::uuid),
      typed("order by", Type::text)};
  for (int round = 0; round < 2; ++round) {
    const auto schema = bench.prepare(columns).value();
    CHECK(schema.notes.size() == (round == 0 ? 2U : 0U));
    REQUIRE(schema.columns.size() == columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      CAPTURE(columns[c].name);
      CHECK(schema.columns[c].name == columns[c].name);
      CHECK(schema.columns[c].type ==
            (columns[c].type == Type::jsonb ? Type::json : *columns[c].type));
      CHECK(schema.columns[c].limits.precision == columns[c].limits.precision);
      CHECK(schema.columns[c].limits.scale == columns[c].limits.scale);
    }
  }
  struct stat s {};
  REQUIRE(::stat(bench.path().c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  bench.start({"id", "price", "amount", "j"});  // the table is there: no columns are needed
  bench.add({num(1), dec("1.5"), dec("1.10"), Value::text("1.10", Kind::json)});
  bench.add({num(1), dec("1.50"), dec("1.20"), Value::text("1.20", Kind::json)});
  bench.must_write();
  bench.add({num(1), dec("1.500"), dec("1.30"), Value::text("1.30", Kind::json)});
  bench.must_write();
  CHECK(bench.table("SELECT id, price, amount, j FROM orders") == Lines{"1|1.5|1.30|1.30"});
}

TEST_CASE("create_table keeps a table that is there, and needs types and a directory") {
  SqliteBench bench("CREATE TABLE orders(mine TEXT)");
  bench.spec.create_table = true;
  CHECK(bench.prepare({typed("other", Type::text)}).value().columns[0].name == "mine");
  SqliteBench untyped;
  untyped.spec.create_table = true;
  ColumnSpec bare;
  bare.name = "x";
  CHECK(holds(refused(untyped, {bare}).what, "column x has no type"));
  CHECK(holds(refused(untyped).what, "no columns"));
  CHECK_FALSE(std::filesystem::exists(untyped.path()));
  untyped.spec.url = "sqlite:" + (untyped.dir() / "no" / "such.db").string();
  CHECK(refused(untyped, {typed("x", Type::text)}).exit_code() == ExitCode::cannot_create);
}
