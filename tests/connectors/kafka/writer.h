#pragma once
// A Kafka target with the batch it writes, for tests.
#include <memory>
#include <string>
#include <vector>

#include "connectors/registry.h"
#include "core/field_source.h"
#include "tests/connectors/kafka/reader.h"

namespace flow::test {

// Rows are added, then written as one batch, which is empty again afterwards.
class Writer {
 public:
  explicit Writer(const std::string& topic) {
    pipeline.name = "test";
    context.pipeline = &pipeline;
    context.log = &log;
    spec.kind = "kafka";
    spec.label = "kafka " + topic;
    spec.brokers = broker();
    spec.topic = topic;
  }

  Pipeline pipeline;  // changed before open()
  Context context;
  TargetSpec spec;
  RecordingLog log;

  Result<void> open(const Columns& plan = {}) {
    auto made = make_kafka_target(context, spec);
    if (!made) return std::move(made).failure();
    target_ = std::move(*made);
    auto prepared = target_->prepare({});
    if (!prepared) return std::move(prepared).failure();
    rows_.width = plan.size();
    return target_->start(plan, {});
  }

  // A record that came from "in"/0; a row of it with these cells.
  void add(const KafkaRecord& record, const std::vector<Value>& cells = {}) {
    if (batch_.spans.empty()) batch_.spans.push_back({{"in", 0}, {0}, {0}, {}});
    Record r;
    const auto keep = [&](const std::optional<std::string>& text) {
      return text ? batch_.arena.copy(*text) : std::string_view();
    };
    r.key = keep(record.key);
    r.value = keep(record.value);
    r.offset = {static_cast<std::int64_t>(batch_.records.size())};
    r.timestamp_ms = record.timestamp_ms == 0 ? -1 : record.timestamp_ms;
    r.header_first = static_cast<std::uint32_t>(batch_.headers.size());
    for (const auto& [name, value] : record.headers) {
      batch_.headers.push_back({batch_.arena.copy(name), keep(value)});
      ++r.header_count;
    }
    const auto index = static_cast<std::uint32_t>(batch_.records.size());
    batch_.records.push_back(r);
    Value* row = rows_.add(index, record.value ? RowOp::upsert : RowOp::erase);
    for (std::size_t i = 0; i < cells.size(); ++i) row[i] = cells[i];
    rows_.order.push_back(index);
  }
  std::string_view keep(std::string_view text) { return batch_.arena.copy(text); }

  Result<void> write() {
    auto written = target_->write(batch_, rows_);
    if (written) clear();
    return written;
  }
  Result<std::vector<RecordFailure>> write_around() {
    return target_->write_around(batch_, rows_, {});
  }
  void clear() {
    const std::size_t width = rows_.width;
    batch_.clear();
    rows_.clear();
    rows_.width = width;
  }
  Target& target() { return *target_; }

 private:
  std::unique_ptr<Target> target_;
  Batch batch_;
  RowSet rows_;
};

}  // namespace flow::test
