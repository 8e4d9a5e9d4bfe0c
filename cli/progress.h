#pragma once
// The progress line on a terminal: records/s, total, lag or percent and time left, and what is
// being tried again.
#include <mutex>
#include <string>

#include "core/clock.h"
#include "core/loop.h"

namespace flow {

// Text of one progress line. Shape: pure; rate in records/s over the last seconds.
std::string progress_text(const LoopProgress& progress, double rate,
                          std::optional<double> seconds_left);

// Draws on stderr when it is a terminal that can (not TERM=dumb) and not quiet. Threads: any.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  void draw(const LoopProgress& progress);
  void wipe();

 private:
  std::mutex mutex_;
  bool on_;
  bool drawn_ = false;
  double rate_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t done_ = 0;
  double done_rate_ = 0;
  Monotonic::time_point at_;
};

}  // namespace flow
