#include "connectors/kafka_letter_writer.h"

#include <algorithm>

namespace flow::kafka {

// What became of the letters of one send. Threads: the sending one, which polls.
struct LetterShared final : Shared {
  std::size_t open = 0;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;  // of the first that failed
  std::vector<std::size_t> oversize;
};

namespace {

constexpr Millis close_wait{5'000};
constexpr int poll_each = 512;

bool too_large(rd_kafka_resp_err_t code) { return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE; }

void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& shared = static_cast<LetterShared&>(*static_cast<Shared*>(opaque));
  --shared.open;
  const auto place = reinterpret_cast<std::uintptr_t>(message->_private);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  if (too_large(message->err)) {
    shared.oversize.push_back(place);
  } else if (shared.code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    shared.code = message->err;
  }
}

void configure(rd_kafka_conf_t* conf) { rd_kafka_conf_set_dr_msg_cb(conf, on_delivery); }

// librdkafka takes bytes as void*, and copies them.
rd_kafka_vu_t part(rd_kafka_vtype_t type, const std::optional<std::string>& bytes) {
  rd_kafka_vu_t p;
  p.vtype = type;
  p.u.mem = {bytes ? const_cast<char*>(bytes->data()) : nullptr, bytes ? bytes->size() : 0};
  return p;
}

rd_kafka_headers_t* made(const std::vector<LetterHeader>& headers) {
  rd_kafka_headers_t* all = rd_kafka_headers_new(headers.size());
  for (const LetterHeader& h : headers) {
    rd_kafka_header_add(all, h.name.data(), static_cast<ssize_t>(h.name.size()),
                        h.value ? h.value->data() : nullptr,
                        h.value ? static_cast<ssize_t>(h.value->size()) : 0);
  }
  return all;
}

}  // namespace

std::string letters_where(const DlqSpec& spec) {
  return "dead letters in kafka " + spec.brokers + ", topic " + spec.topic;
}

LetterWriter::LetterWriter(const DlqSpec& spec, std::optional<std::string> message_bytes_max,
                           Log& log)
    : spec_(&spec),
      message_bytes_max_(std::move(message_bytes_max)),
      log_(&log),
      where_(letters_where(spec)) {}

LetterWriter::~LetterWriter() { drop(); }

Result<void> LetterWriter::connect() {
  shared_ = std::make_shared<LetterShared>();
  shared_->log = log_;
  Settings s = {{"client.id", "flow"},
                {"linger.ms", "5"},
                {"queue.buffering.max.kbytes", "32768"},
                {"message.timeout.ms", "30000"},
                {"partitioner", "murmur2_random"},
                {"reconnect.backoff.max.ms", "1000"}};
  // A request larger than the topic takes would fail as a whole.
  if (message_bytes_max_) s.emplace_back("message.max.bytes", *message_bytes_max_);
  for (const auto& [name, value] : spec_->properties) {
    if (name != "group.instance.id") s.emplace_back(name, value);
  }
  s.emplace_back("bootstrap.servers", spec_->brokers);
  s.emplace_back("acks", "all");
  s.emplace_back("enable.idempotence", "true");
  auto client = Client::make(RD_KAFKA_PRODUCER, s, shared_, where_, configure);
  if (!client) return std::move(client).failure();
  client_ = std::move(*client);
  topic_.reset(rd_kafka_topic_new(client_->raw(), spec_->topic.c_str(), nullptr));
  if (!topic_) return client_->failure(rd_kafka_last_error());
  return {};
}

Result<void> LetterWriter::send(std::span<const DeadLetter> letters, LetterBody body,
                                std::vector<std::size_t>& oversize) {
  if (!client_) {
    if (auto r = connect(); !r) return r;
  }
  shared_->code = RD_KAFKA_RESP_ERR_NO_ERROR;
  shared_->oversize.clear();
  Result<void> sent;
  for (std::size_t i = 0; i < letters.size() && sent; ++i) {
    sent = produce(letters[i], i, body);
    if (i % poll_each == 0) rd_kafka_poll(client_->raw(), 0);
  }
  if (sent) sent = settle();
  oversize = shared_->oversize;
  std::sort(oversize.begin(), oversize.end());
  if (!sent) drop();  // what was under way leaves the producer's sequence in doubt
  return sent;
}

Result<void> LetterWriter::produce(const DeadLetter& letter, std::size_t place, LetterBody body) {
  rd_kafka_vu_t parts[6];
  parts[0].vtype = RD_KAFKA_VTYPE_RKT;
  parts[0].u.rkt = topic_.get();
  const std::optional<std::string> none;  // lives as long as the parts, which point into it
  parts[1] = part(RD_KAFKA_VTYPE_VALUE, body == LetterBody::whole ? letter.value : none);
  parts[2] = part(RD_KAFKA_VTYPE_KEY, letter.key);
  parts[3].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  parts[3].u.i = RD_KAFKA_MSG_F_COPY;
  parts[4].vtype = RD_KAFKA_VTYPE_OPAQUE;
  parts[4].u.ptr = reinterpret_cast<void*>(static_cast<std::uintptr_t>(place));
  parts[5].vtype = RD_KAFKA_VTYPE_HEADERS;
  parts[5].u.headers = made(message_headers(letter, spec_->headers, body));
  for (;;) {
    const Error error(rd_kafka_produceva(client_->raw(), parts, std::size(parts)));
    if (!error) {
      ++shared_->open;
      return {};
    }
    const auto code = rd_kafka_error_code(error.get());
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && shared_->code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_poll(client_->raw(), 20);
      continue;
    }
    rd_kafka_headers_destroy(parts[5].u.headers);
    if (too_large(code)) {
      shared_->oversize.push_back(place);
      return {};
    }
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) return undelivered();
    return client_->failure(code);
  }
}

Result<void> LetterWriter::settle() {
  while (shared_->open > 0 && shared_->code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_flush(client_->raw(), 50);
  }
  if (shared_->code != RD_KAFKA_RESP_ERR_NO_ERROR) return undelivered();
  return {};
}

Failure LetterWriter::undelivered() {
  char text[512] = "";
  const auto fatal = rd_kafka_fatal_error(client_->raw(), text, sizeof text);
  Failure failure = fatal == RD_KAFKA_RESP_ERR_NO_ERROR
                        ? client_->failure(shared_->code)
                        : failure_of(fatal, where_, text,
                                     "a new producer is made for the next "
                                     "attempt");
  if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR && failure.cls != FailureClass::unauthorized) {
    failure.cls = FailureClass::transient;
  }
  failure.effect = Effect::unknown;
  return failure;
}

// Nothing of a failed send may be sent later.
void LetterWriter::drop() {
  if (!client_) return;
  const auto deadline = Monotonic::now() + close_wait;
  while (shared_->open > 0 && Monotonic::now() < deadline) {
    rd_kafka_purge(client_->raw(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_poll(client_->raw(), 50);
  }
  topic_.reset();
  client_->close(close_wait);
  client_.reset();
}

}  // namespace flow::kafka
