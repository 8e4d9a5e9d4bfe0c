#include <algorithm>
#include <doctest/doctest.h>

#include "tests/connectors/postgres/writer.h"
#include "tests/support/services.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;

namespace {

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// prepare() is refused, before anything is read, and says each of `parts`.
void refused(Writer& w, FailureClass cls, ExitCode exit, const Lines& parts) {
  const auto prepared = w.prepare();
  REQUIRE_FALSE(prepared);
  const Failure& f = prepared.failure();
  const std::string said = f.text();
  CAPTURE(said);
  CHECK(f.cls == cls);
  CHECK(f.exit_code() == exit);
  for (const std::string& part : parts) CHECK_MESSAGE(holds(said, part), part);
  CHECK_FALSE(f.hint.empty());
}

void refused_setup(Writer& w, const Lines& parts) {
  refused(w, FailureClass::setup, ExitCode::configuration, parts);
}

}  // namespace

TEST_CASE("a merge key without a matching unique constraint is refused, naming what there is") {
  const PgSchema schema(server(), "key");
  schema.query(
      "CREATE TABLE t (tenant bigint, id bigint, deleted boolean, CONSTRAINT only_id PRIMARY KEY "
      "(id))");
  Writer w(schema.url(), "t", Mode::merge, {"tenant", "id"});
  refused_setup(w, {"(tenant, id)", schema.name() + ".t", "only_id is over (id)",
                    "ADD UNIQUE (\"tenant\", \"id\")"});
  Writer fewer(schema.url(), "t", Mode::merge, {"tenant"});
  refused_setup(fewer, {"(tenant)", "only_id"});
  schema.query("CREATE UNIQUE INDEX id_tenant ON t (id, tenant)");
  CHECK(w.prepare());
}

TEST_CASE("a partial, deferrable or expression index is no merge key, and is named") {
  const PgSchema schema(server(), "key");
  schema.query("CREATE TABLE t (id bigint, deleted boolean NOT NULL)");
  Writer w(schema.url(), "t", Mode::merge, {"id"});
  refused_setup(w, {"it has none"});
  schema.query("CREATE UNIQUE INDEX live ON t (id) WHERE NOT deleted");
  refused_setup(w, {"live is partial"});
  schema.query("DROP INDEX live; ALTER TABLE t ADD CONSTRAINT late UNIQUE (id) DEFERRABLE");
  refused_setup(w, {"late is deferrable"});
  schema.query("ALTER TABLE t DROP CONSTRAINT late; CREATE UNIQUE INDEX shifted ON t ((id + 1))");
  refused_setup(w, {"shifted is over an expression"});
  schema.query("CREATE UNIQUE INDEX wide ON t (id) INCLUDE (deleted)");
  CHECK(w.prepare());
}

TEST_CASE("a key whose equal values can be spelled differently is refused") {
  const PgSchema schema(server(), "key");
  schema.query(
      "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = "
      "false)");
  for (const char* type : {"jsonb", "inet", "time", "timestamptz(0)", "text COLLATE folding"}) {
    CAPTURE(type);
    schema.query(std::string("DROP TABLE IF EXISTS t; CREATE TABLE t (id ") + type +
                 " PRIMARY KEY)");
    Writer w(schema.url(), "t", Mode::merge, {"id"});
    refused_setup(w, {"key column id"});
  }
}

TEST_CASE("a key that the table computes, or does not have, is refused") {
  const PgSchema schema(server(), "key");
  schema.query(
      "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id bigint)");
  Writer computed(schema.url(), "t", Mode::merge, {"id"});
  refused_setup(computed, {"id is computed by the table"});
  Writer typo(schema.url(), "t", Mode::merge, {"orderid"});
  refused_setup(typo, {"no key column orderid", "order_id"});
}

TEST_CASE("null in a key column is refused even where the table would take it") {
  const PgSchema schema(server(), "key");
  schema.query("CREATE TABLE t (id bigint UNIQUE, v text)");
  Writer w(schema.url(), "t", Mode::merge, {"id"});
  const auto prepared = w.prepare();
  REQUIRE(prepared);
  CHECK_FALSE(prepared.value().columns[0].nullable);
  CHECK(prepared.value().columns[1].nullable);
}

TEST_CASE("a missing table is refused with the name that was meant") {
  const PgSchema schema(server(), "table");
  schema.query("CREATE TABLE \"Invoices\" (id bigint)");
  Writer wrong_case(schema.url(), "invoices");
  refused_setup(wrong_case, {"no table invoices", "did you mean \"Invoices\""});
  Writer in_schema(server(), schema.name() + ".Invoice");
  refused_setup(in_schema, {schema.name() + ".Invoices", "create_table"});
  Writer right(schema.url(), "Invoices");
  CHECK(right.prepare());
}

