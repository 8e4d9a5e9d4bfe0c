#pragma once
// Time, for people and for waiting. Wall clock in milliseconds since the Unix epoch; waiting by the
// monotonic clock.
#include <chrono>
#include <cstdint>
#include <string>

namespace flow {

using Monotonic = std::chrono::steady_clock;

std::int64_t wall_ms();
std::string rfc3339(std::int64_t ms);  // 2026-01-31T09:30:00.123Z

}  // namespace flow
