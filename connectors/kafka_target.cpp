#include "connectors/kafka_target.h"

#include <algorithm>
#include <cstdlib>

#include "connectors/registry.h"
#include "core/failure_point.h"
#include "core/row_json.h"

namespace flow {
namespace kafka {

namespace {

constexpr Millis close_wait{5'000};
constexpr Millis purge_wait{5'000};
constexpr std::size_t queue_kbytes_min = 8'192;
constexpr int poll_each = 512;  // messages between two looks at the delivery reports

void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  Deliveries& d = static_cast<TargetShared&>(*static_cast<Shared*>(opaque)).deliveries;
  --d.open;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) [[likely]] {
    ++d.delivered;
    return;
  }
  const auto row = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(message->_private));
  if (rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED) d.in_doubt = true;
  if (failure_of(message->err, {}).cls == FailureClass::invalid) {
    d.invalid.push_back(row);
    d.invalid_code = message->err;
  } else if (!d.failed()) {
    d.code = message->err;
    d.row = row;
  }
}

void configure(rd_kafka_conf_t* conf) { rd_kafka_conf_set_dr_msg_cb(conf, on_delivery); }

bool armed(Point point) {
  return (failure_point::armed.load(std::memory_order_relaxed) &
          (1U << static_cast<unsigned>(point))) != 0;
}

}  // namespace

KafkaTarget::KafkaTarget(const Context& context, const TargetSpec& spec)
    : pipeline_(context.pipeline),
      spec_(spec),
      where_("kafka " + spec.brokers + ", topic " + spec.topic),
      log_(context.log) {}

KafkaTarget::~KafkaTarget() { close(); }

// What waits in the library: little, since a batch is sent as a whole anyway, but more than the
// largest message.
std::size_t KafkaTarget::queue_kbytes() const {
  const std::size_t message =
      message_bytes_max_ ? std::strtoull(message_bytes_max_->c_str(), nullptr, 10) : 0;
  return std::max(queue_kbytes_min, 2 * message / 1'024);
}

Settings KafkaTarget::settings() const {
  Settings s = {
      {"client.id", "flow"},
      {"linger.ms", "5"},
      {"batch.size", "1000000"},
      {"batch.num.messages", "100000"},
      {"queue.buffering.max.messages", "100000"},
      {"queue.buffering.max.kbytes", std::to_string(queue_kbytes())},
      {"message.timeout.ms", "30000"},
      {"partitioner", "murmur2_random"},
      {"socket.nagle.disable", "true"},
      {"reconnect.backoff.max.ms", "1000"},
  };
  // A batch larger than the topic takes would fail as a whole.
  if (message_bytes_max_) s.emplace_back("message.max.bytes", *message_bytes_max_);
  add_properties(s, spec_.properties);
  s.emplace_back("bootstrap.servers", spec_.brokers);
  s.emplace_back("acks", "all");
  s.emplace_back("enable.idempotence", "true");
  return s;
}

Result<TargetSchema> KafkaTarget::prepare(const std::vector<ColumnSpec>&) {
  {
    auto shared = std::make_shared<Shared>();
    shared->log = log_;
    auto probe = Client::make(RD_KAFKA_CONSUMER, probe_settings(spec_.brokers, spec_.properties),
                              shared, where_);
    if (!probe) return std::move(probe).failure();
    auto topics = list_topics(**probe);
    if (!topics) return std::move(topics).failure();
    if (std::none_of(topics->begin(), topics->end(),
                     [&](const TopicInfo& t) { return t.name == spec_.topic; }))
      return absent_topic(**probe, spec_.topic, *topics, "the target's topic");
    message_bytes_max_ = topic_config(**probe, spec_.topic, "max.message.bytes");
  }
  if (auto r = connect(); !r) return std::move(r).failure();
  TargetSchema schema;
  schema.passthrough = true;
  return schema;
}

Result<void> KafkaTarget::connect() {
  shared_ = std::make_shared<TargetShared>();
  shared_->log = log_;
  auto client = Client::make(RD_KAFKA_PRODUCER, settings(), shared_, where_, configure);
  if (!client) return std::move(client).failure();
  client_ = std::move(*client);
  topic_.reset(rd_kafka_topic_new(client_->raw(), spec_.topic.c_str(), nullptr));
  if (!topic_) return client_->failure(rd_kafka_last_error());
  return {};
}

Result<void> KafkaTarget::start(const Columns& plan, const std::optional<TargetMark>&) {
  plan_ = plan;
  return plan_key();
}

Result<void> KafkaTarget::write(const Batch& batch, const RowSet& rows) {
  return attempt({batch, rows, nullptr});
}

Result<std::vector<RecordFailure>> KafkaTarget::write_around(const Batch& batch, const RowSet& rows,
                                                             const Aside& aside) {
  std::vector<RecordFailure> refused;
  if (auto r = attempt({batch, rows, &refused}); !r) return std::move(r).failure();
  // What a topic has taken cannot be taken back, so a verdict comes after the fact.
  for (const RecordFailure& f : refused) {
    if (!aside.refused) break;
    if (auto letter = aside.refused(f); !letter) return std::move(letter).failure();
  }
  return refused;
}

Result<void> KafkaTarget::attempt(const Task& task) {
  cancelled_ = false;
  if (auto f = reach(Point::target_write_before)) return *f;
  if (!client_) {
    if (auto r = connect(); !r) return r;
  }
  shared_->deliveries = {};
  auto sent = send(task);
  if (sent) {
    if (auto f = reach(Point::target_commit_before)) sent = std::move(*f);
  }
  if (sent) sent = settle(task);
  if (sent) sent = isolate(task);
  if (!sent) {
    abandon();
    return sent;
  }
  if (auto f = reach(Point::target_commit_applied)) return *f;
  if (auto f = reach(Point::target_commit_after)) return *f;
  return {};
}

Result<void> KafkaTarget::send(const Task& task) {
  const std::size_t count = task.rows.order.size();
  const std::size_t torn_at = armed(Point::target_write_torn) ? count / 2 : count;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == torn_at) {
      if (auto r = settle(task); !r) return r;
      if (auto f = reach(Point::target_write_torn)) return *f;
    }
    if (auto r = send_row(task, task.rows.order[i]); !r) {
      if (r.failure().cls != FailureClass::invalid || task.refused == nullptr) return r;
      task.refused->push_back({*r.failure().record, 0, std::move(r).failure()});
    }
    if (i % poll_each == poll_each - 1) rd_kafka_poll(client_->raw(), 0);
    if (shared_->deliveries.failed()) return undelivered(task);
  }
  return {};
}

