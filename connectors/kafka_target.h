#pragma once
// The Kafka target: an idempotent producer, one flush a batch, every delivery report checked.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/kafka_client.h"

namespace flow::kafka {

// What became of the messages of one write. Units: messages. Threads: the writing thread, which
// polls.
struct Deliveries {
  std::size_t open = 0;  // produced, no report yet
  std::size_t delivered = 0;
  bool in_doubt = false;               // a failed one may be in the log all the same
  std::vector<std::uint32_t> invalid;  // rows that the broker refuses
  rd_kafka_resp_err_t invalid_code = RD_KAFKA_RESP_ERR_NO_ERROR;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;  // the first other failure
  std::uint32_t row = 0;                                  // and its row

  bool failed() const { return code != RD_KAFKA_RESP_ERR_NO_ERROR; }
};

struct TargetShared final : Shared {
  Deliveries deliveries;
};

class KafkaTarget final : public Target {
 public:
  KafkaTarget(const Context& context, const TargetSpec& spec);
  ~KafkaTarget() override;

  const TargetSpec& spec() const override { return spec_; }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& columns) override;
  Result<void> start(const Columns& plan, const std::optional<TargetMark>& mark) override;
  Result<void> write(const Batch& batch, const RowSet& rows) override;
  // Each message is sent once, also when others of its batch are refused.
  Result<std::vector<RecordFailure>> write_around(const Batch& batch, const RowSet& rows,
                                                  const Aside& aside) override;
  void cancel() noexcept override { cancelled_.store(true); }
  void close() override;

 private:
  // Where the message key comes from: the record's own, a cell of the row, or a fact of the record.
  enum class KeyFrom : std::uint8_t { record, cell, field };

  // One write under way. refused: where invalid rows go; null: the first ends the write.
  struct Task {
    const Batch& batch;
    const RowSet& rows;
    std::vector<RecordFailure>* refused;
  };

  std::size_t queue_kbytes() const;
  Settings settings() const;
  Result<void> connect();
  Result<void> plan_key();
  Result<void> attempt(const Task& task);
  Result<void> send(const Task& task);
  Result<void> send_row(const Task& task, std::uint32_t row);
  Result<void> produce(const Task& task, std::uint32_t row, std::string_view key,
                       std::string_view value);
  std::string_view key_of(const Task& task, std::uint32_t row);
  std::string_view field_key(const Batch& batch, const Record& record);
  Result<void> settle(const Task& task);
  Result<void> isolate(const Task& task);
  Failure refusal(const Task& task, std::uint32_t row, rd_kafka_resp_err_t code) const;
  Failure undelivered(const Task& task);
  void abandon();
  void drop_client();

  Pipeline const* pipeline_;
  TargetSpec spec_;
  std::string where_;
  Log* log_;
  std::optional<std::string> message_bytes_max_;  // the topic's own limit
  Columns plan_;
  bool passthrough_ = true;  // the records' own bytes
  KeyFrom key_from_ = KeyFrom::record;
  std::size_t key_cell_ = 0;
  std::string value_text_, key_text_;  // reused
  std::shared_ptr<TargetShared> shared_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<rd_kafka_topic_t, Free<rd_kafka_topic_destroy>> topic_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace flow::kafka
