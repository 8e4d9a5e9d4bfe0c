#include "connectors/kafka_start.h"

#include <algorithm>

namespace flow::kafka {

namespace {

bool topic_has_position(const Offsets& committed, const std::string& topic) {
  const auto at = committed.lower_bound({topic, 0});
  return at != committed.end() && at->first.topic == topic;
}

}  // namespace

Result<Known> StartRule::look(const std::vector<PartitionId>& partitions) const {
  std::set<PartitionId> asked(partitions.begin(), partitions.end());
  if (spec_->start != StartAt::earliest) {
    // Whether a partition is new shows in its topic's other partitions.
    auto topics = list_topics(*client_);
    if (!topics) return std::move(topics).failure();
    for (const PartitionId& p : partitions_of(*topics)) {
      if (std::any_of(partitions.begin(), partitions.end(),
                      [&](const PartitionId& mine) { return mine.topic == p.topic; }))
        asked.insert(p);
    }
  }
  auto committed = committed_offsets(*client_, {asked.begin(), asked.end()});
  if (!committed) return std::move(committed).failure();
  auto starts = edge_offsets(*client_, partitions, Edge::start);
  if (!starts) return std::move(starts).failure();
  auto ends = edge_offsets(*client_, partitions, Edge::end);
  if (!ends) return std::move(ends).failure();
  return Known{std::move(*committed), std::move(*starts), std::move(*ends)};
}

Result<std::vector<Start>> StartRule::decide(const std::vector<PartitionId>& partitions) const {
  std::vector<Start> decided;
  if (partitions.empty()) return decided;
  auto known = look(partitions);
  if (!known) return std::move(known).failure();
  for (const PartitionId& p : partitions) {
    Start start{.partition = p, .end = known->ends[p], .log_start = known->starts[p]};
    const auto at = known->committed.find(p);
    auto chosen = at == known->committed.end() ? without_position(start, *known)
                                               : with_position(start, at->second);
    if (!chosen) return std::move(chosen).failure();
    decided.push_back(std::move(*chosen));
  }
  return decided;
}

Result<Start> StartRule::without_position(Start start, const Known& known) const {
  const std::string& topic = start.partition.topic;
  start.position = start.log_start;
  start.reason = StartReason::new_partition;
  if (spec_->start != StartAt::earliest && topic_has_position(known.committed, topic)) return start;
  switch (spec_->start) {
    case StartAt::earliest: start.reason = StartReason::start_policy; break;
    case StartAt::latest:
      if (!first_topics_.contains(topic)) break;  // it came while we were running
      start.reason = StartReason::start_policy;
      start.position = start.end;
      break;
    case StartAt::error:
      return Failure{.cls = FailureClass::setup,
                     .code = "no_position",
                     .where = start.partition.text() + " at " + client_->where(),
                     .what = "the group has no position here, and start is error",
                     .hint =
                         "start: earliest or latest says where to begin; flow offsets inspect "
                         "shows the positions"};
  }
  return start;
}

Result<Start> StartRule::with_position(Start start, std::int64_t committed) const {
  start.committed = committed;
  if (committed >= start.log_start && committed <= start.end) {
    start.position = committed;
    return start;
  }
  return gap(std::move(start), committed);
}

Result<Start> StartRule::out_of_range(const PartitionId& partition, std::int64_t position) const {
  auto starts = edge_offsets(*client_, {partition}, Edge::start);
  if (!starts) return std::move(starts).failure();
  auto ends = edge_offsets(*client_, {partition}, Edge::end);
  if (!ends) return std::move(ends).failure();
  return with_position(
      {.partition = partition, .end = (*ends)[partition], .log_start = (*starts)[partition]},
      position);
}

Result<std::int64_t> StartRule::high_watermark(const PartitionId& partition) const {
  Settings settings = probe_settings(spec_->brokers, spec_->properties);
  settings.emplace_back("isolation.level", "read_uncommitted");
  auto client =
      Client::make(RD_KAFKA_CONSUMER, settings, std::make_shared<Shared>(), client_->where());
  if (!client) return std::move(client).failure();
  auto ends = edge_offsets(**client, {partition}, Edge::end);
  if (!ends) return std::move(ends).failure();
  return (*ends)[partition];
}

Result<Start> StartRule::gap(Start start, std::int64_t position) const {
  std::string what = "the position " + std::to_string(position);
  if (position > start.end) {
    auto high = high_watermark(start.partition);  // an open transaction may lie between the two
    if (!high) return std::move(high).failure();
    if (position <= *high) {
      start.position = position;
      return start;
    }
    what += " lies past the end of the log, " + std::to_string(*high) +
            ": the topic was replaced or cut";
  } else {
    start.gone = start.log_start - position;
    what += " lies before the log's start, " + std::to_string(start.log_start) + ": " +
            std::to_string(start.gone) + " records are gone unread";
  }
  start.reason = StartReason::gap;
  switch (spec_->on_gap) {
    case OnGap::earliest: start.position = start.log_start; return start;
    case OnGap::latest: start.position = start.end; return start;
    case OnGap::stop: break;
  }
  return Failure{.cls = FailureClass::setup,
                 .code = "gap",
                 .where = start.partition.text() + " at " + client_->where(),
                 .what = std::move(what),
                 .hint = "on_gap: earliest goes on at " + std::to_string(start.log_start) +
                         ", on_gap: latest at " + std::to_string(start.end)};
}

namespace {

// Commits without being a member; not the source's own client, whose static name the group would
// refuse.
Result<rd_kafka_resp_err_t> commit_as_outsider(const Client& client, const KafkaSourceSpec& spec,
                                               const List& list) {
  Settings settings = probe_settings(spec.brokers, spec.properties);
  settings.emplace_back("group.id", spec.group);
  auto outsider =
      Client::make(RD_KAFKA_CONSUMER, settings, std::make_shared<Shared>(), client.where());
  if (!outsider) return std::move(outsider).failure();
  return rd_kafka_commit((*outsider)->raw(), list.get(), 0);
}

}  // namespace

Result<void> settle_latest(Client& client, const KafkaSourceSpec& spec,
                           const std::vector<PartitionId>& partitions, SettleAs as) {
  auto committed = committed_offsets(client, partitions);
  if (!committed) return std::move(committed).failure();
  std::vector<PartitionId> fresh;
  for (const PartitionId& p : partitions) {
    if (!topic_has_position(*committed, p.topic)) fresh.push_back(p);
  }
  if (fresh.empty()) return {};
  auto ends = edge_offsets(client, fresh, Edge::end);
  if (!ends) return std::move(ends).failure();
  const List list = make_list(fresh, RD_KAFKA_OFFSET_INVALID);
  for (int i = 0; i < list->cnt; ++i) list->elems[i].offset = (*ends)[id_of(list->elems[i])];
  Result<rd_kafka_resp_err_t> code = rd_kafka_resp_err_t{};
  if (as == SettleAs::member) {
    code = rd_kafka_commit(client.raw(), list.get(), 0);
  } else {
    code = commit_as_outsider(client, spec, list);
  }
  if (!code) return std::move(code).failure();
  if (*code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    client.shared().event(Level::info, "source.starts_at_latest",
                          {{"group", spec.group}, {"partitions", std::to_string(fresh.size())}});
    return {};
  }
  if (as == SettleAs::outsider && *code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID) return {};
  return client.failure(*code);
}

}  // namespace flow::kafka
