// What the loop does with records that fail when transform_on_error is dlq.
#include <algorithm>
#include <doctest/doctest.h>
#include <set>

#include "tests/support/loop_world.h"

using namespace flow;
using namespace flow::test;
using Names = std::vector<std::string>;

namespace {

struct DlqWorld : World {
  explicit DlqWorld(int count) {
    pipeline.on_error = OnError::dlq;
    pipeline.digest = "digest";
    fill("a", 0, count);
  }
};

Names without(Names names, const std::set<std::string>& gone) {
  std::erase_if(names, [&](const std::string& n) { return gone.contains(n); });
  return names;
}

void check_sums(const LoopEnd& end) {
  for (const TargetCounts& t : end.progress.counts) {
    const Counts& c = t.counts;
    CHECK(c.read == c.written + c.filtered + c.dropped + c.dead + c.pending);
  }
}

}  // namespace

TEST_CASE("a record that does not decode becomes a dead letter with its bytes and its story") {
  DlqWorld w(20);
  w.source.data[{"a", 0}][7] = "bad one";
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  CHECK(w.targets[0]->written == without(World::names("a", 0, 0, 20), {"a/0@7"}));
  const auto letters = *w.letters.list({});
  REQUIRE(letters.size() == 1);
  const DeadLetter& l = letters.front();
  CHECK(l.pipeline == "test");
  CHECK(l.version == "digest");
  CHECK(l.target == "target0");
  CHECK(l.origin == PartitionId{"a", 0});
  CHECK(l.offset == Offset{7});
  CHECK(l.value == "bad one");
  CHECK_FALSE(l.key.has_value());
  CHECK(l.stage == "decode");
  CHECK(l.cls == FailureClass::invalid);
  CHECK(l.code == "decode.memory");
  CHECK(l.error == "is bad");
  CHECK(l.attempts == 1);
  CHECK(l.first_failed_ms > 0);
  CHECK(l.run_id == "run-1");
  CHECK(l.operation_id == "a/0/7");
  CHECK(end.progress.counts[0].counts.dead == 1);
  CHECK(end.progress.dead[static_cast<std::size_t>(FailureClass::invalid)] == 1);
  check_sums(end);
}

TEST_CASE("a dead letter is durable before the position moves past its record") {
  DlqWorld w(30);
  w.source.data[{"a", 0}][7] = "bad";
  w.targets[0]->refuses = {"a/0@13"};
  w.positions.before_commit = [&](const Spans& spans) -> Result<void> {
    const Names names = w.letters.names();
    const std::int64_t next = spans.front().next.next;
    CHECK(names.size() == (next > 13 ? 2 : 1));
    return {};
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.letters.names() == Names{"a/0@7 target0", "a/0@13 target0"});
}

TEST_CASE("a letter store that is down for a while is waited for; nothing is lost or doubled") {
  DlqWorld w(20);
  w.source.data[{"a", 0}][3] = "bad";
  w.targets[0]->refuses = {"a/0@12"};
  int calls = 0;
  w.letters.before_put = [&]() -> Result<void> {
    if (++calls % 3 != 0) return transient();
    return {};
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.letters.names() == Names{"a/0@3 target0", "a/0@12 target0"});
  CHECK(w.targets[0]->written == without(World::names("a", 0, 0, 20), {"a/0@3", "a/0@12"}));
}

TEST_CASE("a dead letter that cannot be written stops the run before the record") {
  DlqWorld w(20);
  w.source.data[{"a", 0}][13] = "bad";
  w.letters.before_put = []() -> Result<void> {
    return Failure{.cls = FailureClass::unauthorized, .what = "no right to the table"};
  };
  const LoopEnd end = w.run();
  CHECK(end.failure->exit_code() == ExitCode::unauthorized);
  CHECK(w.positions.next.at({"a", 0}) == 10);
  CHECK(w.letters.names().empty());
  check_sums(end);
}

TEST_CASE("an outage of the target, however long, makes no dead letter") {
  DlqWorld w(20);
  w.targets[0]->before_write = [](int attempt) -> Result<void> {
    if (attempt < 50) return transient();
    return {};
  };
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  CHECK(w.letters.names().empty());
  CHECK(end.progress.counts[0].counts.dead == 0);
}

TEST_CASE("a failure that is nobody's record stops the run and makes no dead letter") {
  const std::vector<std::pair<FailureClass, ExitCode>> cases = {
      {FailureClass::unauthorized, ExitCode::unauthorized},
      {FailureClass::setup, ExitCode::configuration},
      {FailureClass::fenced, ExitCode::temporary},
      {FailureClass::defect, ExitCode::defect}};
  for (const auto& [cls, exit] : cases) {
    DlqWorld w(20);
    w.targets[0]->before_write = [cls = cls](int) -> Result<void> {
      return Failure{.cls = cls, .what = "no"};
    };
    const LoopEnd end = w.run();
    CHECK(end.failure->exit_code() == exit);
    CHECK(w.letters.names().empty());
    CHECK(w.positions.next.empty());
  }
}

