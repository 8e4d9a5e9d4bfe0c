#pragma once
// Durations and sizes as people write them. Every unit is spelled out: a bare number is refused for
// a duration and means bytes for a size. Shape: pure functions.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/pipeline.h"
#include "core/result.h"

namespace flow {

// "500ms", "6h", "1h30m", "1d". Whole numbers of ms, s, m, h, d; units from the largest to the
// smallest. Errors: Failure::what says what is wrong, Failure::hint what to write instead.
Result<Millis> parse_duration(std::string_view text);
std::string format_duration(Millis duration);  // "1h30m"; parse_duration gives the same back

// "8MiB", "10MB", "512" (bytes). kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024.
Result<std::int64_t> parse_size(std::string_view text);
std::string format_size(std::int64_t bytes);  // "8MiB", "10MB" or bytes; exact

}  // namespace flow
