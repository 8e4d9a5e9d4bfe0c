// An outage, a full disk or a missing right is nobody's record: it never makes a dead letter.
#include <csignal>
#include <doctest/doctest.h>
#include <functional>
#include <set>

#include "tests/e2e/letters_help.h"
#include "tests/support/broker.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using std::chrono::seconds;

namespace {

std::string pipeline(const std::string& name, const std::string& target) {
  return "name: " + name +
         "\nsource: {kind: file, path: in.jsonl, batch: {records: 100}}\n"
         "columns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n"
         "targets: [" +
         target +
         "]\ntransform_on_error: dlq\nretry: {initial: 20ms, max: 200ms}\nstate: sqlite:flow.db\n";
}

std::string postgres_target(const std::string& url, const std::string& table) {
  return "{kind: postgres, url: '" + url + "', table: " + table + ", mode: merge, key: [id]}";
}

constexpr int count = 600;

// Good rows with one bad record in the part that meets the outage.
std::string second_half() { return "not json\n" + json_lines(count / 2, count); }

// Half of the records, then `breaks`, the other half, `mends` once the run says that it tries
// again.
void go_through(const FlowProgram& flow, const std::function<int()>& rows,
                const std::function<void()>& breaks, const std::function<void()>& mends) {
  flow.dir().write("in.jsonl", json_lines(0, count / 2));
  Process run(flow.run_command({"--follow"}));
  REQUIRE(wait_for(seconds(40), [&] { return rows() == count / 2; }));
  breaks();
  flow.dir().append("in.jsonl", second_half());
  REQUIRE(
      wait_for(seconds(40), [&] { return run.err().find("retry.started") != std::string::npos; }));
  mends();
  REQUIRE(wait_for(seconds(60), [&] { return rows() == count; }));
  run.kill(SIGTERM);
  CHECK(run.wait(seconds(30)) == Ended{0, 0});
  CHECK(letter_values(flow) == std::map<std::string, int>{{"not json", 1}});
}

}  // namespace

TEST_CASE("Postgres stopped and started again: every row, one letter, no hand") {
  const OwnServer server(OwnServer::Kind::postgres);
  const std::string url = server.at().postgres;
  pg_query(url, "CREATE TABLE t (id bigint PRIMARY KEY, v text)");
  const FlowProgram flow(pipeline("outage", postgres_target(url, "public.t")));
  go_through(
      flow, [&] { return std::stoi(*pg_query(url, "SELECT count(*) FROM t")[0][0]); },
      [&] { server.kill(); }, [&] { server.restart(); });
}

TEST_CASE("the server says that it is short of something: every row, one letter, no hand") {
  for (const char* code :
       {"53100", "53200", "53300", "40001", "40P01", "55P03", "57014", "58030"}) {
    CAPTURE(code);
    const PgSchema schema(services().postgres, "short");
    schema.query(
        "CREATE TABLE t (id bigint PRIMARY KEY, v text); CREATE FUNCTION no() RETURNS trigger "
        "LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''" +
        std::string(code) + "''; END'");
    const FlowProgram flow(
        pipeline("short", postgres_target(services().postgres, schema.table("t"))));
    go_through(
        flow, [&] { return std::stoi(*schema.query("SELECT count(*) FROM t")[0][0]); },
        [&] {
          schema.query("CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no()");
        },
        [&] { schema.query("DROP TRIGGER no ON t"); });
  }
}

