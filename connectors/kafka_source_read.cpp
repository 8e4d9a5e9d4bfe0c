// Reading: from the library's queue into the batch.
#include <algorithm>

#include "connectors/kafka_source.h"

namespace flow::kafka {

namespace {

constexpr int round_records = 1'024;  // between two looks at the group, the clock and the loop
constexpr Millis linger{2};           // for company, while the writer is idle
constexpr Millis nothing_wait{100};   // read() returns, when there is nothing
constexpr std::size_t nudge_bytes = std::size_t{1} << 20;
constexpr std::size_t nudge_records = 4'096;

std::string_view bytes_of(const void* data, std::size_t size) {
  return {static_cast<const char*>(data), size};
}

}  // namespace

Result<ReadOutcome> KafkaSource::read(Batch& batch, const BatchLimits& limits,
                                      ReadControl& control) {
  batch_ = &batch;
  ++read_call_;
  auto outcome = fill(batch, limits, control);
  batch_ = nullptr;
  return outcome;
}

Result<ReadOutcome> KafkaSource::fill(Batch& batch, const BatchLimits& limits,
                                      ReadControl& control) {
  const auto entered = Monotonic::now();
  auto first = entered;
  bool in_hand = !batch.spans.empty();
  for (;;) {
    if (auto r = serve(); !r) return std::move(r).failure();
    const Drained drained = drain(batch, limits);
    if (failure_) return *std::exchange(failure_, std::nullopt);
    if (reached_end()) return ReadOutcome::end;
    if (drained == Drained::full || control.stopping()) return ReadOutcome::more;
    const auto now = Monotonic::now();
    if (!in_hand && !batch.spans.empty()) first = now;
    in_hand = !batch.spans.empty();
    if (in_hand && now - first >= limits.wait) return ReadOutcome::more;
    if (drained == Drained::more) continue;
    const bool idle = control.writer_idle();
    if (in_hand && idle && now - first >= linger) return ReadOutcome::more;
    if (!in_hand && now - entered >= nothing_wait) return ReadOutcome::more;
    const Millis wait = !in_hand ? Millis{50} : idle ? Millis{1} : Millis{5};
    const Message message(rd_kafka_consume_queue(data_.get(), static_cast<int>(wait.count())));
    if (message) accept(*message, batch);
  }
}

KafkaSource::Drained KafkaSource::drain(Batch& batch, const BatchLimits& limits) {
  const std::size_t bytes = batch.bytes;
  const std::size_t records = batch.records.size();
  Drained drained = Drained::more;
  for (int i = 0; i < round_records; ++i) {
    if (batch.records.size() >= limits.records || batch.bytes >= limits.bytes) {
      drained = Drained::full;
      break;
    }
    const Message message(rd_kafka_consume_queue(data_.get(), 0));
    if (!message) {
      drained = Drained::empty;
      break;
    }
    accept(*message, batch);
  }
  unseen_bytes_ += batch.bytes - bytes;
  unseen_records_ += batch.records.size() - records;
  if (unseen_bytes_ >= nudge_bytes || unseen_records_ >= nudge_records) {
    unseen_bytes_ = 0;
    unseen_records_ = 0;
    watch_->nudge();
  }
  return drained;
}

void KafkaSource::accept(const rd_kafka_message_t& message, Batch& batch) {
  if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    on_partition_error(message, batch);
    return;
  }
  OwnedPartition* partition = owner_of(message);
  // Not ours any more, or delivered before: librdkafka 2.0.2 may start a fetch at an old offset.
  if (partition == nullptr || message.offset < partition->next) return;
  if (partition->stop_at && message.offset >= *partition->stop_at) {
    advance(*partition, *partition->stop_at, batch);
    return;
  }
  add_record(*partition, message, batch);
}

void KafkaSource::add_record(OwnedPartition& partition, const rd_kafka_message_t& message,
                             Batch& batch) {
  Span& span = span_of(partition, batch);
  Record record;
  record.offset = {message.offset};
  record.span = partition.span;
  if (message.payload != nullptr)
    record.value = batch.arena.copy(bytes_of(message.payload, message.len));
  if (message.key != nullptr) record.key = batch.arena.copy(bytes_of(message.key, message.key_len));
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t timestamp = rd_kafka_message_timestamp(&message, &type);
  if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) record.timestamp_ms = timestamp;
  batch.bytes += record.value.size() + record.key.size();
  add_headers(message, record, batch);
  batch.records.push_back(record);
  span.next = position_after(record.offset);
  partition.next.store(span.next.next, std::memory_order_relaxed);
}

void KafkaSource::add_headers(const rd_kafka_message_t& message, Record& record, Batch& batch) {
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  record.header_first = static_cast<std::uint32_t>(batch.headers.size());
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    Header header{batch.arena.copy(name), {}};
    if (value != nullptr) header.value = batch.arena.copy(bytes_of(value, size));
    batch.bytes += header.name.size() + header.value.size();
    batch.headers.push_back(header);
    ++record.header_count;
  }
}

// Past offsets without records: transaction markers, aborted records, what compaction removed.
void KafkaSource::advance(OwnedPartition& partition, std::int64_t next, Batch& batch) {
  if (next <= partition.next) return;
  span_of(partition, batch).next = {next};
  partition.next = next;
}

Span& KafkaSource::span_of(OwnedPartition& partition, Batch& batch) {
  if (partition.read_call != read_call_) {
    partition.read_call = read_call_;
    partition.span = batch.span_of(partition.id, {partition.next});
  }
  return batch.spans[partition.span];
}

// Messages come in runs of one partition, so the last answer nearly always holds.
OwnedPartition* KafkaSource::owner_of(const rd_kafka_message_t& message) {
  if (message.rkt == last_topic_ && message.partition == last_partition_) [[likely]]
    return last_owner_;
  const auto at = owned_.find({rd_kafka_topic_name(message.rkt), message.partition});
  last_topic_ = message.rkt;
  last_partition_ = message.partition;
  last_owner_ = at == owned_.end() ? nullptr : at->second.get();
  return last_owner_;
}

void KafkaSource::on_partition_error(const rd_kafka_message_t& message, Batch& batch) {
  OwnedPartition* partition = message.rkt == nullptr ? nullptr : owner_of(message);
  switch (message.err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      if (partition != nullptr) {
        std::int64_t end = message.offset;
        if (partition->stop_at)
          end = std::min(end, std::max(*partition->stop_at, partition->next.load()));
        advance(*partition, end, batch);
      }
      return;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      if (partition != nullptr) out_of_range_.insert(partition->id);
      return;
    default: break;
  }
  if (auto r = on_group_error(message); !r && !failure_) failure_ = std::move(r).failure();
}

bool KafkaSource::reached_end() {
  if (!until_end_) return false;
  for (const auto& [id, partition] : owned_) {
    if (partition->stop_at) until_end_->position(id, partition->next);
  }
  const std::scoped_lock lock(mutex_);
  return missing_.empty() && until_end_->finished();
}

Result<void> KafkaSource::keep_alive() {
  if (!client_) return {};
  return serve();
}

}  // namespace flow::kafka
