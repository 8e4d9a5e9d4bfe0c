// The helpers that other tests stand on do what they say, on the real servers.
#include <doctest/doctest.h>
#include <signal.h>
#include <string>

#include "tests/support/broker.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/process.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

using namespace flow::test;
using Row = std::vector<std::optional<std::string>>;

TEST_CASE(
    "a process gets its arguments, environment, directory and input, and its output is captured") {
  const TempDir dir;
  const auto finished =
      run({{"sh", "-c", "pwd; echo \"$GREETING ${HOME-unset}\"; cat; echo oops >&2; exit 7"},
           {{"GREETING", "hello"}, {"HOME", std::nullopt}},
           dir.path(),
           "from stdin"});
  CHECK(finished.ended == Ended{7, 0});
  CHECK(finished.out == dir.path().string() + "\nhello unset\nfrom stdin");
  CHECK(finished.err == "oops\n");
}

TEST_CASE("a process that was killed shows the signal, and one that cannot start is an error") {
  Process process({{"sleep", "100"}});
  CHECK(process.running());
  CHECK_FALSE(process.wait(std::chrono::milliseconds(20)));
  process.kill(SIGKILL);
  CHECK(process.wait() == Ended{-1, SIGKILL});
  CHECK_THROWS(Process({{"/no/such/program"}}));
}

TEST_CASE("stderr can be a terminal") {
  Command command{{"sh", "-c", "test -t 2 && ! test -t 1 && echo seen >&2"}};
  command.stderr_to = Command::Stderr::terminal;
  const auto finished = run(command);
  CHECK(finished.ended == Ended{0, 0});
  CHECK(finished.err == "seen\r\n");
}

TEST_CASE("SQLite rows come back as text, with null apart from empty") {
  const TempDir dir;
  sqlite_query(dir / "a.db",
               "CREATE TABLE t(a, b); INSERT INTO t VALUES (9007199254740993, NULL), ('', x'00')");
  const auto rows = sqlite_query(dir / "a.db", "SELECT a, b FROM t ORDER BY rowid");
  CHECK(rows == std::vector<Row>{{"9007199254740993", std::nullopt}, {"", std::string(1, '\0')}});
  CHECK_THROWS(sqlite_query(dir / "a.db", "SELECT nothing FROM t"));
}

TEST_CASE("a PostgreSQL schema is a test's own and is dropped after it") {
  const Services at = services();
  std::string name;
  {
    const PgSchema schema(at.postgres, "scripts");
    name = schema.name();
    schema.query("CREATE TABLE t (id int, note text); INSERT INTO t VALUES (1, NULL), (2, '')");
    CHECK(pg_query(at.postgres_socket,
                   "SELECT id, note FROM " + schema.table("t") + " ORDER BY id") ==
          std::vector<PgRow>{{"1", std::nullopt}, {"2", ""}});
  }
  CHECK(pg_query(at.postgres, "SELECT 1 FROM pg_namespace WHERE nspname = '" + name + "'").empty());
}

TEST_CASE("the guarded role needs the right password and the limited one has no rights") {
  const Services at = services();
  CHECK(pg_query(at.postgres_guarded, "SELECT current_user") == std::vector<PgRow>{{"guarded"}});
  std::string wrong = at.postgres_guarded;
  wrong.replace(wrong.find("guarded-secret"), 14, "wrong");
  CHECK_THROWS_WITH_AS(PgConnection{wrong}, doctest::Contains("password authentication failed"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(pg_query(at.postgres_limited, "CREATE TABLE public.t (a int)"),
                       doctest::Contains("permission denied"), std::runtime_error);
}

TEST_CASE("records come back from a topic with all that was written, and aborted ones do not") {
  const std::string broker = services().kafka;
  const Topic topic(broker, "scripts", 2);
  const KafkaRecord whole{
      "k", "v", {{"h", "1"}, {"empty", ""}, {"null", std::nullopt}}, 1, 1234567890123};
  produce(broker, topic.name(), {whole, {std::nullopt, std::nullopt, {}, 1}});
  produce(broker, topic.name(), {{"a", "aborted", {}, 0}}, Transaction::aborted);
  produce(broker, topic.name(), {{"c", "committed", {}, 0}}, Transaction::committed);

  const auto records = read_topic(broker, topic.name());
  REQUIRE(records.size() == 3);
  CHECK(records[0].value == "committed");
  CHECK(records[0].partition == 0);
  CHECK(records[1].key == "k");
  CHECK(records[1].value == "v");
  CHECK(records[1].headers == whole.headers);
  CHECK(records[1].timestamp_ms == 1234567890123);
  CHECK(records[2].key == std::nullopt);
  CHECK(records[2].value == std::nullopt);
  CHECK(read_topic(broker, topic.name(), Isolation::read_uncommitted).size() == 4);
}

TEST_CASE("log starts, watermarks, committed offsets and new partitions are what was asked for") {
  const std::string broker = services().kafka;
  const Topic topic(broker, "scripts", 1);
  produce(broker, topic.name(), {{"a", "1"}, {"b", "2"}, {"c", "3"}});
  delete_records_before(broker, topic.name(), 0, 2);
  CHECK(watermarks(broker, topic.name()) ==
        std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>>{{0, {2, 3}}});
  CHECK(committed_offsets(broker, topic.name(), topic.name()).empty());
  commit_offsets(broker, topic.name(), topic.name(), {{0, 2}});
  CHECK(committed_offsets(broker, topic.name(), topic.name()) == PartitionOffsets{{0, 2}});
  add_partitions(broker, topic.name(), 3);
  CHECK(wait_for(std::chrono::seconds(10),
                 [&] { return watermarks(broker, topic.name()).size() == 3; }));
}

TEST_CASE("an own PostgreSQL keeps what was committed through SIGKILL and stops with its owner") {
  std::string url;
  {
    const OwnServer server(OwnServer::Kind::postgres);
    url = server.at().postgres;
    pg_query(url, "CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
    server.kill();
    CHECK_THROWS(PgConnection{url});
    server.restart();
    CHECK(pg_query(url, "SELECT id FROM t") == std::vector<PgRow>{{"1"}});
  }
  CHECK_THROWS(PgConnection{url});
}

TEST_CASE("an own Kafka keeps acknowledged records through SIGKILL") {
  const OwnServer server(OwnServer::Kind::kafka);
  const std::string broker = server.at().kafka;
  create_topic(broker, "t", 1);
  produce(broker, "t", {{"a", "1"}});
  server.kill();
  server.restart();
  const auto records = read_topic(broker, "t");
  REQUIRE(records.size() == 1);
  CHECK(records[0].value == "1");
}