TEST_CASE("a right that is taken away ends the run with 77; once it is back, the rest is written") {
  const PgSchema schema(services().postgres, "right");
  const std::string role = unique_name("right");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text); CREATE ROLE " + role +
               " LOGIN; GRANT CONNECT, TEMPORARY ON DATABASE flow TO " + role +
               "; GRANT USAGE ON SCHEMA " + schema.name() + " TO " + role +
               "; GRANT SELECT, INSERT, UPDATE, DELETE ON t TO " + role);
  std::string url = services().postgres;
  url.replace(url.find("flow@"), 4, role);
  const FlowProgram flow(pipeline("right", postgres_target(url, schema.table("t"))));
  flow.dir().write("in.jsonl", json_lines(0, count / 2));
  Process run(flow.run_command({"--follow"}));
  const auto rows = [&] { return std::stoi(*schema.query("SELECT count(*) FROM t")[0][0]); };
  const bool half = wait_for(seconds(40), [&] { return rows() == count / 2; });
  REQUIRE_MESSAGE(half, run.err());
  schema.query("REVOKE INSERT ON t FROM " + role);
  flow.dir().append("in.jsonl", second_half());
  CHECK(run.wait(seconds(40)) == Ended{77, 0});
  CHECK(run.err().find("42501") != std::string::npos);
  // The letter of the bad record may be there: it is stored before the rows.
  for (const auto& [value, times] : letter_values(flow)) {
    CHECK(value == "not json");
    CHECK(times == 1);
  }
  schema.query("GRANT INSERT ON t TO " + role);
  CHECK(flow.run({}).ended == Ended{0, 0});
  CHECK(rows() == count);
  CHECK(letter_values(flow) == std::map<std::string, int>{{"not json", 1}});
  schema.query("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_CASE("a wrong password ends the run with 77 and sets nothing aside") {
  const PgSchema schema(services().postgres, "password");
  schema.query("CREATE TABLE t (id bigint PRIMARY KEY, v text)");
  std::string url = services().postgres_guarded;
  url.replace(url.find("guarded-secret"), 14, "wrong");
  const FlowProgram flow(pipeline("password", postgres_target(url, schema.table("t"))));
  flow.dir().write("in.jsonl", "not json\n" + json_lines(0, 10));
  const Finished done = flow.run({});
  CHECK(done.ended == Ended{77, 0});
  CHECK(done.err.find("28P01") != std::string::npos);
  CHECK(letters_of(flow).empty());
  flow.rewrite(pipeline("password", postgres_target(services().postgres, schema.table("t"))));
  CHECK(flow.run({}).ended == Ended{0, 0});
  CHECK(schema.query("SELECT count(*) FROM t")[0][0] == "10");
  CHECK(letter_values(flow) == std::map<std::string, int>{{"not json", 1}});
}

TEST_CASE("a disk that takes no more: nothing set aside, and all is written once there is room") {
  const FlowProgram flow(
      pipeline("full",
               "{kind: sqlite, url: 'sqlite:out.db', table: t, mode: merge, key: [id], "
               "create_table: true}"));
  flow.dir().write("in.jsonl", json_lines(0, 100));
  REQUIRE(flow.run({}).ended == Ended{0, 0});
  flow.dir().append("in.jsonl", json_lines(100, 20'000));
  Command limited = flow.run_command({"--set", "retry.for=300ms"});
  // No file of the run may grow past 128 KiB.
  limited.argv.insert(limited.argv.begin(),
                      {"bash", "-c", "trap '' XFSZ; ulimit -f 128; exec \"$@\"", "limited"});
  const Finished full = run(limited);
  CAPTURE(full.err);
  CHECK(full.ended.code != 0);
  CHECK(full.ended.code != 65);
  CHECK(full.ended.signal == 0);
  CHECK(letters_of(flow).empty());
  CHECK(flow.run({}).ended == Ended{0, 0});
  CHECK(sqlite_query(flow.dir() / "out.db", "SELECT count(*), count(DISTINCT id) FROM t") ==
        std::vector<std::vector<std::optional<std::string>>>{{"20000", "20000"}});
  CHECK(letters_of(flow).empty());
}

TEST_CASE("the broker of a Kafka target stopped and started again: every message, one letter") {
  const OwnServer kafka(OwnServer::Kind::kafka);
  const std::string broker = kafka.at().kafka;
  create_topic(broker, "out", 1);
  const FlowProgram flow(
      pipeline("broker", "{kind: kafka, brokers: '" + broker + "', topic: out}"));
  const auto rows = [&] {
    std::set<std::string> seen;
    for (const KafkaRecord& r : read_topic(broker, "out")) seen.insert(*r.value);
    return static_cast<int>(seen.size());
  };
  flow.dir().write("in.jsonl", json_lines(0, count / 2));
  Process run(flow.run_command({"--follow"}));
  REQUIRE(wait_for(seconds(60), [&] { return rows() == count / 2; }));
  kafka.kill();
  flow.dir().append("in.jsonl", second_half());
  REQUIRE(
      wait_for(seconds(90), [&] { return run.err().find("retry.started") != std::string::npos; }));
  kafka.restart();
  REQUIRE(wait_for(seconds(90), [&] { return rows() == count; }));
  run.kill(SIGTERM);
  CHECK(run.wait(seconds(30)) == Ended{0, 0});
  CHECK(letter_values(flow) == std::map<std::string, int>{{"not json", 1}});
}
