#include <doctest/doctest.h>
#include <set>

#include "core/clock.h"
#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/reader.h"

using namespace flow;
using namespace flow::test;

TEST_CASE("keys, values, headers and timestamps arrive as they were sent, null apart from empty") {
  const Topic topic(broker(), "kafka-records");
  const std::vector<KafkaRecord> sent = {
      {.key = "k1",
       .value = "v1",
       .headers = {{"a", "1"}, {"a", "2"}, {"b", std::nullopt}, {"c", ""}},
       .timestamp_ms = 1'700'000'000'123},
      {.key = std::nullopt, .value = "v2", .timestamp_ms = 1'700'000'000'124},
      {.key = "", .value = "", .timestamp_ms = 1'700'000'000'125},
      {.key = "k4", .value = std::nullopt, .timestamp_ms = 1'700'000'000'126},
      {.key = std::string("\0\xff", 2), .value = std::string("\0\xfe", 2), .timestamp_ms = 1},
  };
  produce(broker(), topic.name(), sent);
  Reader reader({topic.name()});
  MUST(reader.to_end());
  REQUIRE(reader.got.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i);
    CHECK(reader.got[i].partition == PartitionId{topic.name(), 0});
    CHECK(reader.got[i].offset == static_cast<std::int64_t>(i));
    CHECK(reader.got[i].key == sent[i].key);
    CHECK(reader.got[i].value == sent[i].value);
    CHECK(reader.got[i].headers == sent[i].headers);
    CHECK(reader.got[i].timestamp_ms == sent[i].timestamp_ms);
  }
}

TEST_CASE("a partition's records come in order, whatever the batches") {
  const Topic topic(broker(), "kafka-records", 3);
  std::vector<KafkaRecord> sent;
  for (int p = 0; p < 3; ++p) {
    const auto part = numbered(2'000, p, "p" + std::to_string(p) + "-");
    sent.insert(sent.end(), part.begin(), part.end());
  }
  produce(broker(), topic.name(), sent);
  Reader reader({topic.name()});
  reader.pipeline.source.batch.records = 333;
  MUST(reader.to_end());
  std::map<std::int32_t, std::vector<std::string>> by_partition;
  for (const Got& g : reader.got) by_partition[g.partition.partition].push_back(*g.value);
  for (int p = 0; p < 3; ++p) {
    CHECK(by_partition[p] == numbered_values(0, 2'000, "p" + std::to_string(p) + "-"));
  }
}

TEST_CASE("a batch keeps to its limits of records and bytes") {
  const Topic topic(broker(), "kafka-records");
  produce(broker(), topic.name(), numbered(1'000, 0, std::string(1'000, 'x')));
  Reader reader({topic.name()});
  reader.control.idle = false;
  reader.pipeline.source.batch.records = 100;
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return !reader.got.empty(); }));
  CHECK(reader.got.size() == 100);
  reader.pipeline.source.batch.records = 1'000;
  reader.pipeline.source.batch.bytes = 50'000;
  reader.got.clear();
  REQUIRE(reader.read_until([&] { return !reader.got.empty(); }));
  CHECK(reader.got.size() == 50);
}

TEST_CASE("a message larger than one fetch is read") {
  const Topic topic(broker(), "kafka-records", 1, {{"max.message.bytes", "9000000"}});
  const std::string large(6'000'000, 'x');
  std::vector<KafkaRecord> sent = numbered(3);
  sent.insert(sent.begin() + 1, {.key = {}, .value = large, .partition = 0});
  for (const KafkaRecord& record : sent) {
    TargetSpec spec;
    spec.kind = "kafka";
    spec.brokers = broker();
    spec.topic = topic.name();
    Pipeline pipeline;
    RecordingLog log;
    Context context;
    context.pipeline = &pipeline;
    context.log = &log;
    auto target = make_kafka_target(context, spec);
    REQUIRE(target);
    REQUIRE((*target)->prepare({}));
    REQUIRE((*target)->start({}, {}));
    Batch batch;
    batch.spans.push_back({{"t", 0}, {0}, {1}, {}});
    Record r;
    r.value = *record.value;
    batch.records.push_back(r);
    RowSet rows;
    rows.add(0);
    rows.order = {0};
    const auto written = (*target)->write(batch, rows);
    REQUIRE_MESSAGE(written.ok(), (written.ok() ? "" : written.failure().text()));
  }
  Reader reader({topic.name()});
  reader.pipeline.source.batch.bytes = 1 << 20;
  MUST(reader.to_end());
  CHECK(values(reader.got) == std::vector<std::string>{"v0", large, "v1", "v2"});
}

TEST_CASE(
    "while the writer is idle, records are handed over at once; else the batch fills up to its "
    "wait") {
  const Topic topic(broker(), "kafka-records");
  Reader reader({topic.name()});
  reader.pipeline.source.batch.wait = Millis{3'600'000};
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return !reader.listener.owned().empty(); }));
  produce(broker(), topic.name(), numbered(1));
  REQUIRE(reader.read_until([&] { return !reader.got.empty(); }));
  CHECK(values(reader.got) == std::vector<std::string>{"v0"});

  reader.control.idle = false;
  reader.pipeline.source.batch.wait = Millis{300};
  reader.got.clear();
  produce(broker(), topic.name(), numbered(1));
  produce(broker(), topic.name(), numbered(1));
  const auto start = Monotonic::now();
  REQUIRE(reader.read_until([&] { return !reader.got.empty(); }));
  CHECK(reader.got.size() == 2);
  CHECK(Monotonic::now() - start >= Millis{290});
}

TEST_CASE("a source that is told to stop returns what it has") {
  const Topic topic(broker(), "kafka-records");
  produce(broker(), topic.name(), numbered(5));
  Reader reader({topic.name()});
  reader.control.idle = false;
  reader.pipeline.source.batch.wait = Millis{3'600'000};
  MUST(reader.open());
  std::thread stopper([&] {
    wait_for(std::chrono::seconds(20), [&] { return reader.progress().lag == 0U; });
    reader.control.stop = true;
  });
  std::optional<ReadOutcome> outcome;
  while (reader.got.empty() && !reader.control.stop) {
    auto r = reader.read();
    REQUIRE(r);
    outcome = *r;
  }
  stopper.join();
  CHECK(outcome == ReadOutcome::more);
  CHECK(values(reader.got) == numbered_values(0, 5));
}

TEST_CASE("the progress says how many records are left, and none at the end") {
  const Topic topic(broker(), "kafka-records");
  produce(broker(), topic.name(), numbered(1'000));
  Reader reader({topic.name()});
  reader.pipeline.source.batch.records = 400;
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 400; }));
  CHECK(reader.progress().lag == 600U);
  REQUIRE(reader.read_until([&] { return reader.got.size() == 1'000; }));
  CHECK(reader.progress().lag == 0U);
}
