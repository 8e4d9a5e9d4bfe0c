#include <doctest/doctest.h>

#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/reader.h"

using namespace flow;
using namespace flow::test;

TEST_CASE(
    "start: earliest begins at the beginning where the group has no position, and nowhere else") {
  const Topic topic(broker(), "kafka-start");
  produce(broker(), topic.name(), numbered(10));
  const std::string group = unique_name("group");
  Reader first({topic.name()}, group);
  MUST(first.to_end());
  CHECK(values(first.got) == numbered_values(0, 10));
  CHECK(first.log.has("source.no_position"));
  first.close();
  produce(broker(), topic.name(), numbered(3, 0, "w"));
  Reader second({topic.name()}, group);
  MUST(second.to_end());
  CHECK(values(second.got) == numbered_values(0, 3, "w"));
}

TEST_CASE(
    "start: latest begins at the end of its first start, also when the first run read nothing") {
  const Topic topic(broker(), "kafka-start", 2);
  produce(broker(), topic.name(), numbered(10));
  const std::string group = unique_name("group");
  {
    Reader reader({topic.name()}, group);
    reader.pipeline.source.kafka.start = StartAt::latest;
    MUST(reader.to_end());
    CHECK(reader.got.empty());
  }
  CHECK(committed_offsets(broker(), group, topic.name()) == PartitionOffsets{{0, 10}, {1, 0}});
  produce(broker(), topic.name(), numbered(3, 0, "w"));
  produce(broker(), topic.name(), numbered(2, 1, "x"));
  Reader reader({topic.name()}, group);
  reader.pipeline.source.kafka.start = StartAt::latest;
  MUST(reader.to_end());
  CHECK(reader.got.size() == 5);
  for (const Got& g : reader.got) CHECK(g.value->front() != 'v');
}

TEST_CASE("start: latest reads a partition that is added later from its beginning") {
  const Topic topic(broker(), "kafka-start", 2);
  Reader reader({topic.name()});
  reader.pipeline.source.kafka.start = StartAt::latest;
  reader.pipeline.source.kafka.properties["topic.metadata.refresh.interval.ms"] = "1000";
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.listener.owned().size() == 2; }));
  add_partitions(broker(), topic.name(), 4);
  produce(broker(), topic.name(), numbered(50, 3));
  REQUIRE(reader.read_until([&] { return reader.got.size() == 50; }));
  CHECK(values(reader.got) == numbered_values(0, 50));
  CHECK(reader.log.has("source.new_partition"));
}

TEST_CASE("start: latest reads a partition that was added while nobody ran from its beginning") {
  const Topic topic(broker(), "kafka-start", 1);
  const std::string group = unique_name("group");
  {
    Reader reader({topic.name()}, group);
    reader.pipeline.source.kafka.start = StartAt::latest;
    MUST(reader.to_end());
  }
  add_partitions(broker(), topic.name(), 2);
  produce(broker(), topic.name(), numbered(5, 1));
  Reader reader({topic.name()}, group);
  reader.pipeline.source.kafka.start = StartAt::latest;
  MUST(reader.to_end());
  CHECK(values(reader.got) == numbered_values(0, 5));
}

TEST_CASE("start: error refuses before the first read, naming the partition and what to set") {
  const Topic topic(broker(), "kafka-start");
  Reader reader({topic.name()});
  reader.pipeline.source.kafka.start = StartAt::error;
  const auto opened = reader.open();
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::setup);
  CHECK(opened.failure().code == "no_position");
  CHECK(opened.failure().text().find(topic.name() + "/0") != std::string::npos);
  CHECK(opened.failure().text().find("start") != std::string::npos);
}

namespace {

// Committed 100, log start 500, end 900.
struct Expired {
  Topic topic{broker(), "kafka-gap"};
  std::string group = unique_name("group");
  Expired() {
    produce(broker(), topic.name(), numbered(900));
    commit_offsets(broker(), group, topic.name(), {{0, 100}});
    delete_records_before(broker(), topic.name(), 0, 500);
  }
};

}  // namespace

