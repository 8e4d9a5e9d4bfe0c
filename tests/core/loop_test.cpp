#include <atomic>
#include <doctest/doctest.h>
#include <thread>

#include "tests/support/loop_world.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;

TEST_CASE(
    "every record reaches every target once and in order, and the position stands behind the "
    "last") {
  World w(2);
  w.fill("a", 0, 95);
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  CHECK(w.targets[0]->written == World::names("a", 0, 0, 95));
  CHECK(w.targets[1]->written == World::names("a", 0, 0, 95));
  CHECK(w.positions.next.at({"a", 0}) == 95);
  CHECK(end.progress.counts[1].counts.written == 95);
  CHECK(end.progress.counts[1].counts.pending == 0);
  CHECK(w.source.closed);
}

TEST_CASE("the position never moves before every target has the batch") {
  World w(2);
  w.fill("a", 0, 50);
  w.positions.before_commit = [&](const Spans& spans) -> Result<void> {
    for (const Span& s : spans) {
      CHECK(w.targets[0]->written_so_far().size() >= static_cast<std::size_t>(s.next.next));
      CHECK(w.targets[1]->written_so_far().size() >= static_cast<std::size_t>(s.next.next));
    }
    return {};
  };
  CHECK(w.run().status == RunStatus::done);
}

TEST_CASE(
    "a transient failure is tried again with the same rows and no record is lost or overtaken") {
  World w;
  w.fill("a", 0, 40);
  w.targets[0]->before_write = [](int attempt) -> Result<void> {
    if (attempt % 3 != 0) return transient();
    return {};
  };
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  CHECK(w.targets[0]->written == World::names("a", 0, 0, 40));
  CHECK(end.progress.counts[0].counts.retries == 8);
  CHECK(w.log.has("retry.started"));
  CHECK(w.log.has("retry.ended"));
}

TEST_CASE(
    "an outcome that is not known is written again and counted as a possible repeat for append") {
  World w;
  w.fill("a", 0, 10);
  w.targets[0]->before_write = [](int attempt) -> Result<void> {
    if (attempt == 1) return transient(Effect::unknown);
    return {};
  };
  const LoopEnd end = w.run();
  CHECK(end.progress.counts[0].counts.repeats == 10);
  CHECK(w.log.has("write.in_doubt"));
}

TEST_CASE("a failure that is not transient ends the run and leaves the position before the batch") {
  World w;
  w.fill("a", 0, 30);
  w.targets[0]->before_write = [](int attempt) -> Result<void> {
    if (attempt == 2) return Failure{.cls = FailureClass::unauthorized, .what = "no"};
    return {};
  };
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::failed);
  CHECK(end.failure->exit_code() == ExitCode::unauthorized);
  CHECK(w.positions.next.at({"a", 0}) == 10);
  CHECK(end.progress.counts[0].counts.written == 10);
  const Counts& c = end.progress.counts[0].counts;
  CHECK(c.read == c.written + c.filtered + c.dropped + c.dead + c.pending);
}

TEST_CASE("the retry budget ends a run that cannot write, with exit 69") {
  World w;
  w.pipeline.retry.for_ = Millis{20};
  w.fill("a", 0, 5);
  w.targets[0]->before_write = [](int) -> Result<void> { return transient(); };
  const LoopEnd end = w.run();
  CHECK(end.failure->exit_code() == ExitCode::unavailable);
  CHECK(w.positions.next.empty());
}

TEST_CASE(
    "transform_on_error: fail stops at the record: what is before it is durable, the position just "
    "before it") {
  World w;
  w.fill("a", 0, 10);
  w.source.data[{"a", 0}][7] = "bad";
  const LoopEnd end = w.run();
  CHECK(end.failure->exit_code() == ExitCode::data);
  CHECK(end.failure->where.find("a/0@7") != std::string::npos);
  CHECK(w.targets[0]->written == World::names("a", 0, 0, 7));
  CHECK(w.positions.next.at({"a", 0}) == 7);
}

