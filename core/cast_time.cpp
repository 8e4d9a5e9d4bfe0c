#include "core/cast_time.h"

#include <chrono>

#include "core/cast_zone.h"

namespace flow {

namespace {

constexpr std::int64_t day_seconds = 86'400;
constexpr std::size_t date_size = 10;     // 2024-03-10
constexpr std::size_t seconds_size = 19;  // 2024-03-10T02:30:00
constexpr const char* not_a_date = "is not a date of the form 2024-12-31";
constexpr const char* not_a_time = "is not a time of the form 2024-12-31T23:59:59Z";

// Value of two digits at p; beyond 99 when they are not digits.
unsigned two(const char* p) {
  const auto high = static_cast<unsigned>(static_cast<unsigned char>(p[0])) - '0';
  const auto low = static_cast<unsigned>(static_cast<unsigned char>(p[1])) - '0';
  return high > 9 || low > 9 ? 1000 : high * 10 + low;
}

const char* date_at(const char* p, std::int64_t& days) {
  using namespace std::chrono;
  const unsigned century = two(p);
  const unsigned rest = two(p + 2);
  const unsigned m = two(p + 5);
  const unsigned d = two(p + 8);
  if (p[4] != '-' || p[7] != '-' || century > 99 || rest > 99 || m > 99 || d > 99)
    return not_a_date;
  const unsigned y = century * 100 + rest;
  if (y == 0) return "is not a date: there is no year 0";
  const year_month_day date{year{static_cast<int>(y)}, month{m}, day{d}};
  if (!date.ok()) return "is not a date: no such day";
  days = sys_days{date}.time_since_epoch().count();
  return nullptr;
}

// Digits after the point; `text` starts behind it and is cut to what follows.
const char* fraction_us(std::string_view& text, std::int64_t& us) {
  std::int64_t unit = second_us;
  std::size_t n = 0;
  for (; n < text.size() && text[n] >= '0' && text[n] <= '9'; ++n) {
    unit /= 10;
    if (unit == 0 && text[n] != '0') return "is finer than a microsecond";
    us += unit * (text[n] - '0');
  }
  text.remove_prefix(n);
  return n == 0 ? not_a_time : nullptr;
}

void append_two(std::string& out, std::int64_t n) {
  out.push_back(static_cast<char>('0' + n / 10));
  out.push_back(static_cast<char>('0' + n % 10));
}

}  // namespace

const char* parse_date(std::string_view text, std::int64_t& days) {
  return text.size() == date_size ? date_at(text.data(), days) : not_a_date;
}

const char* parse_time(std::string_view text, WrittenTime& out) {
  if (text.size() < seconds_size) return not_a_time;
  const char* const p = text.data();
  std::int64_t days = 0;
  if (const char* fault = date_at(p, days)) return fault == not_a_date ? not_a_time : fault;
  const unsigned h = two(p + 11);
  const unsigned m = two(p + 14);
  const unsigned s = two(p + 17);
  const bool separated = p[10] == 'T' || p[10] == 't' || p[10] == ' ';
  if (!separated || p[13] != ':' || p[16] != ':' || h > 99 || m > 99 || s > 99) return not_a_time;
  if (s == 60 && m == 59) return "is a leap second";
  if (h > 23 || m > 59 || s > 59) return "is not a time of day";
  out.local_us = (days * day_seconds + h * 3600 + m * 60 + s) * second_us;
  std::string_view rest = text.substr(seconds_size);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    if (const char* fault = fraction_us(rest, out.local_us)) return fault;
  }
  out.has_offset = !rest.empty();
  out.offset_s = 0;
  if (rest.empty() || rest == "Z" || rest == "z") return nullptr;
  const auto offset = parse_utc_offset(rest);
  if (!offset) return not_a_time;
  out.offset_s = *offset;
  return nullptr;
}

void append_date(std::string& out, std::int64_t days) {
  using namespace std::chrono;
  const year_month_day date{sys_days{std::chrono::days{days}}};
  const int y = static_cast<int>(date.year());
  append_two(out, y / 100);
  append_two(out, y % 100);
  out.push_back('-');
  append_two(out, static_cast<unsigned>(date.month()));
  out.push_back('-');
  append_two(out, static_cast<unsigned>(date.day()));
}

void append_timestamp(std::string& out, std::int64_t us) {
  std::int64_t seconds = us / second_us;
  std::int64_t fraction = us % second_us;
  if (fraction < 0) {
    fraction += second_us;
    --seconds;
  }
  std::int64_t days = seconds / day_seconds;
  std::int64_t time = seconds % day_seconds;
  if (time < 0) {
    time += day_seconds;
    --days;
  }
  append_date(out, days);
  out.push_back('T');
  append_two(out, time / 3600);
  out.push_back(':');
  append_two(out, time / 60 % 60);
  out.push_back(':');
  append_two(out, time % 60);
  if (fraction == 0) return;
  out.push_back('.');
  for (std::int64_t unit = second_us / 10; fraction > 0; unit /= 10) {
    out.push_back(static_cast<char>('0' + fraction / unit));
    fraction %= unit;
  }
}

void append_instant(std::string& out, std::int64_t us) {
  append_timestamp(out, us);
  out.push_back('Z');
}

}  // namespace flow
