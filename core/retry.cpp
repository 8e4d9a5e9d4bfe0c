#include "core/retry.h"

#include <algorithm>
#include <cmath>

namespace flow {

Retry::Retry(const RetrySpec& spec, Log& log, std::string step)
    : spec_(spec), log_(log), step_(std::move(step)), random_(std::random_device{}()) {}

std::optional<Millis> Retry::failed(const Failure& failure) {
  const auto now = Monotonic::now();
  if (attempts_ == 0) {
    since_ = logged_ = now;
    log_.event(
        Level::warn, "retry.started",
        {{"step", step_}, {"class", std::string(name_of(failure.cls))}, {"error", failure.text()}});
  } else if (now - logged_ >= std::chrono::minutes(1)) {
    logged_ = now;
    log_.event(
        Level::warn, "retry.waiting",
        {{"step", step_}, {"attempts", std::to_string(attempts_)}, {"error", failure.text()}});
  }
  ++attempts_;
  const auto spent = std::chrono::duration_cast<Millis>(now - since_);
  if (spec_.for_.count() > 0 && spent >= spec_.for_) return std::nullopt;
  const double ceiling =
      std::min(static_cast<double>(spec_.max.count()),
               static_cast<double>(spec_.initial.count()) *
                   std::pow(spec_.multiplier,
                            static_cast<double>(std::min<std::uint64_t>(attempts_ - 1, 60))));
  std::uniform_int_distribution<std::int64_t> jitter(
      1, std::max<std::int64_t>(1, static_cast<std::int64_t>(ceiling)));
  Millis wait{jitter(random_)};
  if (failure.wait_ms) wait = std::max(wait, Millis{*failure.wait_ms});
  if (spec_.for_.count() > 0) wait = std::min(wait, std::max(Millis{1}, spec_.for_ - spent));
  return wait;
}

void Retry::succeeded() {
  if (attempts_ == 0) return;
  const auto spent = std::chrono::duration_cast<Millis>(Monotonic::now() - since_);
  log_.event(Level::info, "retry.ended",
             {{"step", step_},
              {"attempts", std::to_string(attempts_)},
              {"after_ms", std::to_string(spent.count())}});
  attempts_ = 0;
}

}  // namespace flow