Result<void> KafkaTarget::send_row(const Task& task, std::uint32_t row) {
  const std::string_view key = key_of(task, row);
  if (task.rows.op[row] == RowOp::erase) return produce(task, row, key, {});
  if (passthrough_) return produce(task, row, key, task.batch.records[task.rows.record[row]].value);
  value_text_.clear();
  append_json_row(value_text_, plan_, task.rows.row(row));
  return produce(task, row, key, value_text_);
}

namespace {

rd_kafka_headers_t* headers_of(const Batch& batch, const Record& record) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(record.header_count);
  for (std::uint32_t h = 0; h < record.header_count; ++h) {
    const Header& header = batch.headers[record.header_first + h];
    rd_kafka_header_add(headers, header.name.data(), static_cast<ssize_t>(header.name.size()),
                        header.value.data(), static_cast<ssize_t>(header.value.size()));
  }
  return headers;
}

// librdkafka takes bytes as void*, and copies them (RD_KAFKA_MSG_F_COPY).
void* borrowed(std::string_view bytes) { return const_cast<char*>(bytes.data()); }

}  // namespace

Result<void> KafkaTarget::produce(const Task& task, std::uint32_t row, std::string_view key,
                                  std::string_view value) {
  const Record& record = task.batch.records[task.rows.record[row]];
  rd_kafka_vu_t parts[7];
  parts[0].vtype = RD_KAFKA_VTYPE_RKT;
  parts[0].u.rkt = topic_.get();
  parts[1].vtype = RD_KAFKA_VTYPE_VALUE;
  parts[1].u.mem = {borrowed(value), value.size()};
  parts[2].vtype = RD_KAFKA_VTYPE_KEY;
  parts[2].u.mem = {borrowed(key), key.size()};
  parts[3].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  parts[3].u.i = RD_KAFKA_MSG_F_COPY;
  parts[4].vtype = RD_KAFKA_VTYPE_OPAQUE;
  parts[4].u.ptr = reinterpret_cast<void*>(static_cast<std::uintptr_t>(row));
  parts[5].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
  parts[5].u.i64 = std::max<std::int64_t>(0, record.timestamp_ms);
  std::size_t count = 6;
  if (record.header_count != 0) {
    parts[6].vtype = RD_KAFKA_VTYPE_HEADERS;
    parts[6].u.headers = headers_of(task.batch, record);
    ++count;
  }
  for (;;) {
    const Error error(rd_kafka_produceva(client_->raw(), parts, count));
    if (!error) {
      ++shared_->deliveries.open;
      return {};
    }
    const auto code = rd_kafka_error_code(error.get());
    const bool empty = shared_->deliveries.open == 0;
    const bool full = code == RD_KAFKA_RESP_ERR__QUEUE_FULL;
    if (full && !empty && !cancelled_ && !shared_->deliveries.failed()) {
      rd_kafka_poll(client_->raw(), 20);
      continue;
    }
    if (record.header_count != 0) rd_kafka_headers_destroy(parts[6].u.headers);
    if (full && !empty) return undelivered(task);
    // A message that does not fit into the empty queue never will.
    return refusal(task, row, full ? RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE : code);
  }
}

