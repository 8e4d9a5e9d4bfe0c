#pragma once
// Where a drill or a test may stop the world: one list, always compiled in, armed only by the
// explicit flag
// --failure-point. Cost when off: one relaxed load per boundary and batch.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace flow {

// before: nothing has happened yet; torn: a part has; applied: done, the acknowledgement not yet
// seen; after: acknowledged.
enum class Point : std::uint8_t {
  open_run_after,
  read_after,
  decode_after,
  transform_after,
  store_dead_letters_before,
  store_dead_letters_applied,
  store_dead_letters_after,
  apply_to_targets_before,
  target_write_before,
  target_write_torn,
  target_commit_before,
  target_commit_applied,
  target_commit_after,
  store_refused_before,
  store_refused_applied,
  store_refused_after,
  apply_to_targets_after,
  commit_position_before,
  commit_position_applied,
  commit_position_after,
  drain_before,
  close_run_before,
  count_,
};
std::string_view name_of(Point point);  // "apply_to_targets.before"
std::vector<Point> all_points();

namespace failure_point {
extern std::atomic<std::uint32_t> armed;  // bit per point
std::optional<Failure> fire(Point point);
// Arms from text: NAME[@k]=kill|term|error:CLASS  (@k: the k-th time it is reached, default 1).
Result<void> arm(std::string_view text);
}  // namespace failure_point

// Reached: does what is armed. A returned failure is to be treated as if the step had failed that
// way.
inline std::optional<Failure> reach(Point point) {
  if (failure_point::armed.load(std::memory_order_relaxed) == 0) [[likely]]
    return std::nullopt;
  return failure_point::fire(point);
}

}  // namespace flow
