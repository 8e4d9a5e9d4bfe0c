// SIGKILL at each failure point of the loop, for every source and target, then a plain run;
// compared by identity.
#include <csignal>
#include <doctest/doctest.h>
#include <functional>
#include <memory>

#include "core/failure_point.h"
#include "tests/e2e/flow_program.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"

using namespace flow;
using namespace flow::test;

namespace {

constexpr int records = 450;
constexpr int batch = 100;

// Where a test's records come from: a file, or a topic of two partitions.
struct CrashSource {
  std::string yaml;
  std::unique_ptr<Topic> topic;
};

CrashSource file_source() {
  return {"source: {kind: file, path: in.jsonl, batch: {records: 100}}\n", nullptr};
}

CrashSource kafka_source() {
  CrashSource s;
  const std::string broker = services().kafka;
  s.topic = std::make_unique<Topic>(broker, "crash", 2);
  std::vector<KafkaRecord> out;
  for (int i = 0; i < records; ++i) {
    KafkaRecord r;
    r.key = std::to_string(i);
    r.value = json_line(i);
    r.partition = i % 2;
    out.push_back(r);
  }
  produce(broker, s.topic->name(), out);
  s.yaml = "source: {kind: kafka, brokers: '" + broker + "', topics: [" + s.topic->name() +
           "], group: g-" + s.topic->name() + ", batch: {records: 100}}\n";
  return s;
}

// Where they go, and how a test counts what is there.
struct CrashTarget {
  std::string yaml;
  std::function<Tally(const FlowProgram&)> tally;
  std::shared_ptr<void> owned;
};

CrashTarget sqlite_target(const std::string& mode) {
  CrashTarget t;
  t.yaml = "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, mode: " + mode +
           (mode == "merge" ? ", key: [id]" : "") + ", create_table: true}]\n";
  t.tally = [](const FlowProgram& flow) {
    Tally tally;
    for (const auto& row : sqlite_query(flow.dir() / "out.db", "SELECT id FROM t"))
      ++tally[std::stoi(*row[0])];
    return tally;
  };
  return t;
}

CrashTarget postgres_target(const std::string& mode) {
  auto schema = std::make_shared<PgSchema>(services().postgres, "crash");
  CrashTarget t;
  t.yaml = "targets: [{kind: postgres, url: '" + services().postgres +
           "', table: " + schema->table("t") + ", mode: " + mode +
           (mode == "merge" ? ", key: [id]" : "") + ", create_table: true}]\n";
  t.tally = [schema](const FlowProgram&) {
    Tally tally;
    for (const auto& row : schema->query("SELECT id FROM " + schema->table("t")))
      ++tally[std::stoi(*row[0])];
    return tally;
  };
  t.owned = schema;
  return t;
}

CrashTarget kafka_target() {
  const std::string broker = services().kafka;
  auto topic = std::make_shared<Topic>(broker, "crash_out", 2);
  CrashTarget t;
  t.yaml = "targets: [{kind: kafka, brokers: '" + broker + "', topic: " + topic->name() + "}]\n";
  t.tally = [topic, broker](const FlowProgram&) {
    Tally tally;
    for (const KafkaRecord& r : read_topic(broker, topic->name()))
      ++tally[std::stoi(r.value->substr(6))];
    return tally;
  };
  t.owned = topic;
  return t;
}

const std::string columns =
    "columns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n";

// A point is reached once a batch, but these once a run.
std::string armed(Point point) {
  const bool once = point == Point::open_run_after || point == Point::close_run_before;
  return std::string(name_of(point)) + (once ? "@1" : "@3") + "=kill";
}

// At these points no batch is durable in the target without its position: the reading thread is
// ahead of the writing one, so its points do not count, and what a topic was sent is there before
// the flush is known.
bool nothing_written_twice(Point point, const CrashTarget& target) {
  const bool topic = target.yaml.find("kind: kafka") != std::string::npos;
  if (point == Point::target_write_torn || point == Point::target_commit_before) return !topic;
  return point == Point::open_run_after || point == Point::close_run_before ||
         point == Point::commit_position_after ||
         (point >= Point::store_dead_letters_before && point <= Point::target_write_before) ||
         point == Point::commit_position_applied;
}

bool of_letters(Point point) {
  return point == Point::store_dead_letters_applied || point == Point::store_refused_before ||
         point == Point::store_refused_applied || point == Point::store_refused_after;
}

// Kills at the point, runs on to the end, compares.
void crash_at(Point point, const CrashSource& source, const CrashTarget& target, bool merge) {
  CAPTURE(name_of(point));
  const FlowProgram flow("name: crash\n" + source.yaml + columns + target.yaml +
                         "state: sqlite:flow.db\n");
  if (!source.topic) flow.dir().write("in.jsonl", json_lines(0, records));
  const Finished killed = flow.run({"--until-end", "--failure-point", armed(point)});
  CAPTURE(killed.err);
  REQUIRE(killed.ended == Ended{-1, SIGKILL});
  const Finished again = flow.run({"--until-end"});
  CAPTURE(again.err);
  REQUIRE(again.ended == Ended{0, 0});
  const Differences d = differences(target.tally(flow), records);
  CHECK(d.missing == std::vector<int>{});
  CHECK(d.strangers == std::vector<int>{});
  if (merge || nothing_written_twice(point, target)) CHECK(d.repeated == std::vector<int>{});
  CHECK(d.repeated.size() <= static_cast<std::size_t>(batch));
}

using SourceMaker = std::function<CrashSource()>;
using TargetMaker = std::function<CrashTarget()>;

void crash_everywhere(const SourceMaker& source, const TargetMaker& target, bool merge) {
  for (const Point point : all_points()) {
    if (point == Point::drain_before)
      continue;                       // reached by a stop signal only: tested with the signals
    if (of_letters(point)) continue;  // reached by bad records only: tested with them
    const CrashSource s = source();
    const CrashTarget t = target();
    crash_at(point, s, t, merge);
  }
}

}  // namespace

