#include "cli/progress.h"

#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include "cli/output.h"
#include "core/units.h"

namespace flow {

std::string progress_text(const LoopProgress& p, double rate, std::optional<double> seconds_left) {
  std::string text = with_separators(static_cast<std::uint64_t>(rate)) + " records/s, " +
                     with_separators(p.read) + " read";
  if (p.source.total && p.source.done && *p.source.total > 0 && p.source.unit == "bytes") {
    text += ", " + std::to_string(*p.source.done * 100 / *p.source.total) + " %";
  }
  if (p.source.lag) text += ", lag " + with_separators(*p.source.lag);
  if (seconds_left && *seconds_left >= 1) {
    text += ", " + format_duration(std::chrono::seconds(static_cast<std::int64_t>(*seconds_left))) +
            " left";
  }
  if (!p.source.waiting_for.empty()) text += "; waiting for " + p.source.waiting_for;
  if (!p.retrying.empty()) text += "; retrying: " + p.retrying;
  return text;
}

ProgressLine::ProgressLine(bool wanted) : on_(false), at_(Monotonic::now()) {
  const char* term = std::getenv("TERM");
  on_ = wanted && isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

void ProgressLine::draw(const LoopProgress& p) {
  const std::scoped_lock lock(mutex_);
  if (!on_) return;
  const auto now = Monotonic::now();
  const double seconds = std::chrono::duration<double>(now - at_).count();
  if (seconds < 0.2) return;
  const double weight = 0.3;
  const auto per_second = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to > from ? to - from : 0) / seconds;
  };
  rate_ += weight * (per_second(read_, p.read) - rate_);
  std::optional<double> left;
  if (p.source.done) {
    done_rate_ += weight * (per_second(done_, *p.source.done) - done_rate_);
    done_ = *p.source.done;
    if (p.source.total && *p.source.total > done_ && done_rate_ > 0) {
      left = static_cast<double>(*p.source.total - done_) / done_rate_;
    }
  } else if (p.source.lag && rate_ > 0) {
    left = static_cast<double>(*p.source.lag) / rate_;
  }
  read_ = p.read;
  at_ = now;
  std::cerr << "\r\x1b[2K" << progress_text(p, rate_, left) << std::flush;
  drawn_ = true;
}

void ProgressLine::wipe() {
  const std::scoped_lock lock(mutex_);
  if (!drawn_) return;
  std::cerr << "\r\x1b[2K" << std::flush;
  drawn_ = false;
}

}  // namespace flow
