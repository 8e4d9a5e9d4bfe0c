#include "tests/support/kafka_help.h"

#include <algorithm>
#include <set>

#include "tests/support/kafka_client.h"
#include "tests/support/pg_help.h"
#include "tests/support/wait_for.h"

namespace flow::test {

KafkaClient kafka_client(rd_kafka_type_t type, const std::map<std::string, std::string>& properties,
                         void (*delivered)(rd_kafka_t*, const rd_kafka_message_t*, void*),
                         void* opaque) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char why[512];
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      throw std::runtime_error(name + ": " + why);
    }
  }
  rd_kafka_conf_set_log_cb(conf, nullptr);
  if (delivered != nullptr) rd_kafka_conf_set_dr_msg_cb(conf, delivered);
  rd_kafka_conf_set_opaque(conf, opaque);
  rd_kafka_t* client = rd_kafka_new(type, conf, why, sizeof why);
  if (client == nullptr) {
    rd_kafka_conf_destroy(conf);
    throw std::runtime_error(std::string("no Kafka client: ") + why);
  }
  return KafkaClient(client);
}

KafkaMetadata topic_metadata(rd_kafka_t* client, const std::string& topic) {
  const std::unique_ptr<rd_kafka_topic_t, KafkaFree<rd_kafka_topic_destroy>> handle(
      rd_kafka_topic_new(client, topic.c_str(), nullptr));
  KafkaMetadata found;
  const bool ready = wait_for(std::chrono::milliseconds(kafka_wait_ms), [&] {
    const rd_kafka_metadata_t* answer = nullptr;
    check(rd_kafka_metadata(client, 0, handle.get(), &answer, kafka_wait_ms),
          "metadata of " + topic);
    found.reset(answer);
    if (found->topic_cnt != 1 || found->topics[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    const auto& partitions = found->topics[0];
    return partitions.partition_cnt > 0 &&
           std::all_of(partitions.partitions, partitions.partitions + partitions.partition_cnt,
                       [](const auto& partition) { return partition.leader >= 0; });
  });
  if (!ready) throw std::runtime_error("topic " + topic + " has no leaders");
  return found;
}

Topic::Topic(std::string broker, std::string_view prefix, int partitions,
             const std::map<std::string, std::string>& config)
    : broker_(std::move(broker)), name_(unique_name(prefix)) {
  create_topic(broker_, name_, partitions, config);
}

Topic::~Topic() {
  try {
    delete_topic(broker_, name_);
  } catch (const std::exception&) {  // the broker of this test may be gone by now
  }
}

namespace {

// Counts deliveries and keeps the first error.
struct Deliveries {
  size_t done = 0;
  rd_kafka_resp_err_t first_error = RD_KAFKA_RESP_ERR_NO_ERROR;
};

void delivered(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto* deliveries = static_cast<Deliveries*>(opaque);
  ++deliveries->done;
  if (deliveries->first_error == RD_KAFKA_RESP_ERR_NO_ERROR) deliveries->first_error = message->err;
}

rd_kafka_headers_t* headers_of(const KafkaRecord& record) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()),
                        value ? value->data() : nullptr,
                        value ? static_cast<ssize_t>(value->size()) : 0);
  }
  return headers;
}

struct Bytes {
  const char* data;
  size_t size;
};

Bytes bytes_of(const std::optional<std::string>& text) {
  return text ? Bytes{text->data(), text->size()} : Bytes{nullptr, 0};
}

void enqueue(rd_kafka_t* client, const std::string& topic, const KafkaRecord& record) {
  rd_kafka_headers_t* headers = headers_of(record);
  const Bytes key = bytes_of(record.key);
  const Bytes value = bytes_of(record.value);
  char* copied = const_cast<char*>(value.data);  // NOLINT: MSG_F_COPY only reads it
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__QUEUE_FULL;
  while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
    code = rd_kafka_producev(
        client, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(record.partition),
        RD_KAFKA_V_KEY(key.data, key.size), RD_KAFKA_V_VALUE(copied, value.size),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_TIMESTAMP(record.timestamp_ms),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) rd_kafka_poll(client, 100);
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_headers_destroy(headers);
  check(code, "produce to " + topic);
}

