// Settings of the clients, and questions to the cluster.
#include <algorithm>
#include <array>
#include <string_view>

#include "connectors/kafka_client.h"
#include "connectors/registry.h"
#include "core/clock.h"
#include "core/suggest.h"

namespace flow {
namespace kafka {

namespace {

struct Owned {
  std::string_view name;
  std::string_view why;
};

// What a pipeline sets elsewhere, or what the promises of the connectors rest on.
constexpr std::array owned_properties = {
    Owned{"bootstrap.servers", "it is set by brokers"},
    Owned{"metadata.broker.list", "it is set by brokers"},
    Owned{"group.id", "it is set by group"},
    Owned{"partition.assignment.strategy", "it is set by rebalance"},
    Owned{"auto.offset.reset", "it is set by start and on_gap"},
    Owned{"enable.auto.commit", "positions are committed when the targets are durable"},
    Owned{"auto.commit.enable", "positions are committed when the targets are durable"},
    Owned{"enable.auto.offset.store", "positions are committed when the targets are durable"},
    Owned{"auto.commit.interval.ms", "positions are committed when the targets are durable"},
    Owned{"isolation.level", "aborted and open transactions are never read"},
    Owned{"enable.partition.eof", "the end of a partition must be seen"},
    Owned{"acks", "a write is durable only when all in-sync replicas have it"},
    Owned{"request.required.acks", "a write is durable only when all in-sync replicas have it"},
    Owned{"enable.idempotence", "the client's own retries must not double a message"},
    Owned{"transactional.id", "it is set by delivery"},
    Owned{"delivery.report.only.error", "every delivery report is checked"},
};

bool refused_login(Client& client) {
  rd_kafka_poll(client.raw(), 0);  // serves the error callback
  return client.shared().errors.refused(client.where()).has_value();
}

using Metadata = std::unique_ptr<const rd_kafka_metadata_t, Free<rd_kafka_metadata_destroy>>;

// Asks in short steps, so that a refused login is seen at once and not after the whole wait.
Result<Metadata> ask_metadata(Client& client, rd_kafka_topic_t* topic, Millis wait) {
  const auto deadline = Monotonic::now() + wait;
  for (;;) {
    const rd_kafka_metadata_t* answer = nullptr;
    const auto code =
        rd_kafka_metadata(client.raw(), topic == nullptr ? 1 : 0, topic, &answer, 1'000);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      client.shared().errors.answered();
      return Metadata(answer);
    }
    const bool hopeless = !failure_of(code, {}).retryable();
    if (refused_login(client) || hopeless || Monotonic::now() >= deadline)
      return client.failure(code);
  }
}

}  // namespace

void add_properties(Settings& settings, const std::map<std::string, std::string>& properties) {
  for (const auto& [name, value] : properties) settings.emplace_back(name, value);
}

bool has_property(const std::map<std::string, std::string>& properties, std::string_view name) {
  return properties.contains(std::string(name));
}

std::string owned_property(std::string_view name) {
  for (const Owned& owned : owned_properties) {
    if (owned.name == name) return std::string(owned.why);
  }
  return {};
}

Settings probe_settings(const std::string& brokers,
                        const std::map<std::string, std::string>& properties) {
  Settings settings = {{"client.id", "flow"}, {"reconnect.backoff.max.ms", "1000"}};
  for (const auto& [name, value] : properties) {
    if (name != "group.instance.id") settings.emplace_back(name, value);
  }
  settings.emplace_back("bootstrap.servers", brokers);
  settings.emplace_back("allow.auto.create.topics", "false");
  settings.emplace_back("enable.auto.commit", "false");
  settings.emplace_back("enable.auto.offset.store", "false");
  settings.emplace_back("auto.offset.reset", "error");
  return settings;
}

Result<std::vector<TopicInfo>> list_topics(Client& client, Millis wait) {
  auto answer = ask_metadata(client, nullptr, wait);
  if (!answer) return std::move(answer).failure();
  std::vector<TopicInfo> topics;
  const rd_kafka_metadata_t& metadata = **answer;
  for (int i = 0; i < metadata.topic_cnt; ++i) {
    const rd_kafka_metadata_topic& topic = metadata.topics[i];
    if (topic.err == RD_KAFKA_RESP_ERR_NO_ERROR && topic.partition_cnt > 0)
      topics.push_back({topic.topic, topic.partition_cnt});
  }
  return topics;
}

Failure absent_topic(Client& client, const std::string& topic, const std::vector<TopicInfo>& all,
                     std::string_view setting) {
  const std::unique_ptr<rd_kafka_topic_t, Free<rd_kafka_topic_destroy>> handle(
      rd_kafka_topic_new(client.raw(), topic.c_str(), nullptr));
  auto answer = ask_metadata(client, handle.get(), Millis{5'000});
  if (!answer) return std::move(answer).failure();
  const rd_kafka_metadata_t& metadata = **answer;
  auto code =
      metadata.topic_cnt == 1 ? metadata.topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
    code = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;  // just made
  if (code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    return failure_of(code, "topic " + topic + " at " + client.where());
  std::vector<std::string_view> names;
  for (const TopicInfo& t : all) names.push_back(t.name);
  const std::string near = nearest_name(topic, names);
  return failure_of(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
                    "topic " + topic + " at " + client.where(), "the topic does not exist",
                    near.empty() ? "create it, or correct " + std::string(setting)
                                 : "did you mean \"" + near + "\"?");
}

Result<Offsets> committed_offsets(Client& client, const std::vector<PartitionId>& partitions,
                                  Millis wait) {
  Offsets offsets;
  if (partitions.empty()) return offsets;
  const List list = make_list(partitions, RD_KAFKA_OFFSET_INVALID);
  const auto code = rd_kafka_committed(client.raw(), list.get(), static_cast<int>(wait.count()));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return client.failure(code);
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& entry = list->elems[i];
    if (entry.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      Failure failure = client.failure(entry.err);
      failure.where = id_of(entry).text() + " at " + client.where();
      return failure;
    }
    if (entry.offset >= 0) offsets[id_of(entry)] = entry.offset;
  }
  return offsets;
}

Result<Offsets> edge_offsets(Client& client, const std::vector<PartitionId>& partitions, Edge edge,
                             Millis wait) {
  Offsets offsets;
  if (partitions.empty()) return offsets;
  const List list =
      make_list(partitions, edge == Edge::start ? RD_KAFKA_OFFSET_BEGINNING : RD_KAFKA_OFFSET_END);
  const auto code =
      rd_kafka_offsets_for_times(client.raw(), list.get(), static_cast<int>(wait.count()));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return client.failure(code);
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& entry = list->elems[i];
    if (entry.err != RD_KAFKA_RESP_ERR_NO_ERROR || entry.offset < 0) {
      Failure failure = client.failure(
          entry.err != RD_KAFKA_RESP_ERR_NO_ERROR ? entry.err : RD_KAFKA_RESP_ERR__TIMED_OUT);
      failure.where = id_of(entry).text() + " at " + client.where();
      return failure;
    }
    offsets[id_of(entry)] = entry.offset;
  }
  client.shared().errors.answered();
  return offsets;
}

std::optional<std::string> topic_config(Client& client, const std::string& topic,
                                        std::string_view name) {
  const Queue queue(rd_kafka_queue_new(client.raw()));
  rd_kafka_ConfigResource_t* resource =
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str());
  const std::unique_ptr<rd_kafka_ConfigResource_t, Free<rd_kafka_ConfigResource_destroy>> owned(
      resource);
  rd_kafka_DescribeConfigs(client.raw(), &resource, 1, nullptr, queue.get());
  const std::unique_ptr<rd_kafka_event_t, Free<rd_kafka_event_destroy>> event(
      rd_kafka_queue_poll(queue.get(), static_cast<int>(answer_wait.count())));
  const rd_kafka_DescribeConfigs_result_t* result =
      event ? rd_kafka_event_DescribeConfigs_result(event.get()) : nullptr;
  if (result == nullptr) return std::nullopt;
  std::size_t count = 0;
  const auto* resources = rd_kafka_DescribeConfigs_result_resources(result, &count);
  if (count != 1) return std::nullopt;
  const auto* entries = rd_kafka_ConfigResource_configs(resources[0], &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (rd_kafka_ConfigEntry_name(entries[i]) == name) {
      if (const char* value = rd_kafka_ConfigEntry_value(entries[i])) return value;
    }
  }
  return std::nullopt;
}

std::vector<PartitionId> partitions_of(const std::vector<TopicInfo>& topics) {
  std::vector<PartitionId> partitions;
  for (const TopicInfo& topic : topics) {
    for (std::int32_t p = 0; p < topic.partitions; ++p) partitions.push_back({topic.name, p});
  }
  return partitions;
}

}  // namespace kafka

std::string check_kafka_property(const std::string& name, const std::string& value) {
  if (const std::string why = kafka::owned_property(name); !why.empty())
    return "cannot be set here: " + why;
  char text[512] = "";
  const std::unique_ptr<rd_kafka_conf_t, kafka::Free<rd_kafka_conf_destroy>> conf(
      rd_kafka_conf_new());
  switch (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), text, sizeof text)) {
    case RD_KAFKA_CONF_OK: return {};
    case RD_KAFKA_CONF_UNKNOWN: return "is not a property of librdkafka";
    case RD_KAFKA_CONF_INVALID: break;
  }
  return text;
}

}  // namespace flow
