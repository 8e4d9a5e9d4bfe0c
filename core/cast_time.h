#pragma once
// Dates and times of day as text (RFC 3339) and as numbers. Years 0001 to 9999. Threads: any.
#include <cstdint>
#include <string>
#include <string_view>

namespace flow {

constexpr std::int64_t second_us = 1'000'000;

// 0001-01-01 to 9999-12-31, microseconds.
constexpr std::int64_t timestamp_min_us = -62'135'596'800 * second_us;
constexpr std::int64_t timestamp_max_us = 253'402'300'800 * second_us - 1;

// A time as text says it. Units: microseconds since 1970 on the clock that the text shows; seconds
// east of UTC.
struct WrittenTime {
  std::int64_t local_us = 0;
  bool has_offset = false;
  int offset_s = 0;
};

// nullptr: read. Else what is wrong with the text, in words that follow "text ...".
const char* parse_time(std::string_view text, WrittenTime& out);
const char* parse_date(std::string_view text, std::int64_t& days);

void append_date(std::string& out, std::int64_t days);  // 2024-03-10
// 2024-03-10T02:30:00, with a fraction when there is one. An instant gets a Z.
void append_timestamp(std::string& out, std::int64_t us);
void append_instant(std::string& out, std::int64_t us);

}  // namespace flow