TEST_CASE("transform_on_error: drop leaves out the bad record only, and counts it") {
  World w;
  w.pipeline.on_error = OnError::drop;
  w.fill("a", 0, 10);
  w.source.data[{"a", 0}][7] = "bad";
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  auto expected = World::names("a", 0, 0, 10);
  expected.erase(expected.begin() + 7);
  CHECK(w.targets[0]->written == expected);
  CHECK(w.positions.next.at({"a", 0}) == 10);
  CHECK(end.progress.counts[0].counts.dropped == 1);
  CHECK(w.log.has("record.dropped"));
}

TEST_CASE(
    "a record that the target refuses: fail ends the run just before it, drop goes on without it") {
  for (const OnError policy : {OnError::fail, OnError::drop}) {
    World w;
    w.pipeline.on_error = policy;
    w.fill("a", 0, 20);
    w.targets[0]->refuses = {"a/0@13"};
    const LoopEnd end = w.run();
    auto expected = World::names("a", 0, 0, policy == OnError::fail ? 13 : 20);
    if (policy == OnError::drop) expected.erase(expected.begin() + 13);
    CHECK(w.targets[0]->written == expected);
    CHECK(w.positions.next.at({"a", 0}) == (policy == OnError::fail ? 13 : 20));
    CHECK(end.progress.counts[0].counts.dropped == (policy == OnError::fail ? 0 : 1));
    CHECK(end.failure.has_value() == (policy == OnError::fail));
    if (end.failure) CHECK(end.failure->exit_code() == ExitCode::data);
  }
}

TEST_CASE("a stop request finishes the batches in hand and commits them") {
  World w;
  w.source.bounded = false;
  w.fill("a", 0, 100);
  w.positions.after_commit = [&] { w.stop.drain(); };
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::drained);
  CHECK(w.positions.next.at({"a", 0}) == static_cast<std::int64_t>(w.targets[0]->written.size()));
}

TEST_CASE("a drain that takes too long cancels the write and ends with exit 75") {
  World w;
  w.pipeline.drain_timeout = Millis{50};
  w.fill("a", 0, 10);
  MemoryTarget& target = *w.targets[0];
  target.before_write = [&](int) -> Result<void> {
    w.stop.drain();
    while (!target.cancelled) std::this_thread::yield();
    return transient();
  };
  const LoopEnd end = w.run();
  CHECK(end.failure->exit_code() == ExitCode::temporary);
  CHECK(w.positions.next.empty());
}

TEST_CASE("--limit reads that many records and no more") {
  World w;
  w.limits.records = 23;
  w.fill("a", 0, 95);
  const LoopEnd end = w.run();
  CHECK(end.status == RunStatus::done);
  CHECK(w.targets[0]->written == World::names("a", 0, 0, 23));
  CHECK(w.positions.next.at({"a", 0}) == 23);
}

TEST_CASE("the source is kept alive while a target blocks") {
  World w;
  w.fill("a", 0, 95);
  w.targets[0]->before_write = [&](int attempt) -> Result<void> {
    while (attempt == 1 && w.source.kept_alive == 0) std::this_thread::yield();
    return {};
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.source.kept_alive > 0);
}