TEST_CASE("each target has its own letters: one per record and target") {
  World w(2);
  w.pipeline.on_error = OnError::dlq;
  w.fill("a", 0, 10);
  w.source.data[{"a", 0}][2] = "bad";
  w.targets[0]->refuses = {"a/0@5"};
  w.targets[1]->refuses = {"a/0@5", "a/0@6"};
  const LoopEnd end = w.run();
  CHECK(w.letters.names() ==
        Names{"a/0@2 target0", "a/0@2 target1", "a/0@5 target0", "a/0@5 target1", "a/0@6 target1"});
  CHECK(end.progress.counts[0].counts.dead == 2);
  CHECK(end.progress.counts[1].counts.dead == 3);
  check_sums(end);
}

TEST_CASE("a target that keeps the letters' table writes all of them with its rows") {
  DlqWorld w(20);
  w.source.data[{"a", 0}][3] = "bad";
  w.targets[0]->refuses = {"a/0@5"};
  w.source.data[{"a", 0}][11] = "bad";
  w.targets[0]->own_letters = &w.letters;
  int writes = 0;
  w.letters.before_put = [&]() -> Result<void> {
    CHECK(w.targets[0]->attempts == ++writes);  // inside a write, once each
    return {};
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(writes == 2);
  CHECK(w.letters.names() == Names{"a/0@3 target0", "a/0@5 target0", "a/0@11 target0"});
}

TEST_CASE("letters of a batch without a row left are stored too, by a target that keeps them") {
  DlqWorld w(3);
  for (std::string& v : w.source.data[{"a", 0}]) v = "bad";
  w.targets[0]->own_letters = &w.letters;
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.letters.names() == Names{"a/0@0 target0", "a/0@1 target0", "a/0@2 target0"});
  CHECK(w.positions.next.at({"a", 0}) == 3);
}

TEST_CASE("the earlier good version of a key is written when the last one is refused") {
  DlqWorld w(0);
  w.targets[0]->merge = true;
  w.source.data[{"a", 0}] = {"k:1", "other:1", "k:2", "k:3", "k:4"};
  w.targets[0]->refuses = {"a/0@3", "a/0@4"};
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  CHECK(w.targets[0]->table ==
        std::map<std::string, std::string>{{"k", "a/0@2"}, {"other", "a/0@1"}});
  CHECK(w.letters.names() == Names{"a/0@3 target0", "a/0@4 target0"});
  check_sums(end);
}

// ---- attempts ----------------------------------------------------------------------------------

TEST_CASE("a record that may be at fault is tried again and written when it passes") {
  DlqWorld w(20);
  w.targets[0]->refusal = FailureClass::poison;
  w.targets[0]->heals = {{"a/0@4", 2}};
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  auto written = w.targets[0]->written;
  std::sort(written.begin(), written.end());
  auto all = World::names("a", 0, 0, 20);
  std::sort(all.begin(), all.end());
  CHECK(written == all);
  CHECK(w.letters.names().empty());
  CHECK(w.state.attempts("test")->empty());  // cleared by success
}

TEST_CASE("a record that fails each of dlq_max_attempts attempts is poison, with their number") {
  for (const int most : {1, 3, 5}) {
    DlqWorld w(20);
    w.pipeline.dlq.max_attempts = most;
    w.targets[0]->refusal = FailureClass::poison;
    w.targets[0]->refuses = {"a/0@4"};
    CHECK(w.run().status == RunStatus::done);
    const auto letters = *w.letters.list({});
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].cls == FailureClass::poison);
    CHECK(letters[0].attempts == most);
    CHECK(letters[0].first_failed_ms <= letters[0].last_failed_ms);
    CHECK(w.targets[0]->attempts == 2 + most - 1);
    CHECK(w.state.attempts("test")->empty());
  }
}

TEST_CASE("attempts of a run that died count in the next") {
  DlqWorld w(10);
  w.targets[0]->refusal = FailureClass::poison;
  w.targets[0]->refuses = {"a/0@4"};
  REQUIRE(w.state.keep_attempts("test", {{{"a", 0}, {4}, "target0", 2, 1000}}).ok());
  CHECK(w.run().status == RunStatus::done);
  const auto letters = *w.letters.list({});
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].attempts == 3);
  CHECK(letters[0].first_failed_ms == 1000);
  CHECK(w.targets[0]->attempts == 1);
  CHECK(w.state.attempts("test")->empty());
}

