// `flow offsets inspect` and `flow check --connect` for Kafka: what is there, what of it is unread,
// and why.
#include <algorithm>
#include <set>

#include "connectors/kafka_start.h"
#include "connectors/kafka_topics.h"
#include "connectors/registry.h"

namespace flow {
namespace kafka {

namespace {

constexpr Millis fetch_wait{5'000};
constexpr std::int64_t count_max = 10'000;  // a longer backlog is given by its offsets

Result<std::unique_ptr<Client>> reader(const Context& context, std::string_view isolation) {
  const KafkaSourceSpec& spec = context.pipeline->source.kafka;
  Settings settings = probe_settings(spec.brokers, spec.properties);
  settings.emplace_back("group.id", spec.group);
  settings.emplace_back("isolation.level", isolation);
  settings.emplace_back("enable.partition.eof", "true");
  settings.emplace_back("queued.max.messages.kbytes", "8192");
  settings.emplace_back("fetch.message.max.bytes", "65536");
  auto shared = std::make_shared<Shared>();
  shared->log = context.log;
  return Client::make(RD_KAFKA_CONSUMER, settings, shared,
                      "kafka " + spec.brokers + ", group " + spec.group);
}

// What a reader meets from an offset on. at_end: `count` is exact.
struct Unread {
  std::int64_t from = 0;
  std::int64_t end = 0;
  std::optional<std::int64_t> first = std::nullopt;
  std::optional<std::int64_t> first_ms = std::nullopt;
  std::int64_t count = 0;
  bool at_end = false;
  bool done() const { return at_end || count > count_max; }
};
using UnreadMap = std::map<PartitionId, Unread>;

void note(const rd_kafka_message_t& message, Unread& unread) {
  const bool eof = message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
  if (!eof && message.err != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  if (eof || message.offset >= unread.end) {
    unread.at_end = true;
    return;
  }
  if (!unread.first) {
    unread.first = message.offset;
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    const std::int64_t ms = rd_kafka_message_timestamp(&message, &type);
    if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) unread.first_ms = ms;
  }
  ++unread.count;
  if (message.offset + 1 >= unread.end) unread.at_end = true;
}

// Fetches from all of these partitions at once, for a bounded time: offsets alone cannot tell a
// record from a transaction marker or from what compaction removed.
Result<void> fetch(Client& client, UnreadMap& unread) {
  const List list(rd_kafka_topic_partition_list_new(static_cast<int>(unread.size())));
  for (const auto& [id, u] : unread) {
    rd_kafka_topic_partition_list_add(list.get(), id.topic.c_str(), id.partition)->offset = u.from;
  }
  const auto code = rd_kafka_assign(client.raw(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return client.failure(code);
  std::size_t open = unread.size();
  const auto deadline = Monotonic::now() + fetch_wait;
  while (open > 0 && Monotonic::now() < deadline) {
    const Message message(rd_kafka_consumer_poll(client.raw(), 100));
    if (!message || message->rkt == nullptr) continue;
    const auto at = unread.find({rd_kafka_topic_name(message->rkt), message->partition});
    if (at == unread.end() || at->second.done()) continue;
    note(*message, at->second);
    if (!at->second.done()) continue;
    --open;
    const List enough = make_list({at->first}, RD_KAFKA_OFFSET_INVALID);
    rd_kafka_pause_partitions(client.raw(), enough.get());
  }
  rd_kafka_assign(client.raw(), nullptr);
  return {};
}

std::string number(std::int64_t n) { return std::to_string(n); }

void judge_lag(OffsetRow& row, const Unread* unread, std::int64_t now) {
  if (unread == nullptr) {
    row.lag = 0;
    row.lag_ms = 0;
    row.verdict = "caught_up";
    row.reason = "read to the end";
    return;
  }
  if (!unread->first && !unread->at_end) {
    row.verdict = "unknown";
    row.reason = "the broker gave no record within " + number(fetch_wait.count() / 1000) + " s";
    return;
  }
  if (!unread->first) {
    row.lag = 0;
    row.lag_ms = 0;
    row.verdict = "caught_up";
    row.reason =
        number(*row.last_stable - unread->from) +
        " offsets follow, none of them a record: transaction markers, aborted or compacted";
    return;
  }
  row.lag = unread->at_end ? unread->count : *row.last_stable - *unread->first;
  if (unread->first_ms) row.lag_ms = std::max<std::int64_t>(0, now - *unread->first_ms);
  row.verdict = "behind";
  row.reason = std::string(unread->at_end ? "" : "at most ") + number(*row.lag) +
               " records to read, the first at " + number(*unread->first);
}

void judge_gap(OffsetRow& row) {
  if (*row.committed < *row.log_start) {
    row.expired_unread = *row.log_start - *row.committed;
    row.verdict = "gap";
    row.reason =
        number(*row.expired_unread) + " records were removed before they were read; " + row.reason;
  } else {
    row.expired_unread = 0;
  }
  if (*row.committed > *row.high) {
    row.lag.reset();
    row.lag_ms.reset();
    row.verdict = "gap";
    row.reason = "the position lies past the end: the topic was replaced or cut";
  }
}

void judge_blocked(OffsetRow& row, const UnreadMap& held, std::int64_t now) {
  const auto at = held.find(row.partition);
  if (at == held.end()) return;
  std::string blocked = "blocked from " + number(*row.last_stable) + " on by an open transaction";
  if (at->second.first_ms) {
    blocked += " since " + rfc3339(*at->second.first_ms);
    if (row.verdict == "caught_up")
      row.lag_ms = std::max<std::int64_t>(0, now - *at->second.first_ms);
  }
  if (row.verdict == "caught_up") {
    row.verdict = "blocked";
    row.reason = std::move(blocked);
  } else {
    row.reason += "; " + blocked;
  }
}

struct Facts {
  Offsets committed, starts, stable, high, state;
};

OffsetRow judge(const PartitionId& id, const Facts& facts, const UnreadMap& unread,
                const UnreadMap& held) {
  const auto find = [&](const Offsets& offsets) -> std::optional<std::int64_t> {
    const auto at = offsets.find(id);
    return at == offsets.end() ? std::nullopt : std::optional(at->second);
  };
  OffsetRow row;
  row.partition = id;
  row.log_start = find(facts.starts);
  row.committed = find(facts.committed);
  row.high = find(facts.high);
  row.last_stable = find(facts.stable);
  row.state = find(facts.state);
  if (!row.committed) {
    row.verdict = "no_position";
    row.reason = "the group has committed no position here";
    return row;
  }
  const std::int64_t now = wall_ms();
  const auto at = unread.find(id);
  judge_lag(row, at == unread.end() ? nullptr : &at->second, now);
  judge_blocked(row, held, now);
  judge_gap(row);
  return row;
}

Result<std::vector<TopicInfo>> topics_of(Client& client, const KafkaSourceSpec& spec,
                                         const std::string& filter) {
  auto all = list_topics(client);
  if (!all) return all;
  const std::vector<std::string> names =
      filter.empty() ? spec.topics : std::vector<std::string>{filter};
  TopicMatch match = match_topics(names, *all);
  for (const std::string& name : match.missing) {
    if (!is_pattern(name)) return absent_topic(client, name, *all, "the name");
  }
  return std::move(match.found);
}

Result<Facts> gather(const Context& context, Client& committed_reader, Client& log_reader,
                     const std::vector<PartitionId>& partitions) {
  Facts facts;
  const auto ask = [&](Offsets& into, Result<Offsets> answer) -> Result<void> {
    if (!answer) return std::move(answer).failure();
    into = std::move(*answer);
    return {};
  };
  if (auto r = ask(facts.committed, committed_offsets(committed_reader, partitions)); !r)
    return std::move(r).failure();
  if (auto r = ask(facts.starts, edge_offsets(committed_reader, partitions, Edge::start)); !r)
    return std::move(r).failure();
  if (auto r = ask(facts.stable, edge_offsets(committed_reader, partitions, Edge::end)); !r)
    return std::move(r).failure();
  if (auto r = ask(facts.high, edge_offsets(log_reader, partitions, Edge::end)); !r)
    return std::move(r).failure();
  if (context.state != nullptr) {
    auto spans = context.state->positions(context.pipeline->name);
    if (!spans) return std::move(spans).failure();
    for (const Span& span : *spans) facts.state[span.partition] = span.next.next;
  }
  return facts;
}

}  // namespace

}  // namespace kafka

Result<std::vector<OffsetRow>> inspect_kafka(const Context& context,
                                             const std::string& topic_filter) {
  using namespace kafka;
  auto committed_reader = reader(context, "read_committed");
  if (!committed_reader) return std::move(committed_reader).failure();
  auto log_reader = reader(context, "read_uncommitted");
  if (!log_reader) return std::move(log_reader).failure();
  auto topics = topics_of(**committed_reader, context.pipeline->source.kafka, topic_filter);
  if (!topics) return std::move(topics).failure();
  const std::vector<PartitionId> partitions = partitions_of(*topics);
  auto facts = gather(context, **committed_reader, **log_reader, partitions);
  if (!facts) return std::move(facts).failure();
  UnreadMap unread, held;
  for (const auto& [id, committed] : facts->committed) {
    const std::int64_t from = std::max(committed, facts->starts[id]);
    if (from < facts->stable[id]) unread[id] = {.from = from, .end = facts->stable[id]};
    if (facts->stable[id] < facts->high[id])
      held[id] = {.from = facts->stable[id], .end = facts->stable[id] + 1};
  }
  if (auto r = fetch(**committed_reader, unread); !r) return std::move(r).failure();
  if (auto r = fetch(**log_reader, held); !r) return std::move(r).failure();
  std::vector<OffsetRow> rows;
  for (const PartitionId& id : partitions) rows.push_back(judge(id, *facts, unread, held));
  return rows;
}

Result<std::vector<std::string>> check_kafka_source(const Context& context) {
  using namespace kafka;
  const KafkaSourceSpec& spec = context.pipeline->source.kafka;
  auto client = reader(context, "read_committed");
  if (!client) return std::move(client).failure();
  auto topics = topics_of(**client, spec, {});
  if (!topics) return std::move(topics).failure();
  std::vector<std::string> notes;
  std::set<std::string> names;
  for (const TopicInfo& topic : *topics) {
    names.insert(topic.name);
    notes.push_back("topic " + topic.name + ": " + std::to_string(topic.partitions) +
                    " partitions");
  }
  if (names.empty()) {
    return failure_of(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, (*client)->where(),
                      "no topic matches the patterns", "correct source.topics");
  }
  const std::vector<PartitionId> partitions = partitions_of(*topics);
  auto starts = StartRule(**client, spec, names).decide(partitions);
  if (!starts) return std::move(starts).failure();
  const auto with = std::count_if(starts->begin(), starts->end(),
                                  [](const Start& s) { return s.committed.has_value(); });
  notes.push_back("group " + spec.group + ": a position in " + std::to_string(with) + " of " +
                  std::to_string(partitions.size()) + " partitions");
  return notes;
}

}  // namespace flow
