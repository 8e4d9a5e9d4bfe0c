#include "connectors/kafka_client.h"

#include <condition_variable>
#include <thread>

#include "core/classify.h"

namespace flow::kafka {

List make_list(const std::vector<PartitionId>& partitions, std::int64_t offset) {
  List list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const PartitionId& p : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), p.topic.c_str(), p.partition)->offset = offset;
  }
  return list;
}

PartitionId id_of(const rd_kafka_topic_partition_t& entry) {
  return {entry.topic, entry.partition};
}

Failure failure_of(rd_kafka_resp_err_t code, std::string where, std::string what,
                   std::string hint) {
  const char* name = rd_kafka_err2name(code);
  if (what.empty()) {
    const FailureRow* row = find_kafka(name);
    what = row != nullptr ? std::string(row->sentence) : rd_kafka_err2str(code);
  }
  return {.cls = classify_kafka(name),
          .code = name,
          .where = std::move(where),
          .what = std::move(what),
          .hint = std::move(hint)};
}

// ---- errors ----------------------------------------------------------------------------------

void ErrorMemory::note(rd_kafka_resp_err_t code, std::string reason) {
  const std::scoped_lock lock(mutex_);
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    down_ = true;
    return;
  }
  if (classify_kafka(rd_kafka_err2name(code)) == FailureClass::unauthorized) {
    if (refusal_ == RD_KAFKA_RESP_ERR_NO_ERROR) refused_since_ = Monotonic::now();
    refusal_ = code;
    refusal_reason_ = std::move(reason);
  } else {
    last_reason_ = std::move(reason);
  }
}

std::optional<Failure> ErrorMemory::refused(std::string where, Millis patience) const {
  const std::scoped_lock lock(mutex_);
  if (refusal_ == RD_KAFKA_RESP_ERR_NO_ERROR || Monotonic::now() - refused_since_ < patience)
    return std::nullopt;
  return failure_of(refusal_, std::move(where), refusal_reason_,
                    "check security.protocol, sasl.* and ssl.* under properties");
}

Failure ErrorMemory::explain(rd_kafka_resp_err_t code, std::string where) const {
  const FailureClass cls = classify_kafka(rd_kafka_err2name(code));
  if (cls != FailureClass::transient) return failure_of(code, std::move(where));
  if (auto refusal = refused(where)) return *refusal;
  const std::scoped_lock lock(mutex_);
  Failure failure = failure_of(code, std::move(where), {}, "check that a broker runs there");
  if (!last_reason_.empty()) failure.what += " (" + last_reason_ + ")";
  return failure;
}

void ErrorMemory::answered() {
  const std::scoped_lock lock(mutex_);
  down_ = false;
  refusal_ = RD_KAFKA_RESP_ERR_NO_ERROR;
}

bool ErrorMemory::take_down() {
  const std::scoped_lock lock(mutex_);
  if (!down_ || told_) return false;
  told_ = true;
  return true;
}

bool ErrorMemory::take_back() {
  const std::scoped_lock lock(mutex_);
  if (down_ || !told_) return false;
  told_ = false;
  return true;
}

// ---- client ----------------------------------------------------------------------------------

void Shared::event(Level level, std::string_view noun_verb, const Fields& fields) {
  const std::scoped_lock lock(log_mutex);
  if (log != nullptr) log->event(level, noun_verb, fields);
}

void Shared::cut_off() {
  const std::scoped_lock lock(log_mutex);
  log = nullptr;
}

namespace {

Shared& shared_of(const rd_kafka_t* client) {
  return *static_cast<Shared*>(rd_kafka_opaque(client));
}

void on_log(const rd_kafka_t* client, int, const char* facility, const char* text) {
  shared_of(client).event(Level::debug, "kafka.client", {{"facility", facility}, {"text", text}});
}

void on_error(rd_kafka_t* client, int code, const char* reason, void* opaque) {
  Shared& shared = *static_cast<Shared*>(opaque);
  auto error = static_cast<rd_kafka_resp_err_t>(code);
  if (error == RD_KAFKA_RESP_ERR__FATAL) {
    char text[512];
    error = rd_kafka_fatal_error(client, text, sizeof text);
  }
  shared.errors.note(error, reason);
}

}  // namespace

Client::Client(rd_kafka_t* raw, std::shared_ptr<Shared> shared, std::string where,
               rd_kafka_type_t type)
    : raw_(raw), shared_(std::move(shared)), where_(std::move(where)), type_(type) {}

Result<std::unique_ptr<Client>> Client::make(rd_kafka_type_t type, const Settings& settings,
                                             std::shared_ptr<Shared> shared, std::string where,
                                             void (*configure)(rd_kafka_conf_t*)) {
  char why[512] = "";
  std::unique_ptr<rd_kafka_conf_t, Free<rd_kafka_conf_destroy>> conf(rd_kafka_conf_new());
  for (const auto& [name, value] : settings) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why) ==
        RD_KAFKA_CONF_OK)
      continue;
    return Failure{.cls = FailureClass::setup,
                   .where = where,
                   .what = "property " + name + ": " + why,
                   .hint = "properties takes what librdkafka's CONFIGURATION.md lists"};
  }
  rd_kafka_conf_set_opaque(conf.get(), shared.get());
  rd_kafka_conf_set_log_cb(conf.get(), on_log);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  if (configure != nullptr) configure(conf.get());
  rd_kafka_t* raw = rd_kafka_new(type, conf.get(), why, sizeof why);
  if (raw == nullptr) {
    return Failure{.cls = FailureClass::setup,
                   .where = where,
                   .what = std::string("the Kafka client refuses its settings: ") + why,
                   .hint = "correct them under properties"};
  }
  std::ignore = conf.release();  // owned by the client now
  return std::unique_ptr<Client>(new Client(raw, std::move(shared), std::move(where), type));
}

Failure Client::failure(rd_kafka_resp_err_t code) const {
  if (code != RD_KAFKA_RESP_ERR__FATAL) return shared_->errors.explain(code, where_);
  char text[512] = "";
  const auto fatal = rd_kafka_fatal_error(raw_, text, sizeof text);
  return failure_of(fatal, where_, text);
}

Client::~Client() { close(Millis{5'000}); }

void Client::close(Millis deadline) {
  if (raw_ == nullptr) return;
  struct Done {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const auto done = std::make_shared<Done>();
  std::thread closer([raw = raw_, type = type_, shared = shared_, stays = stays_behind_, done] {
    if (type == RD_KAFKA_CONSUMER) rd_kafka_consumer_close(raw);
    if (stays) {
      shared->cut_off();
      shared->self = shared;
    } else {
      rd_kafka_destroy_flags(raw, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    }
    const std::scoped_lock lock(done->mutex);
    done->done = true;
    done->changed.notify_all();
  });
  raw_ = nullptr;
  std::unique_lock lock(done->mutex);
  if (done->changed.wait_for(lock, deadline, [&] { return done->done; })) {
    lock.unlock();
    closer.join();
    return;
  }
  lock.unlock();
  shared_->event(Level::warn, "kafka.close_hangs",
                 {{"where", where_}, {"means", "the client is left behind"}});
  shared_->cut_off();
  closer.detach();
}

}  // namespace flow::kafka
