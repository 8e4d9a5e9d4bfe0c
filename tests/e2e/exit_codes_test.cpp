// The table of exit codes (flow(1)), one test each. 130 and 143 are tested with the replicas.
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>

#include "tests/e2e/flow_program.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using std::chrono::seconds;

namespace {

std::string pipeline(const std::string& extra = "",
                     const std::string& source = "{kind: file, path: in.jsonl}") {
  return "name: codes\nsource: " + source +
         "\ncolumns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n"
         "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, create_table: true}]\nstate: "
         "sqlite:flow.db\n" +
         extra;
}

std::string postgres_pipeline(const std::string& url, const std::string& table) {
  return "name: codes\nsource: {kind: file, path: in.jsonl}\nretry: {initial: 10ms, max: 50ms, "
         "for: 300ms}\n"
         "targets: [{kind: postgres, url: '" +
         url + "', table: " + table + "}]\nstate: sqlite:flow.db\n";
}

}  // namespace

TEST_CASE("0: a run that is done") {
  FlowProgram flow(pipeline());
  flow.dir().write("in.jsonl", json_lines(0, 10));
  CHECK(flow.run({}).ended == Ended{0, 0});
}

TEST_CASE("0: a run that was drained after SIGTERM, and its history says so") {
  FlowProgram flow(pipeline());
  flow.dir().write("in.jsonl", json_lines(0, 10));
  Process run(flow.run_command({"--follow"}));
  REQUIRE(
      wait_for(seconds(20), [&] { return run.err().find("target.created") != std::string::npos; }));
  run.kill(SIGTERM);
  CHECK(run.wait(seconds(20)) == Ended{0, 0});
  CHECK(flow.flow({"history", "--state", "sqlite:flow.db"}).out.find("drained") !=
        std::string::npos);
}

TEST_CASE("64: words that are no command, no option or no value") {
  FlowProgram flow(pipeline());
  CHECK(flow.flow({}).ended == Ended{64, 0});
  const Finished command = flow.flow({"runn"});
  CHECK(command.ended == Ended{64, 0});
  CHECK(command.err.find("did you mean run?") != std::string::npos);
  CHECK(flow.run({"--limit", "0"}).ended == Ended{64, 0});
  CHECK(flow.run({"--max-time", "soon"}).ended == Ended{64, 0});
  CHECK(flow.run({"--failure-point", "nowhere=kill"}).ended == Ended{64, 0});
  CHECK(flow.flow({"history", "--state", "foo"}).ended == Ended{64, 0});
}

TEST_CASE("65: a record that cannot be decoded, under transform_on_error: fail") {
  FlowProgram flow(pipeline());
  flow.dir().write("in.jsonl", json_lines(0, 3) + "{broken\n");
  const Finished f = flow.run({});
  CHECK(f.ended == Ended{65, 0});
  CHECK(f.err.find("in.jsonl:4") != std::string::npos);
}

TEST_CASE("69: a target that stays away longer than retry.for") {
  FlowProgram flow(postgres_pipeline("postgres://nobody@127.0.0.1:1/none", "public.t"));
  flow.dir().write("in.jsonl", json_lines(0, 10));
  const Finished f = flow.run({});
  CHECK(f.ended == Ended{69, 0});
  CHECK(f.err.find("retry.started") != std::string::npos);
}

TEST_CASE("70: a broken invariant of the program") {
  FlowProgram flow(pipeline());
  flow.dir().write("in.jsonl", json_lines(0, 10));
  CHECK(flow.run({"--failure-point", "apply_to_targets.before=error:defect"}).ended ==
        Ended{70, 0});
}

TEST_CASE("73: a log file that cannot be created") {
  FlowProgram flow(pipeline());
  CHECK(flow.run({"--log-file", "pipeline.yaml/flow.log"}).ended == Ended{73, 0});
}

TEST_CASE("74: a state that is damaged, which is left as it is") {
  FlowProgram flow(pipeline());
  flow.dir().write("in.jsonl", json_lines(0, 10));
  const auto state = flow.dir().write("flow.db", "");
  const Finished f = flow.run({});
  CHECK(f.ended == Ended{74, 0});
  CHECK(read_file(state).empty());
}

TEST_CASE(
    "75: another run of the same file pipeline is under way; with --wait-lock it is waited for") {
  FlowProgram flow(pipeline());
  flow.dir().write("in.jsonl", json_lines(0, 10));
  Process first(flow.run_command({"--follow"}));
  REQUIRE(
      wait_for(seconds(20), [&] { return first.err().find("run.started") != std::string::npos; }));
  CHECK(flow.run({}).ended == Ended{75, 0});
  Process waiting(flow.run_command({"--wait-lock", "30s"}));
  first.kill(SIGTERM);
  CHECK(first.wait(seconds(20)) == Ended{0, 0});
  CHECK(waiting.wait(seconds(30)) == Ended{0, 0});
}

TEST_CASE("77: a wrong password, for PostgreSQL and for Kafka; nothing is tried again") {
  const Services s = services();
  std::string url = s.postgres_guarded;
  url.replace(url.find("guarded-secret"), 14, "wrong-secret");
  FlowProgram postgres(postgres_pipeline(url, "public.t"));
  postgres.dir().write("in.jsonl", json_lines(0, 10));
  const Finished f = postgres.run({});
  CHECK(f.ended == Ended{77, 0});
  CHECK(f.err.find("wrong-secret") == std::string::npos);
  FlowProgram kafka(pipeline(
      "", "{kind: kafka, brokers: '" + s.kafka_sasl +
              "', topics: [orders], properties: {security.protocol: SASL_PLAINTEXT, "
              "sasl.mechanism: PLAIN, sasl.username: admin, sasl.password: wrong-secret}}"));
  const Finished k = kafka.run({"--until-end"});
  CHECK(k.ended == Ended{77, 0});
  CHECK(k.err.find("wrong-secret") == std::string::npos);
}

TEST_CASE("77: a role without rights, found before the first read") {
  const Services s = services();
  const PgSchema schema(s.postgres, "codes");
  schema.query("CREATE TABLE " + schema.table("t") + " (id bigint, v text)");
  FlowProgram flow(postgres_pipeline(s.postgres_limited, schema.table("t")));
  flow.dir().write("in.jsonl", json_lines(0, 10));
  CHECK(flow.run({}).ended == Ended{77, 0});
}

TEST_CASE(
    "78: a fault in the file, a table that is missing, a topic that is missing, a guarantee that "
    "cannot be had") {
  FlowProgram fault(pipeline("bogus: 1\n"));
  CHECK(fault.run({}).ended == Ended{78, 0});
  const Services s = services();
  FlowProgram table(postgres_pipeline(s.postgres, "public.no_such_table"));
  table.dir().write("in.jsonl", json_lines(0, 10));
  CHECK(table.run({}).ended == Ended{78, 0});
  FlowProgram topic(
      pipeline("", "{kind: kafka, brokers: '" + s.kafka + "', topics: [no_such_topic]}"));
  CHECK(topic.run({"--until-end"}).ended == Ended{78, 0});
  FlowProgram guarantee(pipeline("delivery: exactly_once\n"));
  guarantee.dir().write("in.jsonl", json_lines(0, 10));
  CHECK(guarantee.run({}).ended == Ended{78, 0});
}
