// The group: partitions come and go, positions are decided, errors are told apart.
#include <algorithm>

#include "connectors/kafka_source.h"
#include "connectors/kafka_topics.h"

namespace flow::kafka {

namespace {

constexpr Millis ask_again{500};  // what a broker did not answer
constexpr Millis look_for_missing_each{1'000};
constexpr std::chrono::seconds gone_after{10};  // a topic unknown for so long was deleted
constexpr Millis refusal_patience{10'000};      // a broker that starts may not know its users yet

}  // namespace

bool KafkaSource::cooperative() const {
  return std::string_view(rd_kafka_rebalance_protocol(client_->raw())) == "COOPERATIVE";
}

// Keeps the membership alive and handles what the group says. Records do not come this way: they
// wait in their own queue, so that polling can go on while nobody takes them.
Result<void> KafkaSource::serve() {
  rd_kafka_poll(client_->raw(), 0);
  const Message message(rd_kafka_consumer_poll(client_->raw(), 0));
  if (message) {
    FLOW_CHECK(message->err != RD_KAFKA_RESP_ERR_NO_ERROR, "a record came outside of its queue");
    if (auto r = on_group_error(*message); !r) return r;
  }
  if (auto r = look_at_outage(); !r) return r;
  if (auto r = handle_rebalances(); !r) return r;
  if (auto r = recover_positions(); !r) return r;
  return look_for_missing();
}

// A broker that is down is waited for; one that has refused the login for a while is not.
Result<void> KafkaSource::look_at_outage() {
  if (shared_->errors.take_down()) {
    shared_->event(Level::warn, "source.unreachable",
                   {{"brokers", spec_.brokers}, {"means", "reading goes on when one answers"}});
  } else if (shared_->errors.take_back()) {
    shared_->event(Level::info, "source.back", {{"brokers", spec_.brokers}});
  }
  if (auto refusal = shared_->errors.refused(where_, refusal_patience)) return *refusal;
  return {};
}

Result<void> KafkaSource::on_group_error(const rd_kafka_message_t& message) {
  rd_kafka_resp_err_t code = message.err;
  char text[512];
  if (code == RD_KAFKA_RESP_ERR__FATAL)
    code = rd_kafka_fatal_error(client_->raw(), text, sizeof text);
  switch (code) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      // A broker that starts may not know its topics yet.
      if (message.rkt != nullptr) {
        const std::scoped_lock lock(mutex_);
        missing_.try_emplace(rd_kafka_topic_name(message.rkt), Monotonic::now());
      }
      return {};
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
      return failure_of(
          code, where_,
          "the group's members use another assignment strategy than this one's " +
              std::string(spec_.cooperative ? "cooperative-sticky" : "range,roundrobin"),
          "set source.rebalance alike on all, or stop the others first");
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
      return failure_of(code, where_, "another process joined with the same group.instance.id",
                        "give each process its own");
    default: break;
  }
  if (failure_of(code, {}).retryable()) {
    shared_->errors.note(code, rd_kafka_message_errstr(&message));
    return {};
  }
  Failure failure = failure_of(code, where_);
  if (message.rkt != nullptr) {
    const PartitionId id{rd_kafka_topic_name(message.rkt), message.partition};
    failure.where = (id.partition < 0 ? "topic " + id.topic : id.text()) + " at " + where_;
  }
  return failure;
}

Result<void> KafkaSource::handle_rebalances() {
  auto& events = shared_->rebalances;
  while (!events.empty() && Monotonic::now() >= retry_at_) {
    const SourceShared::Rebalance event = events.front();
    if (event.code != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
      events.pop_front();
      release(event.partitions);
      continue;
    }
    auto assigned = assign(event.partitions);
    if (!assigned && assigned.failure().retryable()) {
      shared_->event(Level::warn, "source.waits_for_positions",
                     {{"error", assigned.failure().text()}});
      retry_at_ = Monotonic::now() + ask_again;
      return {};
    }
    events.pop_front();
    if (!assigned) return assigned;
  }
  return {};
}

Result<void> KafkaSource::assign(const std::vector<PartitionId>& partitions) {
  if (spec_.start == StartAt::latest && !context_.dry_run) {
    std::vector<PartitionId> first;  // all partitions of the topics that were there at the start
    for (const PartitionId& p : first_partitions_) {
      if (std::any_of(partitions.begin(), partitions.end(),
                      [&](const PartitionId& mine) { return mine.topic == p.topic; }))
        first.push_back(p);
    }
    if (auto r = settle_latest(*client_, spec_, first, SettleAs::member); !r) return r;
  }
  auto starts = start_rule_->decide(partitions);
  if (!starts) return std::move(starts).failure();
  report_starts(*starts);
  if (auto r = take(*starts); !r) return r;
  if (!partitions.empty()) listener_->assigned(partitions);
  return {};
}

Result<void> KafkaSource::take(const std::vector<Start>& starts) {
  const List list(rd_kafka_topic_partition_list_new(static_cast<int>(starts.size())));
  for (const Start& start : starts) {
    const PartitionId& p = start.partition;
    rd_kafka_topic_partition_list_add(list.get(), p.topic.c_str(), p.partition)->offset =
        start.position;
    own(start);
  }
  if (!context_.dry_run && cooperative()) {
    const Error error(rd_kafka_incremental_assign(client_->raw(), list.get()));
    if (error) return client_->failure(rd_kafka_error_code(error.get()));
    return {};
  }
  const auto code = rd_kafka_assign(client_->raw(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return client_->failure(code);
  return {};
}

// Its records go to the source's own queue from the first one on.
void KafkaSource::own(const Start& start) {
  auto owned = std::make_unique<OwnedPartition>();
  owned->id = start.partition;
  owned->next = start.position;
  owned->end = start.end;
  // After a gap the position may have to go back: to what the log holds.
  if (start.reason != StartReason::gap) owned->committed = start.committed.value_or(-1);
  owned->queue.reset(rd_kafka_queue_get_partition(client_->raw(), start.partition.topic.c_str(),
                                                  start.partition.partition));
  rd_kafka_queue_forward(owned->queue.get(), data_.get());
  if (until_end_) {
    owned->stop_at = until_end_->end_of(start.partition);
    until_end_->position(start.partition, start.position);
  }
  const std::scoped_lock lock(mutex_);
  owned_.insert_or_assign(start.partition, std::move(owned));
  last_topic_ = nullptr;
}

// How partitions without a usable position begin: said once for all of a kind.
void KafkaSource::report_starts(const std::vector<Start>& starts) {
  std::string policy, fresh;
  for (const Start& start : starts) {
    if (start.reason == StartReason::gap) report_gap(start);
    if (start.reason != StartReason::start_policy && start.reason != StartReason::new_partition)
      continue;
    std::string& text = start.reason == StartReason::start_policy ? policy : fresh;
    text +=
        (text.empty() ? "" : ",") + start.partition.text() + "@" + std::to_string(start.position);
  }
  if (!policy.empty())
    shared_->event(Level::info, "source.no_position",
                   {{"group", spec_.group}, {"starts_at", policy}});
  if (!fresh.empty())
    shared_->event(Level::info, "source.new_partition",
                   {{"group", spec_.group}, {"starts_at", fresh}});
}

void KafkaSource::report_gap(const Start& start) {
  shared_->event(Level::warn, "source.gap",
                 {{"partition", start.partition.text()},
                  {"committed", start.committed ? std::to_string(*start.committed) : "none"},
                  {"log_start", std::to_string(start.log_start)},
                  {"gone", std::to_string(start.gone)},
                  {"goes_on_at", std::to_string(start.position)}});
}

// Nothing of these partitions is written after listener_->released() returned; what was durable is
// committed by then, unless the group took them away.
void KafkaSource::release(const std::vector<PartitionId>& partitions) {
  const bool lost = rd_kafka_assignment_lost(client_->raw()) != 0;
  if (lost) {
    disown(partitions);
  } else {
    const std::scoped_lock lock(mutex_);
    for (const PartitionId& p : partitions) {
      if (const auto at = owned_.find(p); at != owned_.end()) at->second->releasing = true;
    }
  }
  if (!partitions.empty()) listener_->released(partitions, lost ? Release::lost : Release::revoked);
  disown(partitions);
  drop_from_batch(partitions);
  if (cooperative()) {
    const List list = make_list(partitions, RD_KAFKA_OFFSET_INVALID);
    const Error error(rd_kafka_incremental_unassign(client_->raw(), list.get()));
    if (error) {
      shared_->event(Level::debug, "source.unassign",
                     {{"error", rd_kafka_error_string(error.get())}});
    }
  } else {
    rd_kafka_assign(client_->raw(), nullptr);
  }
}

void KafkaSource::disown(const std::vector<PartitionId>& partitions) {
  const std::scoped_lock lock(mutex_);
  for (const PartitionId& p : partitions) {
    if (until_end_) {
      if (const auto at = owned_.find(p); at != owned_.end())
        until_end_->released(p, at->second->committed);
    }
    owned_.erase(p);
    out_of_range_.erase(p);
  }
  last_topic_ = nullptr;
  last_owner_ = nullptr;
}

void KafkaSource::drop_from_batch(const std::vector<PartitionId>& partitions) {
  if (batch_ == nullptr) return;
  std::vector<char> gone(batch_->spans.size(), 0);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    gone[i] = std::find(partitions.begin(), partitions.end(), batch_->spans[i].partition) !=
              partitions.end();
  }
  batch_->abandon(gone);
  ++read_call_;  // the spans have moved
}

// A position that fell out of the log while reading is decided like one at the start.
Result<void> KafkaSource::recover_positions() {
  while (!out_of_range_.empty() && Monotonic::now() >= retry_at_) {
    const PartitionId id = *out_of_range_.begin();
    OwnedPartition& partition = *owned_.at(id);
    auto start = start_rule_->out_of_range(id, partition.next);
    if (!start && start.failure().retryable()) {
      retry_at_ = Monotonic::now() + ask_again;
      return {};
    }
    out_of_range_.erase(id);
    if (!start) return std::move(start).failure();
    report_starts({*start});
    {
      const std::scoped_lock lock(mutex_);
      partition.next = start->position;
      partition.committed = -1;
    }
    if (auto r = restart(id); !r) return r;
  }
  return {};
}

// librdkafka stops fetching what is out of range, and a seek does not start it again: assigning
// does. To stop a partition also ends its forwarding; the second call returns when that is done.
Result<void> KafkaSource::restart(const PartitionId& id) {
  rd_kafka_t* client = client_->raw();
  const bool alone = !context_.dry_run && cooperative();
  const std::vector<PartitionId> restarted = alone ? std::vector{id} : owned_ids();
  const List list = make_list(restarted, RD_KAFKA_OFFSET_INVALID);
  for (int i = 0; i < list->cnt; ++i)
    list->elems[i].offset = owned_.at(id_of(list->elems[i]))->next;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (alone) {
    Error error(rd_kafka_incremental_unassign(client, list.get()));
    if (!error) error.reset(rd_kafka_incremental_assign(client, list.get()));
    if (error) code = rd_kafka_error_code(error.get());
  } else {
    rd_kafka_assign(client, nullptr);
    code = rd_kafka_assign(client, list.get());
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return client_->failure(code);
  for (const PartitionId& p : restarted)
    rd_kafka_queue_forward(owned_.at(p)->queue.get(), data_.get());
  return {};
}

// Topics that are waited for, and topics that a broker said it does not know.
Result<void> KafkaSource::look_for_missing() {
  const auto now = Monotonic::now();
  std::map<std::string, Monotonic::time_point> missing;
  {
    const std::scoped_lock lock(mutex_);
    if (missing_.empty() || now < look_at_) return {};
    missing = missing_;
  }
  look_at_ = now + look_for_missing_each;
  auto all = list_topics(*client_, Millis{1'000});
  if (!all) return {};
  bool found = false;
  bool unsubscribed = false;
  for (const auto& [name, since] : missing) {
    const TopicMatch match = match_topics({name}, *all);
    if (match.missing.empty()) {
      found = true;
      unsubscribed = unsubscribed || !subscribed_.contains(name);
      const std::scoped_lock lock(mutex_);
      missing_.erase(name);
      continue;
    }
    if (spec_.on_missing == OnMissing::fail && now - since >= gone_after)
      return absent_topic(*client_, name, *all, "source.topics");
  }
  if (!found) return {};
  const auto partitions = partitions_of(match_topics(spec_.topics, *all).found);
  if (auto r = set_goals(partitions); !r) return r;
  return unsubscribed ? subscribe(partitions) : Result<void>{};
}

std::vector<PartitionId> KafkaSource::owned_ids() const {
  const std::scoped_lock lock(mutex_);
  std::vector<PartitionId> ids;
  for (const auto& [id, partition] : owned_) ids.push_back(id);
  return ids;
}

}  // namespace flow::kafka
