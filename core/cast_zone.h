#pragma once
// Time zones: fixed offsets, and IANA zones from the system's /usr/share/zoneinfo (package tzdata).
// Neither the TZ variable nor the C library's zone state is read.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// When summer time begins or ends, as a POSIX TZ rule says it. Units: seconds of local time after
// midnight.
struct YearlyDay {
  enum class Form : std::uint8_t { month_week_day, julian, zero_based };
  Form form = Form::month_week_day;
  int month = 0;
  int week = 0;
  int day = 0;
  int seconds = 7200;
};

// What holds after the last listed transition. Units: seconds east of UTC.
struct ZoneRule {
  int standard = 0;
  bool has_summer = false;
  int summer = 0;
  YearlyDay summer_starts;
  YearlyDay summer_ends;
};

// One zone. Units: seconds since the Unix epoch, seconds east of UTC. Threads: any (immutable).
class Zone {
 public:
  // "UTC", "Z", "+05:30", "Europe/Paris"; each zone is read once in a process. nullptr: no such
  // zone.
  static std::shared_ptr<const Zone> named(const std::string& name);

  std::int64_t offset_at(std::int64_t instant) const;
  // The instant at which clocks show `local`; nullopt when they skip it (summer time begins). A
  // time that they show twice (summer time ends) is the first of the two.
  std::optional<std::int64_t> instant_of(std::int64_t local) const;

 private:
  static std::shared_ptr<const Zone> load(const std::string& name);
  bool read(std::string_view file);

  std::vector<std::int64_t> changes_;  // instants, ascending
  std::vector<std::int32_t> offsets_;  // offsets_[i]: from changes_[i] on
  std::int64_t first_offset_ = 0;      // before changes_[0]
  std::optional<ZoneRule> rule_;       // after the last change
};

// "EST5EDT,M3.2.0,M11.1.0"; nullopt: not of that form.
std::optional<ZoneRule> parse_zone_rule(std::string_view text);

// [+-]hh[:mm] or [+-]hhmm, the whole of `text`. Units: seconds east of UTC.
std::optional<int> parse_utc_offset(std::string_view text);

}  // namespace flow