TEST_CASE("names that cannot be table names in Postgres are refused before anything is asked") {
  const PgSchema schema(server(), "table");
  const std::string name(70, 'x');
  Writer long_table(schema.url(), name);
  refused_setup(long_table, {"70 bytes"});
  schema.query("CREATE TABLE t (" + std::string(63, 'x') + " bigint PRIMARY KEY)");
  Writer long_key(schema.url(), "t", Mode::merge, {std::string(63, 'x') + "1234567"});
  refused_setup(long_key, {"70 bytes"});
  Writer three(schema.url(), "a.b.c");
  refused_setup(three, {"more than two parts"});
}

TEST_CASE(
    "create_table makes the table with its key, says what it made, and uses it the next time") {
  const PgSchema schema(server(), "table");
  std::vector<ColumnSpec> columns(3);
  columns[0].name = "Id";
  columns[0].type = Type::int64;
  columns[1].name = "amount";
  columns[1].type = Type::decimal;
  columns[1].limits.precision = 10;
  columns[1].limits.scale = 2;
  columns[2].name = "note";
  columns[2].type = Type::text;
  columns[2].limits.length = 20;
  Writer w(schema.url(), schema.name() + ".Orders", Mode::merge, {"Id"});
  w.spec().create_table = true;
  w.dry_run = true;
  const auto planned = w.prepare(columns);
  REQUIRE_MESSAGE(planned, planned.failure().text());
  CHECK(planned.value().notes.size() == 1);
  CHECK(holds(planned.value().notes[0], "would create: CREATE TABLE"));
  CHECK(planned.value().columns.size() == 3);
  CHECK(lines(schema, "SELECT count(*) FROM pg_tables WHERE schemaname = '" + schema.name() +
                          "'") == Lines{"0"});
  w.dry_run = false;
  const auto created = w.prepare(columns);
  REQUIRE_MESSAGE(created, created.failure().text());
  REQUIRE(created.value().notes.size() == 1);
  CHECK(
      holds(created.value().notes[0],
            "\"Id\" bigint, \"amount\" numeric(10,2), \"note\" varchar(20), PRIMARY KEY (\"Id\")"));
  const auto again = w.prepare(columns);
  REQUIRE(again);
  CHECK(again.value().notes.empty());
  CHECK(again.value().columns[1].limits.precision == 10);
  CHECK(again.value().columns[1].limits.scale == 2);
  CHECK(again.value().columns[2].limits.length == 20);
  CHECK(again.value().columns[2].limits.refuses_nul);
  Writer untyped(schema.url(), "other");
  untyped.spec().create_table = true;
  std::vector<ColumnSpec> bare(1);
  bare[0].name = "v";
  const auto refused = untyped.prepare(bare);
  REQUIRE_FALSE(refused);
  CHECK(holds(refused.failure().text(), "column v"));
}

TEST_CASE("each missing right is named with the GRANT that gives it, before the first read") {
  const PgSchema schema(server(), "rights");
  const std::string role = unique_name("writer");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text); CREATE ROLE " + role + " LOGIN");
  // The same server, as that role.
  std::string url = server();
  const auto at = url.find("//") + 2;
  url = url.substr(0, at) + role + url.substr(url.find('@'));
  schema.query("GRANT CONNECT ON DATABASE flow TO " + role);
  Writer append(url, schema.name() + ".t");
  const auto lacks = [&](Writer& w, const Lines& parts) {
    refused(w, FailureClass::unauthorized, ExitCode::unauthorized, parts);
  };
  lacks(append, {"USAGE", "GRANT USAGE ON SCHEMA"});
  schema.query("GRANT USAGE ON SCHEMA " + schema.name() + " TO " + role);
  lacks(append, {"INSERT", "GRANT INSERT ON", role});
  schema.query("GRANT INSERT ON t TO " + role);
  CHECK(append.prepare());
  Writer merge(url, schema.name() + ".t", Mode::merge, {"id"});
  merge.spec().on_tombstone = OnTombstone::erase;
  lacks(merge, {"SELECT, UPDATE, DELETE"});
  schema.query("GRANT SELECT, UPDATE ON t TO " + role);
  lacks(merge, {"lacks DELETE"});
  schema.query("GRANT DELETE ON t TO " + role);
  lacks(merge, {"TEMPORARY on database flow", "GRANT TEMPORARY ON DATABASE \"flow\""});
  schema.query("GRANT TEMPORARY ON DATABASE flow TO " + role);
  CHECK(merge.prepare());
  schema.query("REVOKE INSERT ON t FROM " + role + "; GRANT INSERT (id) ON t TO " + role);
  lacks(append, {"INSERT"});
  CHECK(append.open({"id"}));
  schema.query("GRANT INSERT ON t TO " + role +
               "; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 10)");
  REQUIRE(append.open({"id"}));
  REQUIRE(append.write(std::vector<std::vector<Value>>{{number(1)}, {number(2)}}));
  const auto hidden = append.write(std::vector<std::vector<Value>>{{number(3)}, {number(10)}});
  REQUIRE_FALSE(hidden);
  CHECK(hidden.failure().code == "42501");
  CHECK(lines(schema, "SELECT id FROM t ORDER BY id") == Lines{"1", "2"});
  schema.query("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_CASE(
    "views without INSERT, foreign keys of kind and other relations are refused by what they are") {
  const PgSchema schema(server(), "kind");
  schema.query(
      "CREATE TABLE t (id bigint PRIMARY KEY); CREATE VIEW plain AS SELECT * FROM t; "
      "CREATE VIEW grouped AS SELECT count(*) AS n FROM t; CREATE SEQUENCE s; "
      "CREATE MATERIALIZED VIEW m AS SELECT 1 AS one; "
      "CREATE TABLE ruled (id bigint PRIMARY KEY); "
      "CREATE RULE r AS ON INSERT TO ruled DO ALSO NOTHING");
  Writer grouped(schema.url(), "grouped");
  refused_setup(grouped, {"view without INSERT"});
  Writer merged(schema.url(), "plain", Mode::merge, {"id"});
  refused_setup(merged, {"view, which mode: merge cannot write"});
  Writer sequence(schema.url(), "s");
  refused_setup(sequence, {"is a sequence"});
  Writer materialized(schema.url(), "m");
  refused_setup(materialized, {"is a materialized view"});
  Writer ruled(schema.url(), "ruled", Mode::merge, {"id"});
  refused_setup(ruled, {"has rules"});
}

