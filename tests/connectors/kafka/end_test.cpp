#include <doctest/doctest.h>

#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/reader.h"
#include "tests/support/kafka_client.h"

using namespace flow;
using namespace flow::test;

namespace {

// A transaction that stays open until this goes out of scope.
class OpenTransaction {
 public:
  OpenTransaction(const std::string& topic, int records)
      : client_(kafka_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", broker()},
                                                 {"transactional.id", unique_name("tx")}})) {
    check(rd_kafka_init_transactions(client_.get(), kafka_wait_ms), "init");
    check(rd_kafka_begin_transaction(client_.get()), "begin");
    char text[] = "open";
    for (int i = 0; i < records; ++i) {
      check(rd_kafka_producev(client_.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                              RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE(text, 4),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
            "produce");
    }
    check(rd_kafka_flush(client_.get(), kafka_wait_ms), "flush");
  }
  ~OpenTransaction() {
    rd_kafka_error_destroy(rd_kafka_abort_transaction(client_.get(), kafka_wait_ms));
  }
  OpenTransaction(const OpenTransaction&) = delete;
  OpenTransaction& operator=(const OpenTransaction&) = delete;

 private:
  KafkaClient client_;
};

}  // namespace

TEST_CASE(
    "a bounded run on transactions ends behind the last marker, and a second one reads nothing") {
  const Topic topic(broker(), "kafka-end", 3);
  produce(broker(), topic.name(), numbered(3, 0), Transaction::committed);
  produce(broker(), topic.name(), numbered(2, 1, "w"), Transaction::committed);
  produce(broker(), topic.name(), numbered(4, 1, "no"), Transaction::aborted);
  const std::string group = unique_name("group");
  Reader first({topic.name()}, group);
  MUST(first.to_end());
  CHECK(first.got.size() == 5);
  for (const Got& g : first.got) CHECK(g.value->find("no") == std::string::npos);
  first.close();
  // Three records and a marker; two, a marker, four aborted and a marker; none.
  const auto committed = committed_offsets(broker(), group, topic.name());
  CHECK(committed.at(0) == 4);
  CHECK(committed.at(1) == 8);
  Reader second({topic.name()}, group);
  MUST(second.to_end());
  CHECK(second.got.empty());
  CHECK(second.progress().lag == 0U);
}

TEST_CASE("the committed position is the next offset, and a second run has nothing to read") {
  const Topic topic(broker(), "kafka-end");
  produce(broker(), topic.name(), numbered(10));
  const std::string group = unique_name("group");
  Reader first({topic.name()}, group);
  MUST(first.to_end());
  first.close();
  CHECK(committed_offsets(broker(), group, topic.name()) == PartitionOffsets{{0, 10}});
  Reader second({topic.name()}, group);
  MUST(second.to_end());
  CHECK(second.got.empty());
}

TEST_CASE("a bounded run stops at what was there at the start") {
  const Topic topic(broker(), "kafka-end");
  produce(broker(), topic.name(), numbered(10));
  const std::string group = unique_name("group");
  Reader reader({topic.name()}, group);
  reader.context.until_end = true;
  MUST(reader.open());
  produce(broker(), topic.name(), numbered(10, 0, "later"));
  for (;;) {
    const auto outcome = reader.read();
    REQUIRE(outcome);
    MUST(reader.commit());
    if (*outcome == ReadOutcome::end) break;
  }
  CHECK(values(reader.got) == numbered_values(0, 10));
  CHECK(reader.progress().done == 10U);
  CHECK(reader.progress().total == 10U);
  CHECK(committed_offsets(broker(), group, topic.name()) == PartitionOffsets{{0, 10}});
}

TEST_CASE("a bounded run of empty and of wholly expired partitions ends") {
  const Topic topic(broker(), "kafka-end", 2);
  produce(broker(), topic.name(), numbered(500));
  delete_records_before(broker(), topic.name(), 0, 500);
  Reader reader({topic.name()});
  MUST(reader.to_end());
  CHECK(reader.got.empty());
}

TEST_CASE("an open transaction does not keep a bounded run from ending before it") {
  const Topic topic(broker(), "kafka-end");
  produce(broker(), topic.name(), numbered(5));
  const OpenTransaction open(topic.name(), 2);
  produce(broker(), topic.name(), numbered(3, 0, "behind"));
  const std::string group = unique_name("group");
  Reader reader({topic.name()}, group);
  MUST(reader.to_end());
  CHECK(values(reader.got) == numbered_values(0, 5));
  CHECK(committed_offsets(broker(), group, topic.name()) == PartitionOffsets{{0, 5}});
}

TEST_CASE("a dry run reads from the group's position, joins no group and commits nothing") {
  const Topic topic(broker(), "kafka-end", 2);
  produce(broker(), topic.name(), numbered(10, 0));
  produce(broker(), topic.name(), numbered(3, 1, "w"));
  const std::string group = unique_name("group");
  commit_offsets(broker(), group, topic.name(), {{0, 7}});
  Reader member({topic.name()}, group);  // keeps all partitions all the while
  MUST(member.open());
  REQUIRE(member.read_until([&] { return member.got.size() == 6; }));
  Reader dry({topic.name()}, group);
  dry.context.dry_run = true;
  MUST(dry.to_end());
  CHECK(dry.got.size() == 6);
  CHECK(committed_offsets(broker(), group, topic.name()) == PartitionOffsets{{0, 7}});
  MUST(member.keep_alive());
  CHECK(member.listener.owned().size() == 2);
}
