#pragma once
// Where reading a partition begins: the group's position where there is one and the log still holds
// it, else what `start` and `on_gap` say. Never a jump that nobody asked for.
#include <set>
#include <string>
#include <vector>

#include "connectors/kafka_client.h"

namespace flow::kafka {

// How a partition's first offset was chosen.
enum class StartReason : std::uint8_t { committed, start_policy, new_partition, gap };

// gone: records that no longer exist (gap before the log's start), 0 when the position lies past
// the end.
struct Start {
  PartitionId partition;
  std::int64_t position = 0;
  std::int64_t end = 0;  // last stable offset when asked
  std::optional<std::int64_t> committed = std::nullopt;
  StartReason reason = StartReason::committed;
  std::int64_t log_start = 0;
  std::int64_t gone = 0;
};

// What is known of the partitions: the group's positions of all partitions of their topics, and the
// edges.
struct Known {
  Offsets committed;
  Offsets starts;
  Offsets ends;
};

// Decides. Shape: no state but the client; `first_topics`: the topics that were there when this
// process opened, where `latest` may apply. Errors: setup with code "gap" or "no_position"; the
// client's.
class StartRule {
 public:
  StartRule(Client& client, const KafkaSourceSpec& spec, std::set<std::string> first_topics)
      : client_(&client), spec_(&spec), first_topics_(std::move(first_topics)) {}

  Result<std::vector<Start>> decide(const std::vector<PartitionId>& partitions) const;
  // A position that the broker said is out of range.
  Result<Start> out_of_range(const PartitionId& partition, std::int64_t position) const;

 private:
  Result<Known> look(const std::vector<PartitionId>& partitions) const;
  Result<Start> without_position(Start start, const Known& known) const;
  Result<Start> with_position(Start start, std::int64_t committed) const;
  Result<Start> gap(Start start, std::int64_t position) const;
  Result<std::int64_t> high_watermark(const PartitionId& partition) const;

  Client* client_;
  const KafkaSourceSpec* spec_;
  std::set<std::string> first_topics_;
};

// For topics where the group has no position at all and `start` is latest: commits the ends of all
// their partitions, so that they do not move with a restart and that a partition which appears
// later is known to be new. outsider: before joining; a group that has members refuses it, and they
// settle it. member: after.
enum class SettleAs : std::uint8_t { outsider, member };
Result<void> settle_latest(Client& client, const KafkaSourceSpec& spec,
                           const std::vector<PartitionId>& partitions, SettleAs as);

}  // namespace flow::kafka
