// What every state store promises, on SQLite, on a real PostgreSQL and on the in-memory twin.
#include <chrono>
#include <doctest/doctest.h>
#include <thread>

#include "tests/state/state_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;

TYPE_TO_STRING(SqliteWorld);
TYPE_TO_STRING(PostgresWorld);
TYPE_TO_STRING(MemoryWorld);
#define STATE_TEST(name) TEST_CASE_TEMPLATE(name, World, SqliteWorld, PostgresWorld, MemoryWorld)

STATE_TEST("a run comes back as it was opened, with its targets and positions in order") {
  const World world;
  RunRow run = a_run("20260101T000000Z-aaaaaa");
  run.error = "it's \"quoted\"; DROP TABLE flow.runs; --";
  run.targets = {{"sqlite orders", {1, 2, 3, 4, 5, 6, 7, 8}}, {"kafka out", {.read = 1ULL << 62}}};
  run.positions = {{{"z", 1}, {5}, {9}, ""},
                   {{"/data/in $1.jsonl", 0}, {0}, {1LL << 60}, "dev:ino"}};
  run.read = 77;
  const auto state = world.open();
  REQUIRE(state->open_run(run).ok());
  const auto other = world.open();
  CHECK(shown(*other->runs("orders", 10)) == std::vector{shown(run)});
}

STATE_TEST("a heartbeat replaces counts and positions, and leaves other runs alone") {
  const World world;
  const auto state = world.open();
  RunRow run = a_run("20260101T000000Z-aaaaaa");
  const RunRow beside = a_run("20260101T000000Z-bbbbbb", "payments", 500);
  run.targets = {{"a", {.read = 1}}, {"b", {.read = 1}}};
  run.positions = {{{"t", 0}, {0}, {1}, ""}, {{"t", 1}, {0}, {1}, ""}};
  REQUIRE(state->open_run(run).ok());
  REQUIRE(state->open_run(beside).ok());
  run.heartbeat_ms = 9'000;
  run.read = 12;
  run.targets = {{"a", {.read = 12, .written = 12}}};
  run.positions = {{{"t", 0}, {0}, {12}, "x"}};
  REQUIRE(state->heartbeat(run).ok());
  CHECK(shown(*state->runs("", 10)) == std::vector{shown(run), shown(beside)});
}

