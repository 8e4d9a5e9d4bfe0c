// A record that the program dies of, run after run.
#include <doctest/doctest.h>

#include "tests/support/loop_world.h"

using namespace flow;
using namespace flow::test;
using Names = std::vector<std::string>;

namespace {

// Runs of one pipeline over the same state; one that meets the killer ends as if by SIGKILL:
// nothing of it is closed.
struct Runs : World {
  int count = 0;
  RunStatus death = RunStatus::running;  // what the history says of a run that did not end well

  explicit Runs(int limit) {
    pipeline.on_error = OnError::dlq;
    pipeline.dlq.crash_loop_limit = limit;
    fill("a", 0, 100);
    targets[0]->kills = "a/0@37";
  }
  bool once() {
    run_id = "2026010" + std::to_string(++count) + "T000000Z-000000";
    RunRow row;
    row.id = run_id;
    row.pipeline = pipeline.name;
    row.started_ms = count;
    REQUIRE(state.heartbeat(row).ok());
    for (auto& [partition, next] : source.at) next = positions.next[partition];
    const bool done = run().status == RunStatus::done;
    row.status = done ? RunStatus::done : death;
    REQUIRE(state.heartbeat(row).ok());
    return done;
  }
  int until_done(int most) {
    while (count < most) {
      if (once()) return count;
    }
    return 0;
  }
};

}  // namespace

TEST_CASE("a record that kills each run is narrowed down by halves and set aside with evidence") {
  Runs runs(2);
  // Batch 3 of the first run; twice as the first batch; then 5, 2 and 1 records in hand.
  CHECK(runs.until_done(20) == 7);
  CHECK(runs.letters.names() == Names{"a/0@37 target0"});
  const DeadLetter letter = runs.letters.list({})->front();
  CHECK(letter.cls == FailureClass::poison);
  CHECK(letter.code == "crash_loop");
  CHECK(letter.value == "v37");
  CHECK(letter.attempts == 5);
  CHECK(letter.error.find("20260106T000000Z-000000") != std::string::npos);
  auto expected = World::names("a", 0, 0, 100);
  expected.erase(expected.begin() + 37);
  CHECK(runs.targets[0]->written == expected);
  CHECK(runs.positions.next.at({"a", 0}) == 100);
  CHECK(runs.state.in_flight("test")->empty());
}

TEST_CASE("crash_loop_limit is off by default") {
  Runs runs(0);
  CHECK(runs.until_done(8) == 0);
  CHECK(runs.letters.names().empty());
  CHECK(runs.positions.next.at({"a", 0}) == 30);
  CHECK(runs.state.in_flight("test")->empty());
}

TEST_CASE("runs that fail with a word, or are stopped, count as no deaths") {
  for (const RunStatus status : {RunStatus::failed, RunStatus::drained}) {
    Runs runs(2);
    runs.death = status;
    CHECK(runs.until_done(9) == 0);
    CHECK(runs.letters.names().empty());
  }
}

TEST_CASE("deaths that are nobody's record end with every record written and none set aside") {
  Runs runs(1);
  runs.once();
  runs.once();
  runs.once();
  runs.targets[0]->kills.clear();
  CHECK(runs.once());
  CHECK(runs.letters.names().empty());
  CHECK(runs.targets[0]->written == World::names("a", 0, 0, 100));
  CHECK(runs.state.in_flight("test")->empty());
}
