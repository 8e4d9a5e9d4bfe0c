// Replicas of one group on a real broker: joins, clean stops, kills, slow targets.
#include <csignal>
#include <doctest/doctest.h>
#include <memory>

#include "tests/e2e/flow_program.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using std::chrono::seconds;

namespace {

// A topic of four partitions into one Postgres table, and the processes that read it.
struct Group {
  std::string broker = services().kafka;
  Topic topic{broker, "group", 4};
  PgSchema schema{services().postgres, "grp"};
  FlowProgram flow;
  int produced = 0;

  explicit Group(const std::string& mode, const std::string& source_extra = "")
      : flow("name: group\nsource: {kind: kafka, brokers: '" + broker + "', topics: [" +
             topic.name() + "], batch: {records: 50}" + source_extra + "}\n" +
             "columns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n" +
             "targets: [{kind: postgres, url: '" + services().postgres +
             "', table: " + schema.table("t") + ", mode: " + mode +
             (mode == "merge" ? ", key: [id]" : "") + "}]\n" + "state: sqlite:flow.db\n") {
    schema.query("CREATE TABLE " + schema.table("t") + " (id bigint" +
                 (mode == "merge" ? " PRIMARY KEY" : "") + ", v text)");
  }

  void produce_more(int count) {
    std::vector<KafkaRecord> out;
    for (int i = produced; i < produced + count; ++i) {
      KafkaRecord r;
      r.key = std::to_string(i);
      r.value = json_line(i);
      r.partition = i % 4;
      out.push_back(r);
    }
    produce(broker, topic.name(), out);
    produced += count;
  }

  Tally tally() {
    Tally t;
    for (const auto& row : schema.query("SELECT id FROM " + schema.table("t")))
      ++t[std::stoi(*row[0])];
    return t;
  }
  int distinct() {
    return std::stoi(*schema.query("SELECT count(DISTINCT id) FROM " + schema.table("t"))[0][0]);
  }
  bool all_there(std::chrono::milliseconds deadline) {
    return wait_for(
        deadline, [&] { return distinct() == produced; }, std::chrono::milliseconds(50));
  }
  std::unique_ptr<Process> start() { return std::make_unique<Process>(flow.run_command({})); }
  static bool assigned(Process& p, std::chrono::milliseconds deadline = seconds(20)) {
    return wait_for(deadline,
                    [&] { return p.err().find("partitions.assigned") != std::string::npos; });
  }
};

}  // namespace

TEST_CASE(
    "replicas that join, stop and are killed under load lose nothing, and merge shows no repeat") {
  Group g("merge");
  auto a = g.start();
  g.produce_more(400);
  REQUIRE(g.all_there(seconds(20)));
  auto b = g.start();
  for (int round = 0; round < 6; ++round) {
    g.produce_more(200);
    if (round == 1) REQUIRE(Group::assigned(*b));
    if (round == 2) {
      b->kill(SIGTERM);
      CHECK(b->wait(seconds(20)) == Ended{0, 0});
    }
    if (round == 3) b = g.start();
    if (round == 4) a->kill(SIGKILL);
    if (round == 5) a = g.start();
  }
  CHECK(g.all_there(seconds(30)));
  const Differences d = differences(g.tally(), g.produced);
  CHECK(d.missing == std::vector<int>{});
  CHECK(d.repeated == std::vector<int>{});
  a->kill(SIGTERM);
  b->kill(SIGTERM);
  CHECK(a->wait(seconds(20)) == Ended{0, 0});
  CHECK(b->wait(seconds(20)) == Ended{0, 0});
}

TEST_CASE("a rebalance by clean joins and stops repeats nothing even for append") {
  Group g("append");
  auto a = g.start();
  g.produce_more(300);
  REQUIRE(g.all_there(seconds(20)));
  auto b = g.start();
  REQUIRE(Group::assigned(*b));
  g.produce_more(500);
  REQUIRE(g.all_there(seconds(20)));
  b->kill(SIGTERM);
  CHECK(b->wait(seconds(20)) == Ended{0, 0});
  g.produce_more(300);
  // A clean stop of one replica gives its partitions to the other within 10 s.
  CHECK(g.all_there(seconds(11)));
  const Differences d = differences(g.tally(), g.produced);
  CHECK(d.missing == std::vector<int>{});
  CHECK(d.repeated == std::vector<int>{});
  a->kill(SIGTERM);
  CHECK(a->wait(seconds(20)) == Ended{0, 0});
}

TEST_CASE("a run restarted after SIGKILL moves records again within 5 s") {
  Group g("merge");
  auto a = g.start();
  g.produce_more(100);
  REQUIRE(g.all_there(seconds(20)));
  a->kill(SIGKILL);
  REQUIRE(a->wait(seconds(10)) == Ended{-1, SIGKILL});
  g.produce_more(100);
  a = g.start();
  CHECK(g.all_there(seconds(5)));
  const Finished history = g.flow.flow({"history", "--state", "sqlite:flow.db"});
  CHECK(history.out.find("interrupted") != std::string::npos);
}

TEST_CASE(
    "a target that blocks longer than max.poll.interval.ms costs no membership and repeats "
    "nothing") {
  Group g("append", ", properties: {max.poll.interval.ms: '7000', session.timeout.ms: '6000'}");
  g.produce_more(20);
  auto a = g.start();
  REQUIRE(g.all_there(seconds(20)));
  {
    PgConnection lock(services().postgres);
    lock.query("BEGIN; LOCK TABLE " + g.schema.table("t") + " IN ACCESS EXCLUSIVE MODE");
    g.produce_more(1000);
    PgConnection watch(services().postgres);
    const auto waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%" +
        g.schema.name() + "%' AND now() - query_start > interval '9 s'";
    REQUIRE(wait_for(seconds(40), [&] { return watch.query(waiting)[0][0] != "0"; }));
    lock.query("COMMIT");
  }
  CHECK(g.all_there(seconds(20)));
  CHECK(a->err().find("partitions.lost") == std::string::npos);
  CHECK(a->err().find("partitions.revoked") == std::string::npos);
  const Differences d = differences(g.tally(), g.produced);
  CHECK(d.repeated == std::vector<int>{});
  a->kill(SIGTERM);
  CHECK(a->wait(seconds(20)) == Ended{0, 0});
}

TEST_CASE(
    "the second stop signal ends a blocked run at once, with 143 for SIGTERM and 130 for SIGINT") {
  for (const int signal : {SIGTERM, SIGINT}) {
    Group g("append");
    PgConnection lock(services().postgres);
    lock.query("BEGIN; LOCK TABLE " + g.schema.table("t") + " IN ACCESS EXCLUSIVE MODE");
    g.produce_more(20);
    auto a = g.start();
    PgConnection watch(services().postgres);
    const auto waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%" +
        g.schema.name() + "%'";
    REQUIRE(wait_for(seconds(20), [&] { return watch.query(waiting)[0][0] != "0"; }));
    a->kill(signal);
    REQUIRE(
        wait_for(seconds(10), [&] { return a->err().find("run.draining") != std::string::npos; }));
    CHECK(a->running());
    a->kill(signal);
    CHECK(a->wait(seconds(5)) == Ended{128 + signal, 0});
    lock.query("ROLLBACK");
  }
}