TEST_CASE("wrong credentials stop the run, and no message shows the password") {
  Writer wrong(services().postgres_guarded, "t");
  std::string url = services().postgres_guarded;
  url.replace(url.find("guarded-secret"), 14, "canary-4711");
  Writer w(url, "t");
  const auto prepared = w.prepare();
  REQUIRE_FALSE(prepared);
  CHECK(prepared.failure().cls == FailureClass::unauthorized);
  CHECK(prepared.failure().code == "28P01");
  CHECK(prepared.failure().exit_code() == ExitCode::unauthorized);
  CHECK(holds(prepared.failure().text(), "as guarded"));
  CHECK_FALSE(holds(prepared.failure().text(), "canary"));
  url.replace(url.find(":canary-4711"), 12, "");
  Writer none(url, "t");
  const auto without = none.prepare();
  REQUIRE_FALSE(without);
  CHECK(without.failure().cls == FailureClass::unauthorized);
}

TEST_CASE(
    "a database that does not exist, a URL that is none and a server that is away are told apart") {
  std::string url = server();
  Writer database(url.substr(0, url.rfind('/')) + "/no_such_database", "t");
  const auto no_database = database.prepare();
  REQUIRE_FALSE(no_database);
  CHECK(no_database.failure().cls == FailureClass::setup);
  CHECK(no_database.failure().code == "3D000");
  Writer broken("postgres://user:canary-4711/slash@host:x/db", "t");
  const auto no_url = broken.prepare();
  REQUIRE_FALSE(no_url);
  CHECK(no_url.failure().cls == FailureClass::setup);
  CHECK_FALSE(holds(no_url.failure().text(), "canary"));
  Writer away("postgres://u:canary-4711@127.0.0.1:1/db", "t");
  const auto no_server = away.prepare();
  REQUIRE_FALSE(no_server);
  CHECK(no_server.failure().cls == FailureClass::transient);
  CHECK(holds(no_server.failure().text(), "127.0.0.1:1/db as u"));
  CHECK_FALSE(holds(no_server.failure().text(), "canary"));
}

TEST_CASE("of several hosts the first that answers is used") {
  const PgSchema schema(server(), "hosts");
  schema.query("CREATE TABLE t (id bigint)");
  std::string url = schema.url();
  url.insert(url.find('@') + 1, "127.0.0.1:1,");
  Writer w(url, "t");
  const auto prepared = w.prepare();
  CHECK_MESSAGE(prepared, prepared.failure().text());
}

TEST_CASE("the application name is the pipeline's unless the URL has one") {
  const PgSchema schema(server(), "name");
  schema.query("CREATE TABLE t (id bigint)");
  const std::string mine = unique_name("mine");
  Writer w(schema.url() + "&application_name=" + mine, "t");
  REQUIRE(w.prepare());
  CHECK(lines(schema, "SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + mine +
                          "'") == Lines{"1"});
}