TEST_CASE(
    "killed at every failure point, a file goes into SQLite by append with no loss and one batch "
    "repeated at most") {
  crash_everywhere(
      file_source, [] { return sqlite_target("append"); }, false);
}

TEST_CASE(
    "killed at every failure point, a file goes into SQLite by merge with no loss and no repeat") {
  crash_everywhere(
      file_source, [] { return sqlite_target("merge"); }, true);
}

TEST_CASE(
    "killed at every failure point, a file goes into Postgres by append with no loss and one batch "
    "repeated at most") {
  crash_everywhere(
      file_source, [] { return postgres_target("append"); }, false);
}

TEST_CASE(
    "killed at every failure point, a file goes into Postgres by merge with no loss and no "
    "repeat") {
  crash_everywhere(
      file_source, [] { return postgres_target("merge"); }, true);
}

TEST_CASE(
    "killed at every failure point, a file goes into a topic with no loss and one batch repeated "
    "at most") {
  crash_everywhere(file_source, kafka_target, false);
}

TEST_CASE(
    "killed at every failure point, a topic goes into SQLite by append with no loss and one batch "
    "repeated at most") {
  crash_everywhere(
      kafka_source, [] { return sqlite_target("append"); }, false);
}

TEST_CASE(
    "killed at every failure point, a topic goes into SQLite by merge with no loss and no repeat") {
  crash_everywhere(
      kafka_source, [] { return sqlite_target("merge"); }, true);
}

TEST_CASE(
    "killed at every failure point, a topic goes into Postgres by append with no loss and one "
    "batch repeated at most") {
  crash_everywhere(
      kafka_source, [] { return postgres_target("append"); }, false);
}

TEST_CASE(
    "killed at every failure point, a topic goes into Postgres by merge with no loss and no "
    "repeat") {
  crash_everywhere(
      kafka_source, [] { return postgres_target("merge"); }, true);
}

TEST_CASE(
    "killed at every failure point, a topic goes into a topic with no loss and one batch repeated "
    "at most") {
  crash_everywhere(kafka_source, kafka_target, false);
}
