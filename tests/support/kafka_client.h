#pragma once
// Owned librdkafka objects, for the Kafka helpers of the tests.
#include <chrono>
#include <librdkafka/rdkafka.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

namespace flow::test {

template <auto destroy>
struct KafkaFree {
  template <class T>
  void operator()(T* what) const {
    destroy(what);
  }
};
using KafkaClient = std::unique_ptr<rd_kafka_t, KafkaFree<rd_kafka_destroy>>;
using KafkaQueue = std::unique_ptr<rd_kafka_queue_t, KafkaFree<rd_kafka_queue_destroy>>;
using KafkaEvent = std::unique_ptr<rd_kafka_event_t, KafkaFree<rd_kafka_event_destroy>>;
using KafkaPartitions = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                        KafkaFree<rd_kafka_topic_partition_list_destroy>>;
using KafkaError = std::unique_ptr<rd_kafka_error_t, KafkaFree<rd_kafka_error_destroy>>;
using KafkaMetadata =
    std::unique_ptr<const rd_kafka_metadata_t, KafkaFree<rd_kafka_metadata_destroy>>;
using KafkaMessage = std::unique_ptr<rd_kafka_message_t, KafkaFree<rd_kafka_message_destroy>>;

constexpr int kafka_wait_ms = 30'000;

inline void check(rd_kafka_resp_err_t code, const std::string& what) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(what + ": " + rd_kafka_err2str(code));
}

inline void check(rd_kafka_error_t* error, const std::string& what) {
  const KafkaError owned(error);
  if (error != nullptr) throw std::runtime_error(what + ": " + rd_kafka_error_string(error));
}

// A client of this type with these properties; the log goes nowhere, errors are thrown by the
// calls.
KafkaClient kafka_client(rd_kafka_type_t type, const std::map<std::string, std::string>& properties,
                         void (*delivered)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr,
                         void* opaque = nullptr);

// Metadata of one topic, waited for until every partition has a leader.
KafkaMetadata topic_metadata(rd_kafka_t* client, const std::string& topic);

}  // namespace flow::test
