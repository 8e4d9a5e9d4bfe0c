#include "connectors/kafka_source.h"

#include <algorithm>

#include "connectors/kafka_topics.h"
#include "connectors/registry.h"

namespace flow {
namespace kafka {

namespace {

constexpr Millis close_wait{5'000};

// What librdkafka holds ahead of the loop. Its queue is bounded by bytes and by records: each
// record costs about half a kilobyte beside its bytes.
constexpr std::size_t queue_kbytes_max = 8'192;
constexpr std::size_t queue_records_max = 50'000;
constexpr std::size_t fetch_bytes = std::size_t{1} << 20;

void on_rebalance(rd_kafka_t* client, rd_kafka_resp_err_t code,
                  rd_kafka_topic_partition_list_t* list, void* opaque) {
  auto& shared = static_cast<SourceShared&>(*static_cast<Shared*>(opaque));
  if (shared.closing.load()) {
    rd_kafka_assign(client, nullptr);
    return;
  }
  SourceShared::Rebalance event{code, {}};
  for (int i = 0; i < list->cnt; ++i) event.partitions.push_back(id_of(list->elems[i]));
  shared.rebalances.push_back(std::move(event));
}

void configure(rd_kafka_conf_t* conf) { rd_kafka_conf_set_rebalance_cb(conf, on_rebalance); }

bool library_naps() { return rd_kafka_version() < 0x02020000; }  // see Watch

}  // namespace

Result<std::unique_ptr<KafkaSource>> KafkaSource::make(const Context& context) {
  std::unique_ptr<KafkaSource> source(new KafkaSource(context));
  if (auto r = source->connect(); !r)
    return std::move(r).failure();  // refused settings show at once
  source->client_.reset();
  return source;
}

KafkaSource::KafkaSource(const Context& context)
    : context_(context),
      spec_(context.pipeline->source.kafka),
      where_("kafka " + spec_.brokers + ", group " + spec_.group) {}

KafkaSource::~KafkaSource() { close(); }

Settings KafkaSource::settings() const {
  const std::size_t kbytes = std::clamp<std::size_t>(context_.pipeline->source.batch.bytes >> 10U,
                                                     1'024, queue_kbytes_max);
  Settings s = {
      {"client.id", "flow"},
      {"check.crcs", "true"},
      {"socket.nagle.disable", "true"},
      {"reconnect.backoff.max.ms", "1000"},
      {"fetch.error.backoff.ms", "100"},
      {"topic.metadata.refresh.interval.ms", "10000"},
      {"queued.max.messages.kbytes", std::to_string(kbytes)},
      {"queued.min.messages", std::to_string(queue_records_max)},
      {"fetch.message.max.bytes", std::to_string(fetch_bytes)},
      {"fetch.max.bytes", std::to_string(fetch_bytes)},
  };
  if (!library_naps()) s.emplace_back("fetch.queue.backoff.ms", "5");
  if (std::none_of(spec_.topics.begin(), spec_.topics.end(), names_internal_topics))
    s.emplace_back("topic.blacklist", "^__");
  if (!context_.instance_id.empty()) s.emplace_back("group.instance.id", context_.instance_id);
  if (!context_.instance_id.empty() || has_property(spec_.properties, "group.instance.id")) {
    // A static member does not leave: what it had goes to the others after this time.
    s.emplace_back("session.timeout.ms", "6000");
    s.emplace_back("heartbeat.interval.ms", "1500");
  }
  add_properties(s, spec_.properties);
  s.emplace_back("bootstrap.servers", spec_.brokers);
  s.emplace_back("group.id", spec_.group);
  s.emplace_back("partition.assignment.strategy",
                 spec_.cooperative ? "cooperative-sticky" : "range,roundrobin");
  s.emplace_back("auto.offset.reset", "error");
  s.emplace_back("enable.auto.commit", "false");
  s.emplace_back("enable.auto.offset.store", "false");
  s.emplace_back("isolation.level", "read_committed");
  s.emplace_back("enable.partition.eof", "true");
  s.emplace_back("allow.auto.create.topics", "false");
  return s;
}

Result<void> KafkaSource::connect() {
  shared_ = std::make_shared<SourceShared>();
  shared_->log = context_.log;
  auto client = Client::make(RD_KAFKA_CONSUMER, settings(), shared_, where_, configure);
  if (!client) return std::move(client).failure();
  client_ = std::move(*client);
  return {};
}

Result<void> KafkaSource::open(PartitionListener& listener) {
  listener_ = &listener;
  close();  // what an attempt before left
  if (auto r = connect(); !r) return r;
  if (auto r = find_topics(); !r) return r;
  std::set<std::string> first_topics;
  for (const PartitionId& p : first_partitions_) first_topics.insert(p.topic);
  start_rule_.emplace(*client_, spec_, std::move(first_topics));
  if (context_.until_end) until_end_.emplace();
  if (auto r = check_positions(); !r) return r;
  data_.reset(rd_kafka_queue_new(client_->raw()));
  if (auto r = subscribe(first_partitions_); !r) return r;
  watch_ = std::make_unique<Watch>([this] { look_at_ends(); });
  return {};
}

// Fills first_partitions_ and missing_. Errors: a topic that is missing, unless it is to be waited
// for.
Result<void> KafkaSource::find_topics() {
  auto all = list_topics(*client_);
  if (!all) return std::move(all).failure();
  const TopicMatch match = match_topics(spec_.topics, *all);
  first_partitions_ = partitions_of(match.found);
  std::map<std::string, Monotonic::time_point> missing;
  for (const std::string& name : match.missing) {
    Failure failure = is_pattern(name)
                          ? failure_of(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, where_,
                                       "no topic matches the pattern " + name,
                                       "correct source.topics, or wait for one: on_missing: wait")
                          : absent_topic(*client_, name, *all, "source.topics");
    const bool waits = spec_.on_missing == OnMissing::wait && !context_.dry_run;
    if (!waits || failure.cls != FailureClass::setup) return failure;
    missing[name] = Monotonic::now();
  }
  const std::scoped_lock lock(mutex_);
  missing_ = std::move(missing);
  return {};
}

// Before the first read: gaps and missing positions of all partitions are found here, whoever will
// read them.
Result<void> KafkaSource::check_positions() {
  if (spec_.start == StartAt::latest && !context_.dry_run) {
    if (auto r = settle_latest(*client_, spec_, first_partitions_, SettleAs::outsider); !r)
      return r;
  }
  return set_goals(first_partitions_);
}

Result<void> KafkaSource::set_goals(const std::vector<PartitionId>& partitions) {
  auto starts = start_rule_->decide(partitions);
  if (!starts) return std::move(starts).failure();
  if (!until_end_) return {};
  for (const Start& start : *starts) until_end_->add(start.partition, start.position, start.end);
  return {};
}

Result<void> KafkaSource::subscribe(const std::vector<PartitionId>& partitions) {
  if (context_.dry_run)
    return assign(partitions);  // beside the group: not a member, commits nothing
  std::vector<PartitionId> topics;
  {
    const std::scoped_lock lock(mutex_);
    for (const std::string& name : spec_.topics) {
      if (!is_pattern(name) && missing_.contains(name)) continue;
      topics.push_back({name, RD_KAFKA_PARTITION_UA});
      subscribed_.insert(name);
    }
  }
  if (topics.empty()) return {};
  if (spec_.cooperative) client_->stays_behind();
  const List list = make_list(topics, RD_KAFKA_OFFSET_INVALID);
  const auto code = rd_kafka_subscribe(client_->raw(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return client_->failure(code);
  return {};
}

void KafkaSource::close() {
  watch_.reset();
  if (!client_) return;
  shared_->closing = true;
  {
    const std::scoped_lock lock(mutex_);
    owned_.clear();
  }
  subscribed_.clear();
  out_of_range_.clear();
  last_owner_ = nullptr;
  last_topic_ = nullptr;
  data_.reset();
  client_->close(close_wait);
  client_.reset();
}

// The watch's thread: the ends are the lag; a bounded run also needs what other members committed.
void KafkaSource::look_at_ends() {
  constexpr Millis wait{2'000};
  const std::vector<PartitionId> owned = owned_ids();
  if (auto ends = edge_offsets(*client_, owned, Edge::end, wait); ends.ok()) {
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, end] : *ends) {
      if (const auto at = owned_.find(id); at != owned_.end()) at->second->end = end;
    }
  }
  if (!until_end_) return;
  std::vector<PartitionId> elsewhere;
  for (const PartitionId& p : until_end_->unfinished()) {
    if (!std::binary_search(owned.begin(), owned.end(), p)) elsewhere.push_back(p);
  }
  auto committed = committed_offsets(*client_, elsewhere, wait);
  if (!committed) return;
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, next] : *committed) {
    if (!owned_.contains(id)) until_end_->position(id, next);
  }
}

SourceProgress KafkaSource::progress() const {
  SourceProgress progress;
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, since] : missing_) {
    progress.waiting_for += (progress.waiting_for.empty() ? "topic " : ", ") + name;
  }
  if (!missing_.empty()) progress.waiting_for += " to exist";
  std::uint64_t lag = 0;
  bool known = !owned_.empty();
  for (const auto& [id, partition] : owned_) {
    const std::int64_t end = partition->end;
    known = known && end >= 0;
    lag += static_cast<std::uint64_t>(std::max<std::int64_t>(0, end - partition->next));
  }
  if (known) progress.lag = lag;
  if (until_end_) {
    progress.total = until_end_->total();
    progress.done = until_end_->done();
    progress.lag = *progress.total - *progress.done;
  }
  return progress;
}

}  // namespace kafka

Result<SourceParts> make_kafka_source(const Context& context) {
  auto source = kafka::KafkaSource::make(context);
  if (!source) return std::move(source).failure();
  SourceParts parts;
  parts.positions = source->get();
  parts.source = std::move(*source);
  return parts;
}

}  // namespace flow