TEST_CASE("an attempt is counted in the state before the next is made") {
  DlqWorld w(10);
  w.targets[0]->refusal = FailureClass::poison;
  w.targets[0]->refuses = {"a/0@4"};
  std::vector<std::int64_t> known;
  w.targets[0]->before_write = [&](int) -> Result<void> {
    const auto kept = *w.state.attempts("test");
    known.push_back(kept.empty() ? 0 : kept.front().made);
    return {};
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(known == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("what certainly is the record's fault is not tried again") {
  DlqWorld w(10);
  w.targets[0]->refuses = {"a/0@4"};
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.targets[0]->attempts == 1);
  CHECK((*w.letters.list({}))[0].attempts == 1);
}

TEST_CASE("a drain does not lose count: the attempts are made without the waits") {
  DlqWorld w(10);
  w.targets[0]->refusal = FailureClass::poison;
  w.targets[0]->refuses = {"a/0@4"};
  w.pipeline.retry.initial = w.pipeline.retry.max = Millis{100'000};
  w.targets[0]->before_write = [&](int) -> Result<void> {
    w.stop.drain();
    return {};
  };
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::drained);
  CHECK(w.letters.names() == Names{"a/0@4 target0"});
  CHECK(w.positions.next.at({"a", 0}) == 10);
}

// ---- the flood breaker -------------------------------------------------------------------------

TEST_CASE("past dlq_limit the run stops with exit 65 before the flood and sets nothing aside") {
  for (const bool target_refuses : {false, true}) {
    CAPTURE(target_refuses);
    DlqWorld w(30);
    for (int i = 12; i < 18; ++i) {
      if (target_refuses) w.targets[0]->refuses.insert("a/0@" + std::to_string(i));
      if (!target_refuses) w.source.data[{"a", 0}][static_cast<std::size_t>(i)] = "bad";
    }
    const LoopEnd end = w.run();
    REQUIRE(end.failure);
    CHECK(end.failure->exit_code() == ExitCode::data);
    CHECK(end.failure->code == "dlq_limit.of_batch");
    CHECK(w.letters.names().empty());
    CHECK(w.positions.next.at({"a", 0}) == 10);
    CHECK(w.targets[0]->written == World::names("a", 0, 0, 10));
    check_sums(end);
  }
}

TEST_CASE("half of a batch is not yet a flood") {
  DlqWorld w(10);
  for (std::size_t i = 0; i < 5; ++i) w.source.data[{"a", 0}][i] = "bad";
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.letters.names().size() == 5);
}

TEST_CASE("one bad record that comes alone is no flood") {
  DlqWorld w(1);
  w.source.data[{"a", 0}][0] = "bad";
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.letters.names() == Names{"a/0@0 target0"});
}

TEST_CASE("bad records in a row are counted over batches, and a good one ends the row") {
  for (const bool good_between : {false, true}) {
    DlqWorld w(40);
    w.pipeline.dlq.of_batch_percent = 0;
    w.pipeline.dlq.in_a_row = 12;
    for (std::size_t i = 5; i < 25; ++i) w.source.data[{"a", 0}][i] = "bad";
    if (good_between) w.source.data[{"a", 0}][15] = "good";
    const LoopEnd end = w.run();
    CHECK(end.failure.has_value() == !good_between);
    if (!good_between) {
      CHECK(end.failure->code == "dlq_limit.in_a_row");
      CHECK(w.positions.next.at({"a", 0}) == 10);
      CHECK(w.letters.names() == Names{"a/0@5 target0", "a/0@6 target0", "a/0@7 target0",
                                       "a/0@8 target0", "a/0@9 target0"});
    }
  }
}

TEST_CASE("dlq_limit.per_run counts records, whatever the number of targets") {
  World w(2);
  w.pipeline.on_error = OnError::dlq;
  w.fill("a", 0, 40);
  w.pipeline.dlq.per_run = 3;
  for (const std::size_t i : {1U, 11U, 21U, 31U}) w.source.data[{"a", 0}][i] = "bad";
  const LoopEnd end = w.run();
  REQUIRE(end.failure);
  CHECK(end.failure->code == "dlq_limit.per_run");
  CHECK(w.positions.next.at({"a", 0}) == 30);
  CHECK(w.letters.names().size() == 6);
}

TEST_CASE("a dry run stores no letters and counts the records that would become one") {
  DlqWorld w(10);
  w.dry = true;
  w.source.data[{"a", 0}][3] = "bad";
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  CHECK(w.letters.names().empty());
  CHECK(end.progress.counts[0].counts.dead == 1);
}
