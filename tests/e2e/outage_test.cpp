// Servers that go away in the middle of a run and come back.
#include <csignal>
#include <doctest/doctest.h>
#include <memory>

#include "tests/e2e/flow_program.h"
#include "tests/support/broker.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using std::chrono::seconds;

namespace {

const std::string columns =
    "columns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n";

void produce_lines(const std::string& broker, const std::string& topic, int from, int to) {
  std::vector<KafkaRecord> out;
  for (int i = from; i < to; ++i) {
    KafkaRecord r;
    r.key = std::to_string(i);
    r.value = json_line(i);
    out.push_back(r);
  }
  produce(broker, topic, out);
}

}  // namespace

TEST_CASE(
    "PostgreSQL killed in the middle of a run and started again: the run goes on, merge ends "
    "equal") {
  const OwnServer postgres(OwnServer::Kind::postgres);
  const std::string url = postgres.at().postgres;
  pg_query(url, "CREATE TABLE t (id bigint PRIMARY KEY, v text)");
  const FlowProgram flow(
      "name: outage\nsource: {kind: file, path: in.jsonl, batch: {records: 200}}\n" + columns +
      "targets: [{kind: postgres, url: '" + url + "', table: public.t, mode: merge, key: [id]}]\n" +
      "state: sqlite:flow.db\n");
  constexpr int count = 4000;
  flow.dir().write("in.jsonl", json_lines(0, count / 2));
  Process run(flow.run_command({"--follow"}));
  const auto rows = [&] { return std::stoi(*pg_query(url, "SELECT count(*) FROM t")[0][0]); };
  REQUIRE(wait_for(seconds(30), [&] { return rows() == count / 2; }));
  postgres.kill();
  flow.dir().append("in.jsonl", json_lines(count / 2, count));
  REQUIRE(
      wait_for(seconds(30), [&] { return run.err().find("retry.started") != std::string::npos; }));
  postgres.restart();
  REQUIRE(wait_for(seconds(60), [&] { return rows() == count; }));
  REQUIRE(
      wait_for(seconds(10), [&] { return run.err().find("retry.ended") != std::string::npos; }));
  run.kill(SIGTERM);
  CHECK(run.wait(seconds(30)) == Ended{0, 0});
  CHECK(pg_query(url, "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t") ==
        std::vector<PgRow>{{"4000", "4000", "0", "3999"}});
}

TEST_CASE("the broker killed in the middle of a run and started again: nothing is lost") {
  const OwnServer kafka(OwnServer::Kind::kafka);
  const std::string broker = kafka.at().kafka;
  create_topic(broker, "in", 2);
  produce_lines(broker, "in", 0, 500);
  const FlowProgram flow(
      "name: outage\nsource: {kind: kafka, brokers: '" + broker +
      "', topics: [in], batch: {records: 100}}\n" + columns +
      "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, mode: merge, key: [id], "
      "create_table: true}]\nstate: sqlite:flow.db\n");
  Process run(flow.run_command({}));
  const auto done = [&](const std::string& next) {
    const Finished f = flow.flow({"history", "--state", "sqlite:flow.db", "--output", "json"});
    return f.out.find(next) != std::string::npos;
  };
  REQUIRE(wait_for(
      seconds(30), [&] { return done("\"read\": 500"); }, std::chrono::milliseconds(200)));
  kafka.kill();
  REQUIRE(wait_for(seconds(30),
                   [&] { return run.err().find("source.unreachable") != std::string::npos; }));
  kafka.restart();
  produce_lines(broker, "in", 500, 1000);
  REQUIRE(wait_for(
      seconds(60), [&] { return done("\"read\": 1000"); }, std::chrono::milliseconds(200)));
  run.kill(SIGTERM);
  CHECK(run.wait(seconds(30)) == Ended{0, 0});
  const Finished again = flow.run({"--until-end"});
  CHECK(again.ended == Ended{0, 0});
  CHECK(again.err.find(" 0 read") != std::string::npos);
}
