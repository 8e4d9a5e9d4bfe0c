#include "core/retry.h"

#include <doctest/doctest.h>

#include "tests/support/memory_parts.h"

using namespace flow;
using namespace flow::test;

TEST_CASE("waits grow by the multiplier up to the longest, with full jitter") {
  RetrySpec spec{.initial = Millis{10}, .max = Millis{80}, .multiplier = 2.0, .for_ = Millis{0}};
  MemoryLog log;
  const Failure failure{.cls = FailureClass::transient, .what = "down"};
  std::vector<Millis> longest(6, Millis{0}), shortest(6, Millis{1'000});
  for (int run = 0; run < 400; ++run) {
    Retry retry(spec, log, "step");
    for (std::size_t i = 0; i < longest.size(); ++i) {
      const Millis wait = *retry.failed(failure);
      longest[i] = std::max(longest[i], wait);
      shortest[i] = std::min(shortest[i], wait);
    }
  }
  const std::vector<Millis> ceiling = {Millis{10}, Millis{20}, Millis{40},
                                       Millis{80}, Millis{80}, Millis{80}};
  for (std::size_t i = 0; i < ceiling.size(); ++i) {
    CHECK(longest[i] <= ceiling[i]);
    CHECK(longest[i] > ceiling[i] / 2);
    CHECK(shortest[i] < ceiling[i] / 2);
  }
}

TEST_CASE("no attempt is made sooner than the other side asked for") {
  RetrySpec spec{.initial = Millis{1}, .max = Millis{2}, .multiplier = 2.0, .for_ = Millis{0}};
  MemoryLog log;
  Retry retry(spec, log, "step");
  Failure failure{.cls = FailureClass::throttled, .what = "slow down"};
  failure.wait_ms = 1'500;
  CHECK(*retry.failed(failure) == Millis{1'500});
}

TEST_CASE("the log says when a retry starts and when it ends, and no line for each attempt") {
  RetrySpec spec;
  MemoryLog log;
  Retry retry(spec, log, "step");
  const Failure failure{.cls = FailureClass::transient, .what = "down"};
  for (int i = 0; i < 100; ++i) CHECK(retry.failed(failure).has_value());
  retry.succeeded();
  CHECK(log.lines() ==
        std::vector<std::string>{"retry.started step=step class=transient error=down",
                                 log.lines().back()});
  CHECK(log.lines().back().starts_with("retry.ended step=step attempts=100 after_ms="));
}
