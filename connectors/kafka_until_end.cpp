#include "connectors/kafka_until_end.h"

#include <algorithm>

namespace flow::kafka {

void UntilEnd::add(const PartitionId& partition, std::int64_t position, std::int64_t end) {
  const std::scoped_lock lock(mutex_);
  goals_.try_emplace(partition, Goal{position, position, std::max(position, end)});
}

std::optional<std::int64_t> UntilEnd::end_of(const PartitionId& partition) const {
  const std::scoped_lock lock(mutex_);
  const auto at = goals_.find(partition);
  if (at == goals_.end()) return std::nullopt;
  return at->second.end;
}

void UntilEnd::position(const PartitionId& partition, std::int64_t next) {
  const std::scoped_lock lock(mutex_);
  const auto at = goals_.find(partition);
  if (at != goals_.end()) at->second.next = next;
}

void UntilEnd::released(const PartitionId& partition, std::int64_t committed) {
  const std::scoped_lock lock(mutex_);
  const auto at = goals_.find(partition);
  if (at != goals_.end()) at->second.next = std::max(at->second.from, committed);
}

std::vector<PartitionId> UntilEnd::unfinished() const {
  const std::scoped_lock lock(mutex_);
  std::vector<PartitionId> open;
  for (const auto& [id, goal] : goals_) {
    if (goal.next < goal.end) open.push_back(id);
  }
  return open;
}

bool UntilEnd::finished() const {
  const std::scoped_lock lock(mutex_);
  return std::all_of(goals_.begin(), goals_.end(),
                     [](const auto& entry) { return entry.second.next >= entry.second.end; });
}

std::uint64_t UntilEnd::total() const {
  const std::scoped_lock lock(mutex_);
  std::int64_t sum = 0;
  for (const auto& [id, goal] : goals_) sum += goal.end - goal.from;
  return static_cast<std::uint64_t>(sum);
}

std::uint64_t UntilEnd::done() const {
  const std::scoped_lock lock(mutex_);
  std::int64_t sum = 0;
  for (const auto& [id, goal] : goals_)
    sum += std::clamp(goal.next, goal.from, goal.end) - goal.from;
  return static_cast<std::uint64_t>(sum);
}

}  // namespace flow::kafka
