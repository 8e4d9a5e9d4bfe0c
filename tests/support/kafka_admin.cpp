// The administrative half of kafka_help.h: topics, groups and watermarks.
#include <vector>

#include "tests/support/kafka_client.h"
#include "tests/support/kafka_help.h"

namespace flow::test {
namespace {

KafkaClient admin_of(const std::string& broker) {
  return kafka_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", broker}});
}

KafkaClient member_of(const std::string& broker, const std::string& group) {
  return kafka_client(
      RD_KAFKA_CONSUMER,
      {{"bootstrap.servers", broker}, {"group.id", group}, {"enable.auto.commit", "false"}});
}

// Sends one admin request and returns its answer; `send` gets the queue for it.
template <class Send>
KafkaEvent ask(rd_kafka_t* client, const std::string& what, Send send) {
  const KafkaQueue queue(rd_kafka_queue_new(client));
  send(queue.get());
  KafkaEvent answer(rd_kafka_queue_poll(queue.get(), kafka_wait_ms));
  if (answer == nullptr) throw std::runtime_error(what + ": no answer");
  check(rd_kafka_event_error(answer.get()), what);
  return answer;
}

void check_topics(const rd_kafka_topic_result_t** results, size_t count, const std::string& what) {
  for (size_t at = 0; at < count; ++at) check(rd_kafka_topic_result_error(results[at]), what);
}

KafkaPartitions partitions_of(rd_kafka_t* client, const std::string& topic) {
  const auto metadata = topic_metadata(client, topic);
  KafkaPartitions list(rd_kafka_topic_partition_list_new(metadata->topics[0].partition_cnt));
  for (int at = 0; at < metadata->topics[0].partition_cnt; ++at) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(),
                                      metadata->topics[0].partitions[at].id);
  }
  return list;
}

}  // namespace

void create_topic(const std::string& broker, const std::string& topic, int partitions,
                  const std::map<std::string, std::string>& config) {
  const auto client = admin_of(broker);
  char why[512];
  const std::unique_ptr<rd_kafka_NewTopic_t, KafkaFree<rd_kafka_NewTopic_destroy>> wanted(
      rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, why, sizeof why));
  if (wanted == nullptr) throw std::runtime_error("create " + topic + ": " + why);
  for (const auto& [name, value] : config) {
    check(rd_kafka_NewTopic_set_config(wanted.get(), name.c_str(), value.c_str()), name);
  }
  rd_kafka_NewTopic_t* list[] = {wanted.get()};
  const auto answer = ask(client.get(), "create " + topic, [&](rd_kafka_queue_t* queue) {
    rd_kafka_CreateTopics(client.get(), list, 1, nullptr, queue);
  });
  size_t count = 0;
  check_topics(
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(answer.get()), &count),
      count, "create " + topic);
  topic_metadata(client.get(), topic);
}

void add_partitions(const std::string& broker, const std::string& topic, int total) {
  const auto client = admin_of(broker);
  char why[512];
  const std::unique_ptr<rd_kafka_NewPartitions_t, KafkaFree<rd_kafka_NewPartitions_destroy>> wanted(
      rd_kafka_NewPartitions_new(topic.c_str(), static_cast<size_t>(total), why, sizeof why));
  if (wanted == nullptr) throw std::runtime_error("add partitions to " + topic + ": " + why);
  rd_kafka_NewPartitions_t* list[] = {wanted.get()};
  const auto answer = ask(client.get(), "add partitions to " + topic, [&](rd_kafka_queue_t* queue) {
    rd_kafka_CreatePartitions(client.get(), list, 1, nullptr, queue);
  });
  size_t count = 0;
  check_topics(rd_kafka_CreatePartitions_result_topics(
                   rd_kafka_event_CreatePartitions_result(answer.get()), &count),
               count, "add partitions to " + topic);
}

void delete_topic(const std::string& broker, const std::string& topic) {
  const auto client = admin_of(broker);
  const std::unique_ptr<rd_kafka_DeleteTopic_t, KafkaFree<rd_kafka_DeleteTopic_destroy>> wanted(
      rd_kafka_DeleteTopic_new(topic.c_str()));
  rd_kafka_DeleteTopic_t* list[] = {wanted.get()};
  const auto answer = ask(client.get(), "delete " + topic, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DeleteTopics(client.get(), list, 1, nullptr, queue);
  });
  size_t count = 0;
  check_topics(
      rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(answer.get()), &count),
      count, "delete " + topic);
}

void delete_records_before(const std::string& broker, const std::string& topic,
                           std::int32_t partition, std::int64_t offset) {
  const auto client = admin_of(broker);
  const KafkaPartitions before(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(before.get(), topic.c_str(), partition)->offset = offset;
  const std::unique_ptr<rd_kafka_DeleteRecords_t, KafkaFree<rd_kafka_DeleteRecords_destroy>> wanted(
      rd_kafka_DeleteRecords_new(before.get()));
  rd_kafka_DeleteRecords_t* list[] = {wanted.get()};
  const auto answer = ask(client.get(), "delete records of " + topic, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DeleteRecords(client.get(), list, 1, nullptr, queue);
  });
  const auto* result =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(answer.get()));
  for (int at = 0; at < result->cnt; ++at)
    check(result->elems[at].err, "delete records of " + topic);
}

PartitionOffsets committed_offsets(const std::string& broker, const std::string& group,
                                   const std::string& topic) {
  const auto client = member_of(broker, group);
  const auto list = partitions_of(client.get(), topic);
  check(rd_kafka_committed(client.get(), list.get(), kafka_wait_ms),
        "committed offsets of " + group);
  PartitionOffsets found;
  for (int at = 0; at < list->cnt; ++at) {
    check(list->elems[at].err, "committed offset of " + group);
    if (list->elems[at].offset >= 0) found[list->elems[at].partition] = list->elems[at].offset;
  }
  return found;
}

void commit_offsets(const std::string& broker, const std::string& group, const std::string& topic,
                    const PartitionOffsets& offsets) {
  const auto client = member_of(broker, group);
  const KafkaPartitions list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (const auto& [partition, offset] : offsets) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
  }
  check(rd_kafka_commit(client.get(), list.get(), 0), "commit offsets of " + group);
}

std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> watermarks(const std::string& broker,
                                                                         const std::string& topic) {
  const auto client = admin_of(broker);
  const auto list = partitions_of(client.get(), topic);
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> found;
  for (int at = 0; at < list->cnt; ++at) {
    auto& [low, high] = found[list->elems[at].partition];
    check(rd_kafka_query_watermark_offsets(client.get(), topic.c_str(), list->elems[at].partition,
                                           &low, &high, kafka_wait_ms),
          "watermarks of " + topic);
  }
  return found;
}

}  // namespace flow::test