TEST_CASE("the membership is kept while the last batch of a source that has ended is written") {
  World w;
  w.fill("a", 0, 10);
  bool alive = false;
  w.targets[0]->before_write = [&](int) -> Result<void> {
    alive = wait_for(std::chrono::seconds(20), [&] { return w.source.kept_alive > 1; });
    return {};
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(alive);
}

TEST_CASE("a batch that waits in the queue forgets the partitions that are released") {
  for (int round = 0; round < 30; ++round) {  // its turn comes at about the time of the release
    World w;
    w.fill("a", 0, 10);  // the batch in flight, until the release
    w.fill("a", 1, 5);   // the one in the queue: of two partitions, one goes
    w.fill("a", 2, 5);
    w.source.bounded = false;
    std::atomic<bool> writing{false};
    int reads = 0;
    w.targets[0]->before_write = [&](int attempt) -> Result<void> {
      if (attempt != 1) return {};
      writing = true;
      while (!w.targets[0]->cancelled) std::this_thread::yield();
      return {};
    };
    w.source.before_read = [&](PartitionListener& listener) {
      if (++reads != 3) return;
      while (!writing) std::this_thread::yield();
      w.source.gone.insert({"a", 1});
      listener.released({{"a", 1}}, Release::lost);
      w.source.bounded = true;
    };
    CHECK(w.run().status == RunStatus::done);
    auto expected = World::names("a", 0, 0, 10);
    for (const std::string& name : World::names("a", 2, 0, 5)) expected.push_back(name);
    CHECK(w.targets[0]->written == expected);
    CHECK_FALSE(w.positions.next.contains({"a", 1}));
    CHECK(w.positions.next.at({"a", 2}) == 5);
  }
}

TEST_CASE("a revoked partition is committed when its write goes well, and not written afterwards") {
  World w;
  w.fill("a", 0, 30);
  w.fill("a", 1, 30);
  int reads = 0;
  std::size_t written_at_release = 0;
  w.source.before_read = [&](PartitionListener& listener) {
    if (++reads != 5) return;  // its first batches are in flight or wait
    listener.released({{"a", 1}}, Release::revoked);
    w.source.gone.insert({"a", 1});
    for (const std::string& name : w.targets[0]->written_so_far())
      written_at_release += name.starts_with("a/1") ? 1 : 0;
  };
  CHECK(w.run().status == RunStatus::done);
  std::size_t written = 0;
  for (const std::string& name : w.targets[0]->written) written += name.starts_with("a/1") ? 1 : 0;
  CHECK(written == written_at_release);
  const auto next = w.positions.next.find({"a", 1});
  CHECK((next == w.positions.next.end() ? 0 : next->second) == static_cast<std::int64_t>(written));
  CHECK(w.positions.next.at({"a", 0}) == 30);
}

TEST_CASE("a lost partition is not committed although its rows were just written") {
  World w;
  w.fill("a", 0, 10);
  w.fill("a", 1, 10);
  w.pipeline.source.batch.records = 15;  // one batch holds both partitions
  std::atomic<bool> writing{false};
  std::atomic<bool> lost{false};
  int reads = 0;
  w.targets[0]->before_write = [&](int attempt) -> Result<void> {
    if (attempt != 1) return {};
    writing = true;
    while (!w.targets[0]->cancelled) std::this_thread::yield();
    return {};
  };
  w.source.before_read = [&](PartitionListener& listener) {
    if (++reads != 2) return;
    while (!writing) std::this_thread::yield();
    w.source.gone.insert({"a", 1});
    listener.released({{"a", 1}}, Release::lost);
    lost = true;
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(lost);
  CHECK(w.positions.next.at({"a", 0}) == 10);
  CHECK_FALSE(w.positions.next.contains({"a", 1}));
}

TEST_CASE(
    "a partition revoked while its target is down is given up at once; the others are written") {
  World w;
  w.fill("a", 0, 10);
  w.fill("a", 1, 10);
  w.pipeline.source.batch.records = 20;
  w.pipeline.retry.initial = w.pipeline.retry.max = Millis{100'000};
  std::atomic<bool> failed{false};
  int reads = 0;
  w.source.bounded = false;
  w.targets[0]->before_write = [&](int attempt) -> Result<void> {
    if (attempt != 1) return {};
    failed = true;
    return transient();
  };
  w.source.before_read = [&](PartitionListener& listener) {
    if (++reads != 2) return;
    while (!failed) std::this_thread::yield();
    w.source.gone.insert({"a", 1});
    listener.released({{"a", 1}}, Release::revoked);
    w.source.bounded = true;
  };
  CHECK(w.run().status == RunStatus::done);
  CHECK(w.targets[0]->written == World::names("a", 0, 0, 10));
  CHECK(w.positions.next.at({"a", 0}) == 10);
  CHECK_FALSE(w.positions.next.contains({"a", 1}));
}
