#include "tests/connectors/kafka/reader.h"

namespace flow::test {

namespace {

std::optional<std::string> owned(std::string_view bytes) {
  if (bytes.data() == nullptr) return std::nullopt;
  return std::string(bytes);
}

}  // namespace

Reader::Reader(std::vector<std::string> topics, std::string group) {
  pipeline.name = group;
  pipeline.source.kind = "kafka";
  pipeline.source.kafka.brokers = broker();
  pipeline.source.kafka.topics = std::move(topics);
  pipeline.source.kafka.group = std::move(group);
  context.pipeline = &pipeline;
  context.log = &log;
}

Reader::~Reader() {
  stop();
  close();
}

Result<void> Reader::open() {
  auto made = make_kafka_source(context);
  if (!made) return std::move(made).failure();
  parts_.emplace(std::move(*made));
  // Tries again as the loop does: a topic made just now may have no leader yet.
  Result<void> opened;
  wait_for(std::chrono::seconds(10), [&] {
    opened = parts_->source->open(listener);
    return opened.ok() || !opened.failure().retryable();
  });
  return opened;
}

Result<ReadOutcome> Reader::read() {
  batch_.clear();
  auto outcome = parts_->source->read(batch_, pipeline.source.batch, control);
  if (!outcome) return outcome;
  spans = batch_.spans;
  for (const Record& r : batch_.records) {
    Got g{batch_.spans[r.span].partition,
          r.offset.value,
          r.timestamp_ms,
          owned(r.key),
          owned(r.value),
          {}};
    for (std::uint32_t h = 0; h < r.header_count; ++h) {
      const Header& header = batch_.headers[r.header_first + h];
      g.headers.emplace_back(std::string(header.name), owned(header.value));
    }
    got.push_back(std::move(g));
  }
  read_count_ = got.size();
  return outcome;
}

Result<void> Reader::commit() { return parts_->positions->commit(spans, {}); }

void Reader::close() {
  if (parts_) parts_->source->close();
}

Result<void> Reader::to_end() {
  context.until_end = true;
  if (auto r = open(); !r) return r;
  for (;;) {
    auto outcome = read();
    if (!outcome) return std::move(outcome).failure();
    if (auto r = commit(); !r) return r;
    if (*outcome == ReadOutcome::end) return {};
  }
}

void Reader::on_thread() {
  thread_ = std::thread([this] {
    while (!control.stop) {
      auto outcome = read();
      if (!outcome) {
        failure = outcome.failure();
        return;
      }
      while (!spans.empty()) {
        auto committed = commit();
        if (committed) break;
        if (!committed.failure().retryable()) {
          failure = committed.failure();
          return;
        }
      }
    }
  });
}

void Reader::stop() {
  control.stop = true;
  if (thread_.joinable()) thread_.join();
}

std::vector<std::string> values(const std::vector<Got>& got) {
  std::vector<std::string> out;
  for (const Got& g : got) out.push_back(g.value.value_or("(null)"));
  return out;
}

std::vector<KafkaRecord> numbered(int n, std::int32_t partition, const std::string& prefix) {
  std::vector<KafkaRecord> records;
  for (int i = 0; i < n; ++i)
    records.push_back({.key = {}, .value = prefix + std::to_string(i), .partition = partition});
  return records;
}

std::vector<std::string> numbered_values(int from, int to, const std::string& prefix) {
  std::vector<std::string> out;
  for (int i = from; i < to; ++i) out.push_back(prefix + std::to_string(i));
  return out;
}

}  // namespace flow::test
