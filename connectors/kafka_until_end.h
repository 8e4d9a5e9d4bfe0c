#pragma once
// When a bounded run is finished: every partition that had records at the start has been read to
// where it ended then, here or by another member of the group.
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "connectors/kafka_client.h"

namespace flow::kafka {

// Units: offsets. Threads: any.
class UntilEnd {
 public:
  // `end`: the last stable offset when the run began; `position`: where reading starts. A partition
  // that is there already stays as it is.
  void add(const PartitionId& partition, std::int64_t position, std::int64_t end);
  // Where reading of this partition stops; nullopt: it was not there at the start.
  std::optional<std::int64_t> end_of(const PartitionId& partition) const;
  // How far a partition has got: read here, or committed by whoever has it.
  void position(const PartitionId& partition, std::int64_t next);
  // Another member has it now: only what was committed counts.
  void released(const PartitionId& partition, std::int64_t committed);
  std::vector<PartitionId> unfinished() const;
  bool finished() const;
  std::uint64_t total() const;  // offsets from the start positions to the ends
  std::uint64_t done() const;

 private:
  struct Goal {
    std::int64_t from = 0;
    std::int64_t next = 0;
    std::int64_t end = 0;
  };
  mutable std::mutex mutex_;
  std::map<PartitionId, Goal> goals_;
};

}  // namespace flow::kafka
