// Many processes on one state.
#include <cstdio>
#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <unistd.h>

#include "tests/state/child.h"
#include "tests/state/state_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;

namespace {

constexpr int processes = 8;
constexpr int rounds = 25;

std::string id_of(int process, int round) {
  return "run-" + std::to_string(process) + "-" + std::to_string(round);
}

void must(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.failure().text());
}

// What one process does: each round is a whole run with its own partition.
int many_runs(const std::string& url, int process) {
  const auto state = must_open(url, StateAccess::read_write);
  for (int round = 0; round < rounds; ++round) {
    const std::string pipeline = "p" + std::to_string(process);
    RunRow run = a_run(id_of(process, round), pipeline, round);
    must(state->open_run(run));
    run.read = 10;
    run.targets = {{"t", {.read = 10, .written = 10}}};
    run.positions = {{{"topic", process}, {round * 10}, {round * 10 + 10}, "own"}};
    must(state->heartbeat(run));
    must(state->commit_positions("shared", run.id, run.positions,
                                 {{pipeline, std::to_string(round)}}));
    run.status = RunStatus::done;
    run.ended_ms = run.heartbeat_ms + 1;
    must(state->close_run(run));
  }
  return 0;
}

}  // namespace

TYPE_TO_STRING(SqliteWorld);
TYPE_TO_STRING(PostgresWorld);

TEST_CASE_TEMPLATE("eight processes that create and use one state at once lose nothing", World,
                   SqliteWorld, PostgresWorld) {
  const World world;
  {
    std::vector<std::unique_ptr<Child>> children;
    for (int p = 0; p < processes; ++p) {
      children.push_back(std::make_unique<Child>([&, p] { return many_runs(world.url(), p); }));
    }
    for (const auto& child : children) CHECK(child->wait() == 0);
  }
  const auto state = world.open();
  const auto found = state->runs("", 10'000).value();
  std::map<std::string, std::string> runs;
  for (const RunRow& run : found) runs[run.id] = shown(run);
  CHECK(found.size() == runs.size());
  for (int p = 0; p < processes; ++p) {
    for (int round = 0; round < rounds; ++round) {
      RunRow run = a_run(id_of(p, round), "p" + std::to_string(p), round);
      run.read = 10;
      run.targets = {{"t", {.read = 10, .written = 10}}};
      run.positions = {{{"topic", p}, {round * 10}, {round * 10 + 10}, "own"}};
      run.status = RunStatus::done;
      run.ended_ms = run.heartbeat_ms + 1;
      CHECK(runs[run.id] == shown(run));
      runs.erase(run.id);
    }
  }
  CHECK(runs.empty());
  std::vector<std::string> expected;
  for (int p = 0; p < processes; ++p) {
    expected.push_back("topic/" + std::to_string(p) + "=250..250(own)");
  }
  CHECK(shown(*state->positions("shared")) == expected);
  for (const TargetMark& mark : *state->marks("shared")) CHECK(mark.mark == "24");
  CHECK(state->marks("shared")->size() == processes);
}

TEST_CASE_TEMPLATE("a lock and a run of a process that is killed are free at once", World,
                   SqliteWorld, PostgresWorld) {
  const World world;
  world.open();
  Child holder([&] {
    const auto state = must_open(world.url(), StateAccess::read_write);
    must(state->open_run(a_run("killed")));
    const auto lock = state->lock("pipeline/orders", Millis{0});
    must(state->commit_positions("orders", "killed", {{{"held", 0}, {0}, {1}, ""}}, {}));
    for (;;) ::pause();
    return 0;
  });
  const auto state = world.open();
  REQUIRE(wait_for(std::chrono::seconds(30), [&] { return !state->positions("orders")->empty(); }));
  CHECK(state->lock("pipeline/orders", Millis{0}).value() == nullptr);
  CHECK((*state->runs("", 1))[0].status == RunStatus::running);
  holder.kill();
  CHECK(state->lock("pipeline/orders", Millis{10'000}).value() != nullptr);
  CHECK(wait_for(std::chrono::seconds(10),
                 [&] { return (*state->runs("", 1))[0].status == RunStatus::interrupted; }));
}