TEST_CASE("a position that fell out of retention stops the run, naming what is gone") {
  const Expired at;
  Reader reader({at.topic.name()}, at.group);
  const auto opened = reader.open();
  REQUIRE(!opened);
  const std::string text = opened.failure().text();
  CAPTURE(text);
  CHECK(opened.failure().cls == FailureClass::setup);
  CHECK(opened.failure().code == "gap");
  for (const char* part : {"/0", "100", "500", "400 records are gone", "on_gap: earliest", "900"})
    CHECK(text.find(part) != std::string::npos);
  CHECK(committed_offsets(broker(), at.group, at.topic.name()) == PartitionOffsets{{0, 100}});
}

TEST_CASE("on_gap: earliest goes on at the log's start and says what is gone") {
  const Expired at;
  Reader reader({at.topic.name()}, at.group);
  reader.pipeline.source.kafka.on_gap = OnGap::earliest;
  MUST(reader.to_end());
  CHECK(values(reader.got) == numbered_values(500, 900));
  CHECK(reader.log.has("gone=400"));
  CHECK(committed_offsets(broker(), at.group, at.topic.name()) == PartitionOffsets{{0, 900}});
}

TEST_CASE("on_gap: latest goes on at the end") {
  const Expired at;
  Reader reader({at.topic.name()}, at.group);
  reader.pipeline.source.kafka.on_gap = OnGap::latest;
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return !reader.listener.owned().empty(); }));
  produce(broker(), at.topic.name(), numbered(2, 0, "w"));
  REQUIRE(reader.read_until([&] { return reader.got.size() >= 2; }));
  CHECK(values(reader.got) == numbered_values(0, 2, "w"));
}

TEST_CASE(
    "a position past the end of a replaced topic stops the run; on_gap: earliest reads the new "
    "one") {
  const Topic topic(broker(), "kafka-gap");
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(3));
  commit_offsets(broker(), group, topic.name(), {{0, 7}});
  {
    Reader reader({topic.name()}, group);
    const auto opened = reader.open();
    REQUIRE(!opened);
    CHECK(opened.failure().code == "gap");
    CHECK(opened.failure().text().find("past the end") != std::string::npos);
  }
  Reader reader({topic.name()}, group);
  reader.pipeline.source.kafka.on_gap = OnGap::earliest;
  MUST(reader.to_end());
  CHECK(values(reader.got) == numbered_values(0, 3));
  CHECK(committed_offsets(broker(), group, topic.name()) == PartitionOffsets{{0, 3}});
}

TEST_CASE("records that expire before a running source reads them are a gap too") {
  const Topic topic(broker(), "kafka-gap", 2);
  produce(broker(), topic.name(), numbered(10'000, 0, std::string(2'000, 'x')));
  for (const bool cooperative : {true, false}) {
    for (const OnGap policy : {OnGap::stop, OnGap::earliest}) {
      CAPTURE(cooperative);
      CAPTURE(static_cast<int>(policy));
      Reader reader({topic.name()});
      reader.pipeline.source.kafka.cooperative = cooperative;
      reader.pipeline.source.kafka.on_gap = policy;
      reader.pipeline.source.batch.records = 10;
      auto& properties = reader.pipeline.source.kafka.properties;
      properties["queued.max.messages.kbytes"] = "100";  // so that the rest is still at the broker
      properties["fetch.message.max.bytes"] = "50000";
      MUST(reader.open());
      REQUIRE(reader.read_until([&] { return !reader.got.empty(); }));
      const std::int64_t start =
          (cooperative ? 0 : 4'000) + (policy == OnGap::stop ? 2'000 : 4'000);
      delete_records_before(broker(), topic.name(), 0, start);
      reader.pipeline.source.batch.records = 10'000;
      const bool at_end = reader.read_until([&] { return reader.got.back().offset == 9'999; });
      if (policy == OnGap::stop) {
        CHECK_FALSE(at_end);
        REQUIRE(reader.failure);
        CHECK(reader.failure->code == "gap");
        CHECK(reader.failure->text().find(std::to_string(start)) != std::string::npos);
        continue;
      }
      CHECK(at_end);
      CHECK(reader.log.has("source.gap"));
      std::vector<std::int64_t> after;  // each offset from the log's start on, once
      for (const Got& g : reader.got) {
        if (g.offset >= start) after.push_back(g.offset);
      }
      std::vector<std::int64_t> expected;
      for (std::int64_t o = start; o < 10'000; ++o) expected.push_back(o);
      CHECK(after == expected);
    }
  }
}
