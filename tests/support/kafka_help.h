#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flow::test {

// A record as a test writes or reads it.
// Shape: partition -1: the partitioner decides (murmur2 as the Java clients); offset is set on
// reading. Units: timestamp in ms since 1970, 0: now.
struct KafkaRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  std::int32_t partition = -1;
  std::int64_t timestamp_ms = 0;
  std::int64_t offset = -1;
};

using PartitionOffsets = std::map<std::int32_t, std::int64_t>;

// The functions below talk to one broker as host:port without login, wait until the broker has
// answered, and throw std::runtime_error with its error. Topics are created with the given
// configuration.
void create_topic(const std::string& broker, const std::string& topic, int partitions,
                  const std::map<std::string, std::string>& config = {});
void add_partitions(const std::string& broker, const std::string& topic, int total);
void delete_topic(const std::string& broker, const std::string& topic);

// A topic of this test alone, deleted when this goes out of scope.
class Topic {
 public:
  explicit Topic(std::string broker, std::string_view prefix = "test", int partitions = 1,
                 const std::map<std::string, std::string>& config = {});
  ~Topic();
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string broker_;
  std::string name_;
};

// Returns when every record is acknowledged by the broker.
void produce(const std::string& broker, const std::string& topic,
             const std::vector<KafkaRecord>& records);

// All records in one transaction, which is then committed or aborted.
enum class Transaction { committed, aborted };
void produce(const std::string& broker, const std::string& topic,
             const std::vector<KafkaRecord>& records, Transaction outcome);

// What a reader sees from the log's start to its end, by partition and offset.
enum class Isolation { read_committed, read_uncommitted };
std::vector<KafkaRecord> read_topic(const std::string& broker, const std::string& topic,
                                    Isolation isolation = Isolation::read_committed);

// The group's committed offsets; a partition without one is not in the map.
PartitionOffsets committed_offsets(const std::string& broker, const std::string& group,
                                   const std::string& topic);
void commit_offsets(const std::string& broker, const std::string& group, const std::string& topic,
                    const PartitionOffsets& offsets);

// Log start and high watermark of each partition.
std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> watermarks(const std::string& broker,
                                                                         const std::string& topic);

// Moves the log start of a partition: what is before `offset` is gone.
void delete_records_before(const std::string& broker, const std::string& topic,
                           std::int32_t partition, std::int64_t offset);

}  // namespace flow::test
