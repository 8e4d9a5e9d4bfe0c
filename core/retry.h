#pragma once
// Retry of transient failures: exponential backoff with full jitter, a budget by time, and few log
// lines.
#include <optional>
#include <random>
#include <string>

#include "core/clock.h"
#include "core/pipeline.h"
#include "core/ports.h"

namespace flow {

// One step that may have to be tried again ("write to postgres public.orders"). Owner: the step's
// caller. Threads: one. Logs retry.started at the first failure, retry.waiting each minute,
// retry.ended when it works again. Units: milliseconds.
class Retry {
 public:
  Retry(const RetrySpec& spec, Log& log, std::string step);
  // After a failure: how long to wait before the next attempt, at least as long as the other side
  // asked; nullopt when the budget is used up.
  std::optional<Millis> failed(const Failure& failure);
  void succeeded();
  bool active() const { return attempts_ > 0; }
  std::uint64_t attempts() const { return attempts_; }

 private:
  const RetrySpec& spec_;
  Log& log_;
  std::string step_;
  std::uint64_t attempts_ = 0;
  Monotonic::time_point since_;
  Monotonic::time_point logged_;
  std::minstd_rand random_;
};

}  // namespace flow