void produce_all(rd_kafka_t* client, const Deliveries& deliveries, const std::string& topic,
                 const std::vector<KafkaRecord>& records) {
  for (const auto& record : records) {
    enqueue(client, topic, record);
    rd_kafka_poll(client, 0);
  }
  check(rd_kafka_flush(client, kafka_wait_ms), "flush of " + topic);
  check(deliveries.first_error, "delivery to " + topic);
  if (deliveries.done != records.size())
    throw std::runtime_error("not every record was acknowledged by " + topic);
}

}  // namespace

void produce(const std::string& broker, const std::string& topic,
             const std::vector<KafkaRecord>& records) {
  Deliveries deliveries;
  const auto client = kafka_client(RD_KAFKA_PRODUCER,
                                   {{"bootstrap.servers", broker},
                                    {"acks", "all"},
                                    {"enable.idempotence", "true"},
                                    {"partitioner", "murmur2_random"}},
                                   delivered, &deliveries);
  topic_metadata(client.get(), topic);
  produce_all(client.get(), deliveries, topic, records);
}

void produce(const std::string& broker, const std::string& topic,
             const std::vector<KafkaRecord>& records, Transaction outcome) {
  Deliveries deliveries;
  const auto client = kafka_client(RD_KAFKA_PRODUCER,
                                   {{"bootstrap.servers", broker},
                                    {"transactional.id", unique_name("test")},
                                    {"partitioner", "murmur2_random"}},
                                   delivered, &deliveries);
  topic_metadata(client.get(), topic);
  check(rd_kafka_init_transactions(client.get(), kafka_wait_ms), "init_transactions");
  check(rd_kafka_begin_transaction(client.get()), "begin_transaction");
  produce_all(client.get(), deliveries, topic, records);
  if (outcome == Transaction::committed) {
    check(rd_kafka_commit_transaction(client.get(), kafka_wait_ms), "commit_transaction");
  } else {
    check(rd_kafka_abort_transaction(client.get(), kafka_wait_ms), "abort_transaction");
  }
}

namespace {

KafkaRecord copy_of(rd_kafka_message_t* message) {
  const auto text = [](const void* bytes, size_t size) {
    return bytes == nullptr
               ? std::nullopt
               : std::optional<std::string>(std::in_place, static_cast<const char*>(bytes), size);
  };
  KafkaRecord record{text(message->key, message->key_len), text(message->payload, message->len)};
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    for (size_t at = 0;
         rd_kafka_header_get_all(headers, at, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++at) {
      record.headers.emplace_back(name, text(value, size));
    }
  }
  record.partition = message->partition;
  record.offset = message->offset;
  record.timestamp_ms = rd_kafka_message_timestamp(message, nullptr);
  return record;
}

}  // namespace

std::vector<KafkaRecord> read_topic(const std::string& broker, const std::string& topic,
                                    Isolation isolation) {
  const auto client = kafka_client(
      RD_KAFKA_CONSUMER,
      {{"bootstrap.servers", broker},
       {"group.id", "flow-test-reader"},
       {"enable.auto.commit", "false"},
       {"enable.partition.eof", "true"},
       {"isolation.level",
        isolation == Isolation::read_committed ? "read_committed" : "read_uncommitted"}});
  const auto metadata = topic_metadata(client.get(), topic);
  const KafkaPartitions assigned(
      rd_kafka_topic_partition_list_new(metadata->topics[0].partition_cnt));
  std::set<std::int32_t> unfinished;
  for (int at = 0; at < metadata->topics[0].partition_cnt; ++at) {
    const std::int32_t partition = metadata->topics[0].partitions[at].id;
    rd_kafka_topic_partition_list_add(assigned.get(), topic.c_str(), partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    unfinished.insert(partition);
  }
  check(rd_kafka_assign(client.get(), assigned.get()), "assign " + topic);

  std::vector<KafkaRecord> records;
  while (!unfinished.empty()) {
    const KafkaMessage message(rd_kafka_consumer_poll(client.get(), kafka_wait_ms));
    if (message == nullptr) throw std::runtime_error("the end of " + topic + " did not come");
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      unfinished.erase(message->partition);
      continue;
    }
    check(message->err, "read " + topic);
    records.push_back(copy_of(message.get()));
  }
  rd_kafka_consumer_close(client.get());
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::pair(a.partition, a.offset) < std::pair(b.partition, b.offset);
  });
  return records;
}

}  // namespace flow::test
