#include <algorithm>
#include <doctest/doctest.h>
#include <set>

#include "core/clock.h"
#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/reader.h"
#include "tests/support/broker.h"

using namespace flow;
using namespace flow::test;
using What = RecordingListener::Event::What;

namespace {

constexpr std::chrono::seconds patience{40};

std::set<std::string> all_values(const std::vector<const Reader*>& readers) {
  std::set<std::string> found;
  for (const Reader* reader : readers) {
    for (const Got& g : reader->got) found.insert(*g.value);
  }
  return found;
}

void produce_to_all(const Topic& topic, int partitions, int each, const std::string& prefix) {
  std::vector<KafkaRecord> records;
  for (int p = 0; p < partitions; ++p) {
    const auto part = numbered(each, p, prefix + std::to_string(p) + "-");
    records.insert(records.end(), part.begin(), part.end());
  }
  produce(broker(), topic.name(), records);
}

// Two members share four partitions; records keep coming; nothing is lost, and nothing that was
// committed is read again.
void share_partitions(bool cooperative) {
  const Topic topic(broker(), "kafka-group", 4);
  const std::string group = unique_name("group");
  Reader a({topic.name()}, group);
  Reader b({topic.name()}, group);
  a.pipeline.source.kafka.cooperative = cooperative;
  b.pipeline.source.kafka.cooperative = cooperative;
  a.pipeline.source.batch.records = 50;
  MUST(a.open());
  produce_to_all(topic, 4, 500, "one");
  a.on_thread();
  REQUIRE(wait_for(patience, [&] { return a.count() == 2'000; }));
  MUST(b.open());
  b.on_thread();
  REQUIRE(wait_for(
      patience, [&] { return a.listener.owned().size() == 2 && b.listener.owned().size() == 2; }));
  produce_to_all(topic, 4, 500, "two");
  REQUIRE(wait_for(patience, [&] { return a.count() + b.count() >= 4'000; }));
  b.stop();
  b.close();
  REQUIRE(wait_for(patience, [&] { return a.listener.owned().size() == 4; }));
  produce_to_all(topic, 4, 500, "three");
  REQUIRE(wait_for(patience, [&] { return a.count() + b.count() >= 6'000; }));
  a.stop();
  CHECK_FALSE(a.failure);
  CHECK_FALSE(b.failure);
  CHECK(all_values({&a, &b}).size() == 6'000);
  CHECK(a.got.size() + b.got.size() == 6'000);
  for (std::int32_t p = 0; p < 4; ++p)
    CHECK(committed_offsets(broker(), group, topic.name()).at(p) == 1'500);

  bool revoked = false;
  for (const auto& event : a.listener.events()) {
    revoked = revoked || event.what == What::revoked;
    CHECK(event.what != What::lost);
    if (cooperative && event.what == What::revoked) CHECK(event.partitions.size() == 2);
  }
  CHECK(revoked);
}

}  // namespace

TEST_CASE(
    "two members share the partitions cooperatively: nothing is lost, nothing committed is "
    "repeated") {
  share_partitions(true);
}

TEST_CASE(
    "two members share the partitions eagerly: nothing is lost, nothing committed is repeated") {
  share_partitions(false);
}

TEST_CASE(
    "a partition is released before anybody else gets it, and its unwritten records are dropped") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  produce_to_all(topic, 2, 10, "v");
  Reader a({topic.name()}, group);
  Reader b({topic.name()}, group);
  std::atomic<bool> b_had_it_early{false};
  a.listener.on_release = [&](const std::vector<PartitionId>& partitions, Release how) {
    CHECK(how == Release::revoked);
    // The batch in hand becomes durable here, as the loop does it.
    CHECK(a.commit());
    for (const PartitionId& p : partitions) {
      if (b.listener.owned().contains(p)) b_had_it_early = true;
    }
  };
  MUST(a.open());
  REQUIRE(a.read_until([&] { return a.got.size() == 20; }));  // in hand, not committed
  MUST(b.open());
  b.on_thread();
  REQUIRE(wait_for(patience, [&] {
    MUST(a.keep_alive());
    return b.listener.owned().size() == 1 && a.listener.owned().size() == 1;
  }));
  CHECK_FALSE(b_had_it_early);
  produce_to_all(topic, 2, 1, "w");
  REQUIRE(wait_for(patience, [&] { return b.count() >= 1; }));
  b.stop();
  CHECK(b.got.size() == 1);  // what A had committed on release was not read again
  CHECK(b.got.front().value->front() == 'w');
}

TEST_CASE("a position is committed only for partitions that are ours, and never goes back") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  produce_to_all(topic, 2, 10, "v");
  Reader reader({topic.name()}, group);
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 20; }));
  const PartitionId p0{topic.name(), 0};
  MUST(reader.positions().commit({{p0, {0}, {8}, {}}}, {}));
  MUST(reader.positions().commit(
      {{p0, {0}, {5}, {}}, {{topic.name(), 7}, {0}, {3}, {}}, {{"another", 0}, {0}, {3}, {}}}, {}));
  CHECK(committed_offsets(broker(), group, topic.name()) == PartitionOffsets{{0, 8}});
}

TEST_CASE(
    "while the writer is blocked for longer than max.poll.interval.ms the membership is kept") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  produce_to_all(topic, 2, 1'000, "v");
  Reader reader({topic.name()}, group);
  reader.pipeline.source.batch.records = 100;
  reader.pipeline.source.kafka.properties["max.poll.interval.ms"] = "6000";
  reader.pipeline.source.kafka.properties["session.timeout.ms"] = "6000";
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 100; }));
  const auto blocked_until = Monotonic::now() + std::chrono::seconds(9);
  REQUIRE(wait_for(patience, [&] {
    MUST(reader.keep_alive());
    return Monotonic::now() >= blocked_until;
  }));
  CHECK(reader.got.size() == 100);  // nothing was taken meanwhile
  MUST(reader.commit());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 2'000; }));
  std::set<std::string> distinct;
  for (const Got& g : reader.got) distinct.insert(*g.value);
  CHECK(distinct.size() == 2'000);
  for (const auto& event : reader.listener.events()) CHECK(event.what == What::assigned);
}

TEST_CASE("a partition that came back is read from where the other member committed") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  produce_to_all(topic, 2, 200, "v");
  Reader a({topic.name()}, group);
  a.pipeline.source.batch.records = 10;
  MUST(a.open());
  REQUIRE(a.read_until([&] { return a.got.size() == 10; }));
  Reader b({topic.name()}, group);
  MUST(b.open());
  b.on_thread();
  // A stalls all the while: it polls, but takes nothing.
  REQUIRE(wait_for(patience, [&] {
    MUST(a.keep_alive());
    return b.count() >= 200;
  }));
  b.stop();
  b.close();
  REQUIRE(wait_for(patience, [&] {
    MUST(a.keep_alive());
    return a.listener.owned().size() == 2;
  }));
  a.pipeline.source.batch.records = 1'000;
  const PartitionId moved = b.got.front().partition;
  produce(broker(), topic.name(), numbered(5, moved.partition, "w"));
  REQUIRE(a.read_until([&] {
    return std::count_if(a.got.begin(), a.got.end(),
                         [](const Got& g) { return g.value->front() == 'w'; }) == 5;
  }));
  std::vector<std::string> after;
  for (std::size_t i = 10; i < a.got.size(); ++i) {
    if (a.got[i].partition == moved) after.push_back(*a.got[i].value);
  }
  CHECK(after == numbered_values(0, 5, "w"));
}

TEST_CASE("a static member that was killed moves records again within five seconds") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  produce_to_all(topic, 2, 10, "v");
  auto killed = std::make_unique<Reader>(std::vector{topic.name()}, group);
  killed->context.instance_id = "host-slot-0";
  REQUIRE(killed->open());
  REQUIRE(killed->read_until([&] { return killed->got.size() == 20; }));
  // Left behind as a SIGKILL leaves it: no goodbye to the group. (It stays open until the test
  // ends.)
  Reader next({topic.name()}, group);
  next.context.instance_id = "host-slot-0";
  const auto start = Monotonic::now();
  MUST(next.open());
  REQUIRE(next.read_until([&] { return next.got.size() >= 20; }));
  CHECK(Monotonic::now() - start < std::chrono::seconds(5));
  CHECK(next.got.size() == 20);

  // The older process of the same identity is told, and commits nothing.
  CHECK_FALSE(killed->read_until([&] { return false; }));
  REQUIRE(killed->failure);
  CHECK(killed->failure->cls == FailureClass::fenced);
  CHECK(killed->failure->text().find(group) != std::string::npos);
  const auto late = killed->positions().commit({{{topic.name(), 0}, {0}, {10}, {}}}, {});
  REQUIRE(!late);
  CHECK(late.failure().cls == FailureClass::fenced);
  CHECK(committed_offsets(broker(), group, topic.name()).empty());
  MUST(next.commit());
}

TEST_CASE(
    "a static member that stops for good gives its partitions to the others within ten seconds") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  Reader a({topic.name()}, group);
  Reader b({topic.name()}, group);
  a.context.instance_id = "host-slot-0";
  b.context.instance_id = "host-slot-1";
  MUST(a.open());
  MUST(b.open());
  a.on_thread();
  b.on_thread();
  REQUIRE(wait_for(
      patience, [&] { return a.listener.owned().size() == 1 && b.listener.owned().size() == 1; }));
  b.stop();
  b.close();
  const auto start = Monotonic::now();
  REQUIRE(wait_for(patience, [&] { return a.listener.owned().size() == 2; }));
  CHECK(Monotonic::now() - start < std::chrono::seconds(10));
}

TEST_CASE(
    "a member with another rebalance protocol is refused, naming the group; the others go on") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  Reader a({topic.name()}, group);
  a.pipeline.source.kafka.cooperative = false;
  MUST(a.open());
  a.on_thread();
  REQUIRE(wait_for(patience, [&] { return a.listener.owned().size() == 2; }));
  Reader b({topic.name()}, group);
  MUST(b.open());
  CHECK_FALSE(b.read_until([&] { return false; }));
  REQUIRE(b.failure);
  CHECK(b.failure->cls == FailureClass::setup);
  CHECK(b.failure->text().find(group) != std::string::npos);
  CHECK(b.failure->text().find("cooperative-sticky") != std::string::npos);
  b.close();
  produce_to_all(topic, 2, 5, "v");
  CHECK(wait_for(patience, [&] { return a.count() == 10; }));
  a.stop();
  CHECK_FALSE(a.failure);
}

TEST_CASE("a bounded run does not end before what other members read is committed") {
  const Topic topic(broker(), "kafka-group", 2);
  const std::string group = unique_name("group");
  Reader other({topic.name()}, group);
  MUST(other.open());
  REQUIRE(other.read_until([&] { return other.listener.owned().size() == 2; }));
  produce_to_all(topic, 2, 10, "v");
  Reader bounded({topic.name()}, group);
  bounded.context.until_end = true;
  MUST(bounded.open());
  std::atomic<bool> ended{false};
  std::thread run([&] {
    for (;;) {
      const auto outcome = bounded.read();
      if (!outcome || !bounded.commit()) return;
      if (*outcome == ReadOutcome::end) break;
    }
    ended = true;
  });
  // Each has one partition; the other holds its records uncommitted.
  REQUIRE(wait_for(patience, [&] {
    REQUIRE(other.read());
    return bounded.listener.owned().size() == 1 && other.listener.owned().size() == 1 &&
           bounded.count() == 10;
  }));
  const auto until = Monotonic::now() + std::chrono::seconds(3);
  wait_for(patience, [&] {
    MUST(other.keep_alive());
    return Monotonic::now() >= until || ended;
  });
  CHECK_FALSE(ended);
  const PartitionId theirs = *other.listener.owned().begin();
  MUST(other.positions().commit({{theirs, {0}, {10}, {}}}, {}));
  CHECK(wait_for(patience, [&] {
    MUST(other.keep_alive());
    return ended.load();
  }));
  run.join();
}

TEST_CASE(
    "while members come and go, no position goes back, nothing is lost, and little is repeated") {
  constexpr int partitions = 4;
  const Topic topic(broker(), "kafka-group", partitions);
  const std::string group = unique_name("group");
  Reader a({topic.name()}, group);
  a.pipeline.source.batch.records = 20;
  MUST(a.open());
  a.on_thread();
  std::atomic<bool> done{false};
  std::string went_back;
  std::thread checker([&] {
    PartitionOffsets before;
    while (!done) {
      for (const auto& [p, offset] : committed_offsets(broker(), group, topic.name())) {
        if (offset < before[p])
          went_back = std::to_string(p) + ": " + std::to_string(before[p]) + " to " +
                      std::to_string(offset);
        before[p] = offset;
      }
    }
  });
  std::vector<std::unique_ptr<Reader>> others;
  int sent = 0;
  for (int round = 0; round < 5; ++round) {
    produce_to_all(topic, partitions, 300, "r" + std::to_string(round) + "-");
    sent += partitions * 300;
    auto b = std::make_unique<Reader>(std::vector{topic.name()}, group);
    b->pipeline.source.batch.records = 20;
    MUST(b->open());
    b->on_thread();
    CHECK(wait_for(patience, [&] { return b->listener.owned().size() == 2; }));
    b->stop();
    b->close();
    others.push_back(std::move(b));
  }
  const auto all_committed = [&] {
    std::int64_t sum = 0;
    for (const auto& [p, offset] : committed_offsets(broker(), group, topic.name())) sum += offset;
    return sum == sent;
  };
  CHECK(wait_for(patience, all_committed));
  a.stop();
  done = true;
  checker.join();
  CHECK(went_back.empty());
  CHECK_FALSE(a.failure);
  std::vector<const Reader*> readers = {&a};
  std::size_t read = a.got.size();
  for (const auto& b : others) {
    CHECK_FALSE(b->failure);
    readers.push_back(b.get());
    read += b->got.size();
  }
  CHECK(all_values(readers).size() == static_cast<std::size_t>(sent));
  CHECK(read - static_cast<std::size_t>(sent) <= others.size() * 2 * 20);  // a batch at each change
}

TEST_CASE("a member cut off for longer than its session drops what it holds and reads it again") {
  const OwnServer server(OwnServer::Kind::kafka);
  const std::string at = server.at().kafka;
  const Topic topic(at, "kafka-lost", 1);
  produce(at, topic.name(), numbered(10));
  Reader reader({topic.name()});
  reader.pipeline.source.kafka.brokers = at;
  reader.pipeline.source.kafka.properties["session.timeout.ms"] = "6000";
  reader.pipeline.source.kafka.properties["socket.timeout.ms"] = "3000";
  reader.pipeline.source.batch.records = 5;
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 5; }));
  MUST(reader.commit());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 10; }));  // never committed
  const Spans held = reader.spans;
  server.freeze();
  const auto lost = [&] {
    MUST(reader.keep_alive());
    const auto events = reader.listener.events();
    return !events.empty() && events.back().what == What::lost;
  };
  CHECK(wait_for(patience, lost));
  MUST(reader.positions().commit(held, {}));  // no longer ours: left out
  server.thaw();
  REQUIRE(reader.read_until([&] { return reader.got.size() >= 15; }));
  const std::vector<std::string> all = values(reader.got);
  CHECK(std::vector<std::string>(all.begin() + 10, all.end()) == numbered_values(5, 10));
}