STATE_TEST("history is newest first, by pipeline, and no longer than asked for") {
  const World world;
  const auto state = world.open();
  std::vector<RunRow> runs;
  for (int i = 0; i < 6; ++i) {
    RunRow run = a_run("run-" + std::to_string(i), i % 2 == 0 ? "even" : "odd", 1'000 * i);
    run.status = RunStatus::done;
    run.ended_ms = 1'000 * i + 10;
    REQUIRE(state->open_run(run).ok());
    REQUIRE(state->close_run(run).ok());
    runs.push_back(run);
  }
  CHECK(shown(*state->runs("", 3)) == std::vector{shown(runs[5]), shown(runs[4]), shown(runs[3])});
  CHECK(shown(*state->runs("even", 2)) == std::vector{shown(runs[4]), shown(runs[2])});
  CHECK(shown(*state->runs("none", 10)).empty());
  CHECK(shown(*state->runs("' OR 1=1 --", 10)).empty());
}

STATE_TEST("each way to end a run is kept with its error") {
  const World world;
  const auto state = world.open();
  for (const RunStatus status : {RunStatus::done, RunStatus::drained, RunStatus::failed}) {
    RunRow run = a_run("run-" + std::string(name_of(status)), std::string(name_of(status)));
    REQUIRE(state->open_run(run).ok());
    run.status = status;
    run.ended_ms = 4'000;
    run.error = status == RunStatus::failed ? "orders/0@7: naïve \xE2\x82\xAC" : "";
    REQUIRE(state->close_run(run).ok());
    CHECK(shown(*state->runs(run.pipeline, 1)) == std::vector{shown(run)});
  }
}

STATE_TEST("a run whose holder is gone without a word shows as interrupted at its last heartbeat") {
  const World world;
  auto holder = world.open();
  RunRow run = a_run("20260101T000000Z-aaaaaa");
  REQUIRE(holder->open_run(run).ok());
  const auto watcher = world.open(StateAccess::read_only);
  CHECK(shown(*watcher->runs("", 10)) == std::vector{shown(run)});
  holder.reset();
  run.status = RunStatus::interrupted;
  run.ended_ms = run.heartbeat_ms;
  CHECK(shown(*watcher->runs("", 10)) == std::vector{shown(run)});
  // The next run closes it for good.
  const auto next = world.open();
  RunRow second = a_run("20260101T000001Z-bbbbbb", "orders", 2'000);
  REQUIRE(next->open_run(second).ok());
  CHECK(shown(*next->runs("", 10)) == std::vector{shown(second), shown(run)});
}

TEST_CASE_TEMPLATE("what the next run has closed as interrupted stays so, whoever holds its lock",
                   World, SqliteWorld, PostgresWorld) {
  const World world;
  RunRow run = a_run("20260101T000000Z-aaaaaa");
  REQUIRE(world.open()->open_run(run).ok());  // and gone
  const auto next = world.open();
  REQUIRE(next->open_run(a_run("20260101T000001Z-bbbbbb", "payments", 2'000)).ok());
  const auto held = next->lock(run_lock_name(run.id), Millis{0}).value();
  REQUIRE(held != nullptr);
  run.status = RunStatus::interrupted;
  run.ended_ms = run.heartbeat_ms;
  CHECK(shown(*next->runs("orders", 10)) == std::vector{shown(run)});
}

STATE_TEST("a run id is open once at a time") {
  const World world;
  const auto one = world.open();
  const auto two = world.open();
  const RunRow run = a_run("20260101T000000Z-aaaaaa");
  REQUIRE(one->open_run(run).ok());
  const auto again = two->open_run(run);
  REQUIRE_FALSE(again.ok());
  CHECK(again.failure().exit_code() == ExitCode::temporary);
}

STATE_TEST("positions and marks are those committed last, per pipeline") {
  const World world;
  const auto state = world.open();
  CHECK(shown(*state->positions("orders")).empty());
  REQUIRE(state
              ->commit_positions("orders", "r1",
                                 {{{"t", 1}, {0}, {5}, "a"}, {{"t", 0}, {0}, {3}, ""}},
                                 {{"file out", "100"}})
              .ok());
  REQUIRE(state->commit_positions("payments", "r2", {{{"t", 1}, {0}, {50}, "other"}}, {}).ok());
  REQUIRE(state
              ->commit_positions("orders", "r1",
                                 {{{"t", 1}, {5}, {6}, "b"}, {{"t", 1}, {6}, {8}, "c"}},
                                 {{"file out", "150"}, {"file out", "200"}})
              .ok());
  const auto other = world.open(StateAccess::read_only);
  CHECK(shown(*other->positions("orders")) ==
        std::vector<std::string>{"t/0=3..3()", "t/1=8..8(c)"});
  CHECK(shown(*other->positions("payments")) == std::vector<std::string>{"t/1=50..50(other)"});
  const auto marks = other->marks("orders").value();
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].target == "file out");
  CHECK(marks[0].mark == "200");
  CHECK(other->marks("payments")->empty());
}

STATE_TEST("a commit of a thousand partitions and nothing at all both work") {
  const World world;
  const auto state = world.open();
  Spans spans;
  for (int p = 0; p < 1'200; ++p) spans.push_back({{"wide", p}, {0}, {p * 7}, ""});
  REQUIRE(state->commit_positions("orders", "r", spans, {}).ok());
  REQUIRE(state->commit_positions("orders", "r", {}, {}).ok());
  auto kept = *state->positions("orders");
  REQUIRE(kept.size() == spans.size());
  for (std::size_t p = 0; p < spans.size(); ++p) {
    CHECK(kept[p].partition == spans[p].partition);
    CHECK(kept[p].next == spans[p].next);
  }
}

STATE_TEST("a lock has one holder, is waited for, and is free when its holder lets go") {
  const World world;
  const auto one = world.open();
  const auto two = world.open();
  auto held = one->lock("pipeline/Größe \"x\"", Millis{0});
  REQUIRE(held.ok());
  REQUIRE(*held != nullptr);
  CHECK(two->lock("pipeline/Größe \"x\"", Millis{0}).value() == nullptr);
  CHECK(one->lock("pipeline/Größe \"x\"", Millis{0}).value() == nullptr);
  CHECK(two->lock("pipeline/other", Millis{0}).value() != nullptr);
  const auto before = std::chrono::steady_clock::now();
  CHECK(two->lock("pipeline/Größe \"x\"", Millis{120}).value() == nullptr);
  CHECK(std::chrono::steady_clock::now() - before >= Millis{120});
  std::jthread release([&] {
    std::this_thread::sleep_for(Millis{50});
    held.value().reset();
  });
  CHECK(two->lock("pipeline/Größe \"x\"", Millis{20'000}).value() != nullptr);
}

STATE_TEST("a lock outlives the store that gave it") {
  const World world;
  auto one = world.open();
  auto held = one->lock("slot/0", Millis{0}).value().release();
  one.reset();
  const auto two = world.open();
  CHECK(two->lock("slot/0", Millis{0}).value() == nullptr);
  delete held;
  CHECK(two->lock("slot/0", Millis{0}).value() != nullptr);
}

TEST_CASE_TEMPLATE("a state that does not exist reads as empty and is not created", World,
                   SqliteWorld, PostgresWorld) {
  const World world;
  for (int i = 0; i < 2; ++i) {
    const auto state = world.open(StateAccess::read_only);
    CHECK(state->id().empty());
    CHECK(state->runs("", 10)->empty());
    CHECK(state->positions("orders")->empty());
    CHECK(state->marks("orders")->empty());
  }
}

TEST_CASE_TEMPLATE("the identity of a state stays, and two states have two", World, SqliteWorld,
                   PostgresWorld) {
  const World world, other;
  const std::string id = world.open()->id();
  CHECK(id.size() == 32);
  CHECK(world.open()->id() == id);
  CHECK(world.open(StateAccess::read_only)->id() == id);
  CHECK(other.open()->id() != id);
}

TEST_CASE_TEMPLATE("a state opened for reading refuses to write", World, SqliteWorld,
                   PostgresWorld) {
  const World world;
  world.open();
  const auto state = world.open(StateAccess::read_only);
  CHECK_FALSE(state->open_run(a_run("r")).ok());
  CHECK_FALSE(state->commit_positions("p", "r", {{{"t", 0}, {0}, {1}, ""}}, {}).ok());
  CHECK_FALSE(state->lock("x", Millis{0}).ok());
  CHECK(state->positions("p")->empty());
}

TEST_CASE_TEMPLATE("an error text with bytes that no database holds is kept readable", World,
                   SqliteWorld, PostgresWorld) {
  const World world;
  const auto state = world.open();
  RunRow run = a_run("r");
  run.error = std::string("cut \xE2\x82", 6) + '\0' + "\xFF\xED\xA0\x80 end";
  REQUIRE(state->open_run(run).ok());
  CHECK((*state->runs("", 1))[0].error == "cut ??????? end");
}
