#pragma once
// The Kafka source, and the group's committed positions as its position authority. In parts by
// role: kafka_source.cpp (open, close), kafka_source_read.cpp (records), kafka_source_group.cpp
// (assignment), kafka_source_commit.cpp (positions).
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "connectors/kafka_client.h"
#include "connectors/kafka_start.h"
#include "connectors/kafka_until_end.h"
#include "connectors/kafka_watch.h"
#include "core/clock.h"

namespace flow::kafka {

// What the rebalance callback enqueues. Once `closing`, it gives partitions back by itself.
struct SourceShared final : Shared {
  struct Rebalance {
    rd_kafka_resp_err_t code;
    std::vector<PartitionId> partitions;
  };
  std::deque<Rebalance> rebalances;
  std::atomic<bool> closing{false};
};

// A partition that this process reads. Threads: next and end by any; committed and releasing under
// the source's mutex; the rest by the reading thread.
struct OwnedPartition {
  PartitionId id;
  std::atomic<std::int64_t> next{0};    // position: the next offset to read
  std::atomic<std::int64_t> end{-1};    // last stable offset as last asked, -1 unknown
  std::int64_t committed = -1;          // durable at the broker, -1 none
  bool releasing = false;               // on its way to another member
  Queue queue;                          // the library's, forwarded to the source's own
  std::optional<std::int64_t> stop_at;  // bounded runs
  std::uint64_t read_call = 0;          // the read() in which `span` was looked up
  std::uint32_t span = 0;
};

class KafkaSource final : public Source, public PositionStore {
 public:
  // Errors: setup for properties that librdkafka refuses.
  static Result<std::unique_ptr<KafkaSource>> make(const Context& context);
  ~KafkaSource() override;

  Result<void> open(PartitionListener& listener) override;
  Result<ReadOutcome> read(Batch& batch, const BatchLimits& limits, ReadControl& control) override;
  Result<void> keep_alive() override;
  SourceProgress progress() const override;
  void close() override;

  Result<Spans> load() override { return Spans{}; }
  Result<std::vector<TargetMark>> load_marks() override;
  Result<void> commit(const Spans& spans, const std::vector<TargetMark>& marks) override;

 private:
  explicit KafkaSource(const Context& context);
  Settings settings() const;
  Result<void> connect();
  Result<void> find_topics();
  Result<void> check_positions();
  Result<void> set_goals(const std::vector<PartitionId>& partitions);
  Result<void> subscribe(const std::vector<PartitionId>& partitions);
  void look_at_ends();  // the watch's thread

  // Reading.
  enum class Drained : std::uint8_t { empty, full, more };
  Result<ReadOutcome> fill(Batch& batch, const BatchLimits& limits, ReadControl& control);
  Drained drain(Batch& batch, const BatchLimits& limits);
  void accept(const rd_kafka_message_t& message, Batch& batch);
  void add_record(OwnedPartition& partition, const rd_kafka_message_t& message, Batch& batch);
  void add_headers(const rd_kafka_message_t& message, Record& record, Batch& batch);
  void advance(OwnedPartition& partition, std::int64_t next, Batch& batch);
  Span& span_of(OwnedPartition& partition, Batch& batch);
  OwnedPartition* owner_of(const rd_kafka_message_t& message);
  void on_partition_error(const rd_kafka_message_t& message, Batch& batch);
  bool reached_end();

  // The group.
  Result<void> serve();
  Result<void> on_group_error(const rd_kafka_message_t& message);
  Result<void> handle_rebalances();
  Result<void> assign(const std::vector<PartitionId>& partitions);
  void release(const std::vector<PartitionId>& partitions);
  void drop_from_batch(const std::vector<PartitionId>& partitions);
  Result<void> take(const std::vector<Start>& starts);
  void own(const Start& start);
  void disown(const std::vector<PartitionId>& partitions);
  void report_starts(const std::vector<Start>& starts);
  void report_gap(const Start& start);
  Result<void> recover_positions();
  Result<void> restart(const PartitionId& id);
  Result<void> look_for_missing();
  Result<void> look_at_outage();
  bool cooperative() const;

  std::vector<PartitionId> owned_ids() const;

  Context context_;
  const KafkaSourceSpec& spec_;
  std::string where_;
  PartitionListener* listener_ = nullptr;
  std::shared_ptr<SourceShared> shared_;
  std::unique_ptr<Client> client_;
  Queue data_;
  std::optional<StartRule> start_rule_;
  std::vector<PartitionId> first_partitions_;             // those there when this process opened
  std::map<std::string, Monotonic::time_point> missing_;  // topics and patterns: since when
  std::set<std::string> subscribed_;
  std::optional<UntilEnd> until_end_;

  mutable std::mutex mutex_;  // owned_ (changed by the reading thread only), missing_
  std::map<PartitionId, std::unique_ptr<OwnedPartition>> owned_;

  // The reading thread's.
  Batch* batch_ = nullptr;
  std::uint64_t read_call_ = 0;
  const rd_kafka_topic_t* last_topic_ = nullptr;
  std::int32_t last_partition_ = -1;
  OwnedPartition* last_owner_ = nullptr;
  std::set<PartitionId> out_of_range_;
  std::optional<Failure> failure_;
  Monotonic::time_point retry_at_{};  // what a broker did not answer
  Monotonic::time_point look_at_{};   // for missing topics
  std::size_t unseen_bytes_ = 0;      // read since the watch was nudged
  std::size_t unseen_records_ = 0;

  std::unique_ptr<Watch> watch_;  // last: stops first
};

}  // namespace flow::kafka