// The one flush of a batch: returns when every message has its report.
Result<void> KafkaTarget::settle(const Task& task) {
  const Deliveries& d = shared_->deliveries;
  while (d.open > 0 && !d.failed() && !cancelled_) rd_kafka_flush(client_->raw(), 50);
  if (d.open > 0 || d.failed()) return undelivered(task);
  return {};
}

// A broker refuses messages by the handful, for the sake of one of them: each is sent again alone,
// and what is refused alone is refused for good.
Result<void> KafkaTarget::isolate(const Task& task) {
  Deliveries& d = shared_->deliveries;
  const std::vector<std::uint32_t> suspects = std::exchange(d.invalid, {});
  for (const std::uint32_t row : suspects) {
    if (suspects.size() > 1) {
      if (auto r = send_row(task, row); !r) return r;
      if (auto r = settle(task); !r) return r;
      if (d.invalid.empty()) continue;
      d.invalid.clear();
    }
    Failure failure = refusal(task, row, d.invalid_code);
    if (task.refused == nullptr) return failure;
    task.refused->push_back({*failure.record, 0, std::move(failure)});
  }
  return {};
}

Failure KafkaTarget::refusal(const Task& task, std::uint32_t row, rd_kafka_resp_err_t code) const {
  const Deliveries& d = shared_->deliveries;
  const std::uint32_t record = task.rows.record[row];
  Failure failure = client_->failure(code);
  failure.where = task.batch.where(record) + " to " + where_;
  failure.effect = d.open + d.delivered > 0 ? Effect::unknown : Effect::none;
  if (failure.cls == FailureClass::invalid) failure.record = record;
  return failure;
}

Failure KafkaTarget::undelivered(const Task& task) {
  const Deliveries& d = shared_->deliveries;
  char text[512] = "";
  const auto fatal = rd_kafka_fatal_error(client_->raw(), text, sizeof text);
  Failure failure;
  if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) {
    failure = failure_of(fatal, where_, text, "a new producer is made for the next attempt");
    if (failure.cls != FailureClass::unauthorized) failure.cls = FailureClass::transient;
  } else if (d.failed()) {
    failure = refusal(task, d.row, d.code);
  } else {
    failure = {
        .cls = FailureClass::transient,
        .code = "cancelled",
        .where = where_,
        .what = "the write was cancelled with " + std::to_string(d.open) + " messages under way",
        .hint = "the batch is written again"};
  }
  const bool some = d.delivered > 0 || d.open > 0 || d.in_doubt;
  failure.effect = some ? Effect::unknown : Effect::none;
  return failure;
}

// Nothing of a failed write may be sent later, and what was under way leaves the producer's
// sequence in doubt: the next write gets a new one.
void KafkaTarget::abandon() {
  const auto deadline = Monotonic::now() + purge_wait;
  while (shared_->deliveries.open > 0 && Monotonic::now() < deadline) {
    rd_kafka_purge(client_->raw(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_poll(client_->raw(), 50);
  }
  drop_client();
}

void KafkaTarget::drop_client() {
  topic_.reset();
  if (client_) client_->close(close_wait);
  client_.reset();
}

void KafkaTarget::close() { drop_client(); }

}  // namespace kafka

Result<std::unique_ptr<Target>> make_kafka_target(const Context& context, const TargetSpec& spec) {
  return std::unique_ptr<Target>(new kafka::KafkaTarget(context, spec));
}

}  // namespace flow
