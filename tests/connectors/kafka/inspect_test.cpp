#include <doctest/doctest.h>

#include "core/clock.h"
#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/reader.h"
#include "tests/support/kafka_client.h"

using namespace flow;
using namespace flow::test;

namespace {

std::vector<OffsetRow> inspect(const std::string& topic, const std::string& group) {
  Reader reader({topic}, group);
  auto rows = inspect_kafka(reader.context, {});
  REQUIRE_MESSAGE(rows.ok(), text_of(rows));
  return *rows;
}

OffsetRow inspect_one(const std::string& topic, const std::string& group) {
  const auto rows = inspect(topic, group);
  REQUIRE(rows.size() == 1);
  return rows.front();
}

}  // namespace

TEST_CASE("what is unread is counted in records and in time, and no more when it was read") {
  const Topic topic(broker(), "kafka-inspect");
  const std::string group = unique_name("group");
  std::vector<KafkaRecord> records = numbered(10);
  for (KafkaRecord& record : records) record.timestamp_ms = wall_ms() - 60'000;
  produce(broker(), topic.name(), records);
  commit_offsets(broker(), group, topic.name(), {{0, 4}});
  const OffsetRow row = inspect_one(topic.name(), group);
  CHECK(row.log_start == 0);
  CHECK(row.committed == 4);
  CHECK(row.high == 10);
  CHECK(row.last_stable == 10);
  CHECK(row.lag == 6);
  REQUIRE(row.lag_ms);
  CHECK(*row.lag_ms >= 60'000);
  CHECK(*row.lag_ms < 120'000);
  CHECK(row.expired_unread == 0);
  CHECK(row.verdict == "behind");
  commit_offsets(broker(), group, topic.name(), {{0, 10}});
  const OffsetRow read = inspect_one(topic.name(), group);
  CHECK(read.lag == 0);
  CHECK(read.lag_ms == 0);
  CHECK(read.verdict == "caught_up");
}

TEST_CASE("transaction markers and aborted records are no lag") {
  const Topic topic(broker(), "kafka-inspect", 3);
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(3, 0), Transaction::committed);
  produce(broker(), topic.name(), numbered(3, 1), Transaction::committed);
  produce(broker(), topic.name(), numbered(4, 1), Transaction::aborted);
  commit_offsets(broker(), group, topic.name(), {{0, 3}, {1, 3}, {2, 0}});
  for (const OffsetRow& row : inspect(topic.name(), group)) {
    CAPTURE(row.partition.text());
    CHECK(row.lag == 0);
    CHECK(row.verdict == "caught_up");
  }
}

TEST_CASE("records that expired unread are a figure of their own, and not lag") {
  const Topic topic(broker(), "kafka-inspect");
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(1'000));
  commit_offsets(broker(), group, topic.name(), {{0, 0}});
  delete_records_before(broker(), topic.name(), 0, 1'000);
  const OffsetRow row = inspect_one(topic.name(), group);
  CHECK(row.lag == 0);
  CHECK(row.expired_unread == 1'000);
  CHECK(row.verdict == "gap");
}

TEST_CASE("a partition without a committed position says so, whatever it holds") {
  const Topic topic(broker(), "kafka-inspect", 2);
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(500));
  delete_records_before(broker(), topic.name(), 0, 500);
  for (const OffsetRow& row : inspect(topic.name(), group)) {
    CHECK(row.committed == std::nullopt);
    CHECK(row.lag == std::nullopt);
    CHECK(row.verdict == "no_position");
  }
}

TEST_CASE(
    "an open transaction is shown as what blocks, with the readable end and the log's end apart") {
  const Topic topic(broker(), "kafka-inspect");
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(5));
  const KafkaClient client =
      kafka_client(RD_KAFKA_PRODUCER,
                   {{"bootstrap.servers", broker()}, {"transactional.id", unique_name("tx")}});
  check(rd_kafka_init_transactions(client.get(), kafka_wait_ms), "init");
  check(rd_kafka_begin_transaction(client.get()), "begin");
  char text[] = "open";
  check(rd_kafka_producev(client.get(), RD_KAFKA_V_TOPIC(topic.name().c_str()),
                          RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE(text, 4), RD_KAFKA_V_END),
        "produce");
  check(rd_kafka_flush(client.get(), kafka_wait_ms), "flush");
  produce(broker(), topic.name(), numbered(7, 0, "behind"));
  commit_offsets(broker(), group, topic.name(), {{0, 5}});
  OffsetRow row = inspect_one(topic.name(), group);
  CHECK(row.last_stable == 5);
  CHECK(row.high == 13);
  CHECK(row.lag == 0);
  CHECK(row.lag_ms.has_value());
  CHECK(row.verdict == "blocked");
  CHECK(row.reason.find("from 5 on by an open transaction since ") != std::string::npos);
  commit_offsets(broker(), group, topic.name(), {{0, 2}});
  row = inspect_one(topic.name(), group);
  CHECK(row.lag == 3);
  CHECK(row.verdict == "behind");
  CHECK(row.reason.find("open transaction") != std::string::npos);
  check(rd_kafka_abort_transaction(client.get(), kafka_wait_ms), "abort");
}

TEST_CASE("a position past the end is a gap, not a negative lag") {
  const Topic topic(broker(), "kafka-inspect");
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(3));
  commit_offsets(broker(), group, topic.name(), {{0, 9}});
  const OffsetRow row = inspect_one(topic.name(), group);
  CHECK(row.lag == std::nullopt);
  CHECK(row.verdict == "gap");
}

TEST_CASE("inspecting a group while it runs does not disturb it") {
  const Topic topic(broker(), "kafka-inspect", 2);
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(10));
  Reader reader({topic.name()}, group);
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 10; }));
  MUST(reader.commit());
  for (const OffsetRow& row : inspect(topic.name(), group)) CHECK(row.lag.value_or(0) == 0);
  MUST(reader.keep_alive());
  CHECK(reader.listener.events().size() == 1);
  CHECK(reader.listener.owned().size() == 2);
}

TEST_CASE("an unknown topic is refused by inspect and by check, naming it") {
  Reader reader({"orders"});
  const std::string wrong = unique_name("kafka-none");
  const auto rows = inspect_kafka(reader.context, wrong);
  REQUIRE(!rows);
  CHECK(rows.failure().text().find(wrong) != std::string::npos);
  reader.pipeline.source.kafka.topics = {wrong};
  const auto checked = check_kafka_source(reader.context);
  REQUIRE(!checked);
  CHECK(checked.failure().cls == FailureClass::setup);
}

TEST_CASE("check names topics and positions, and finds a gap without reading") {
  const Topic topic(broker(), "kafka-check", 2);
  const std::string group = unique_name("group");
  produce(broker(), topic.name(), numbered(10));
  commit_offsets(broker(), group, topic.name(), {{0, 3}});
  Reader reader({topic.name()}, group);
  const auto notes = check_kafka_source(reader.context);
  REQUIRE_MESSAGE(notes.ok(), text_of(notes));
  CHECK(*notes == std::vector<std::string>{"topic " + topic.name() + ": 2 partitions",
                                           "group " + group + ": a position in 1 of 2 partitions"});
  delete_records_before(broker(), topic.name(), 0, 5);
  const auto gap = check_kafka_source(reader.context);
  REQUIRE(!gap);
  CHECK(gap.failure().code == "gap");
}
