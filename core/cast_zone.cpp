#include "core/cast_zone.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <system_error>

namespace flow {

namespace {

constexpr std::int64_t day_seconds = 86'400;
constexpr std::string_view directory = "/usr/share/zoneinfo/";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::int64_t big_endian(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value =
      (static_cast<unsigned char>(bytes[at]) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
  for (std::size_t i = 0; i < width; ++i) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return static_cast<std::int64_t>(value);
}

bool safe_name(const std::string& name) {
  if (name.empty() || name.size() > 64 || name.front() == '/' || name.find("..") != name.npos) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  });
}

// Local midnight of the rule's day in `year`, plus its seconds: seconds since 1970 on the local
// clock.
std::int64_t local_change(const YearlyDay& rule, int year) {
  using namespace std::chrono;
  const std::chrono::year y{year};
  sys_days day = sys_days{y / January / 1};
  switch (rule.form) {
    case YearlyDay::Form::month_week_day: {
      const month m{static_cast<unsigned>(rule.month)};
      const weekday w{static_cast<unsigned>(rule.day)};
      day = rule.week == 5 ? sys_days{y / m / w[last]}
                           : sys_days{y / m / w[static_cast<unsigned>(rule.week)]};
      break;
    }
    case YearlyDay::Form::julian:  // 1..365, February 29 is never counted
      day += days{rule.day - 1 + (y.is_leap() && rule.day >= 60 ? 1 : 0)};
      break;
    case YearlyDay::Form::zero_based: day += days{rule.day}; break;
  }
  return day.time_since_epoch().count() * day_seconds + rule.seconds;
}

std::int64_t offset_by_rule(const ZoneRule& rule, std::int64_t instant) {
  if (!rule.has_summer) return rule.standard;
  using namespace std::chrono;
  const std::int64_t local = instant + rule.standard;
  const sys_days day{days{(local >= 0 ? local : local - day_seconds + 1) / day_seconds}};
  const int year = static_cast<int>(year_month_day{day}.year());
  const std::int64_t starts = local_change(rule.summer_starts, year) - rule.standard;
  const std::int64_t ends = local_change(rule.summer_ends, year) - rule.summer;
  const bool summer =
      starts < ends ? instant >= starts && instant < ends : instant >= starts || instant < ends;
  return summer ? rule.summer : rule.standard;
}

// Reads a POSIX TZ rule from the left.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}
  bool done() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool name() {
    const bool quoted = take('<');
    std::size_t n = 0;
    while (n < text_.size() && (quoted ? text_[n] != '>' : is_letter(text_[n]))) ++n;
    text_.remove_prefix(n);
    return n >= 3 && (!quoted || take('>'));
  }
  bool number(int& out, int most) {
    out = 0;
    std::size_t n = 0;
    while (n < text_.size() && n < 4 && is_digit(text_[n])) out = out * 10 + (text_[n++] - '0');
    text_.remove_prefix(n);
    return n > 0 && out <= most;
  }
  bool time(int& seconds) {
    const int sign = take('-') ? -1 : 1;
    if (sign == 1) take('+');
    int h = 0;
    int m = 0;
    int s = 0;
    if (!number(h, 167)) return false;
    if (take(':') && (!number(m, 59) || (take(':') && !number(s, 59)))) return false;
    seconds = sign * (h * 3600 + m * 60 + s);
    return true;
  }
  bool yearly_day(YearlyDay& day) {
    if (take('M')) {
      day.form = YearlyDay::Form::month_week_day;
      if (!number(day.month, 12) || !take('.') || !number(day.week, 5) || !take('.') ||
          !number(day.day, 6) || day.month < 1 || day.week < 1) {
        return false;
      }
    } else {
      day.form = take('J') ? YearlyDay::Form::julian : YearlyDay::Form::zero_based;
      if (!number(day.day, 365)) return false;
    }
    return !take('/') || time(day.seconds);
  }

 private:
  static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
  std::string_view text_;
};

// The counts of a TZif header (RFC 8536).
struct TzifHeader {
  static constexpr std::size_t bytes = 44;
  std::size_t isut, isstd, leap, times, types, chars;

  static std::optional<TzifHeader> at(std::string_view file) {
    if (file.size() < bytes || file.substr(0, 4) != "TZif") return std::nullopt;
    std::array<std::size_t, 6> n{};
    for (std::size_t i = 0; i < n.size(); ++i) {
      const std::int64_t count = big_endian(file, 20 + i * 4, 4);
      if (count < 0 || count > 1'000'000) return std::nullopt;
      n[i] = static_cast<std::size_t>(count);
    }
    return TzifHeader{n[0], n[1], n[2], n[3], n[4], n[5]};
  }
  std::size_t body(std::size_t time_bytes) const {
    return times * time_bytes + times + types * 6 + chars + leap * (time_bytes + 4) + isstd + isut;
  }
};

}  // namespace

std::optional<ZoneRule> parse_zone_rule(std::string_view text) {
  RuleReader reader(text);
  ZoneRule rule;
  int west = 0;
  if (!reader.name() || !reader.time(west)) return std::nullopt;
  rule.standard = -west;
  if (reader.done()) return rule;
  rule.has_summer = true;
  rule.summer = rule.standard + 3600;
  if (!reader.name()) return std::nullopt;
  if (!reader.take(',')) {
    if (!reader.time(west) || !reader.take(',')) return std::nullopt;
    rule.summer = -west;
  }
  if (!reader.yearly_day(rule.summer_starts) || !reader.take(',') ||
      !reader.yearly_day(rule.summer_ends) || !reader.done()) {
    return std::nullopt;
  }
  return rule;
}

std::optional<int> parse_utc_offset(std::string_view text) {
  if (text.size() < 3 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const bool colon = text.size() == 6 && text[3] == ':';
  if (text.size() != 3 && text.size() != 5 && !colon) return std::nullopt;
  std::array<int, 4> digits{};
  std::size_t n = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (colon && i == 3) continue;
    if (!is_digit(text[i])) return std::nullopt;
    digits[n++] = text[i] - '0';
  }
  const int hours = digits[0] * 10 + digits[1];
  const int minutes = digits[2] * 10 + digits[3];
  if (hours > 23 || minutes > 59) return std::nullopt;
  const int seconds = hours * 3600 + minutes * 60;
  return text[0] == '-' ? -seconds : seconds;
}

bool Zone::read(std::string_view file) {
  auto header = TzifHeader::at(file);
  if (!header) return false;
  std::size_t width = 4;
  if (file[4] >= '2') {  // the second block has 64-bit times
    const std::size_t skip = TzifHeader::bytes + header->body(4);
    if (file.size() < skip) return false;
    file.remove_prefix(skip);
    header = TzifHeader::at(file);
    if (!header) return false;
    width = 8;
  }
  file.remove_prefix(TzifHeader::bytes);
  if (file.size() < header->body(width) || header->types == 0) return false;
  const std::size_t indexes = header->times * width;
  const std::size_t types = indexes + header->times;
  const auto offset_of = [&](std::size_t type) {
    return static_cast<std::int32_t>(big_endian(file, types + type * 6, 4));
  };
  first_offset_ = offset_of(0);
  for (std::size_t i = 0; i < header->times; ++i) {
    const auto type = static_cast<unsigned char>(file[indexes + i]);
    if (type >= header->types) return false;
    changes_.push_back(big_endian(file, i * width, width));
    offsets_.push_back(offset_of(type));
  }
  if (!std::is_sorted(changes_.begin(), changes_.end())) return false;
  std::string_view footer = file.substr(header->body(width));
  if (width == 4 || footer.size() < 2 || footer.front() != '\n') return true;
  footer = footer.substr(1, footer.find('\n', 1) - 1);
  if (footer.empty()) return true;
  rule_ = parse_zone_rule(footer);
  return rule_.has_value();
}

std::shared_ptr<const Zone> Zone::load(const std::string& name) {
  auto zone = std::make_shared<Zone>();
  if (name == "UTC" || name == "Z") return zone;
  if (const auto offset = parse_utc_offset(name)) {
    zone->first_offset_ = *offset;
    return zone;
  }
  if (!safe_name(name)) return nullptr;
  const std::string path = std::string(directory) + name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return nullptr;
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return in && zone->read(file) ? zone : nullptr;
}

std::shared_ptr<const Zone> Zone::named(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Zone>> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  auto zone = load(name);
  if (zone) known.emplace(name, zone);
  return zone;
}

std::int64_t Zone::offset_at(std::int64_t instant) const {
  if (changes_.empty() || instant < changes_.front()) {
    return changes_.empty() && rule_ ? offset_by_rule(*rule_, instant) : first_offset_;
  }
  if (instant >= changes_.back()) {
    return rule_ ? offset_by_rule(*rule_, instant) : offsets_.back();
  }
  const auto next = std::upper_bound(changes_.begin(), changes_.end(), instant);
  return offsets_[static_cast<std::size_t>(next - changes_.begin()) - 1];
}

std::optional<std::int64_t> Zone::instant_of(std::int64_t local) const {
  // Offsets are within a day, so the offset in force is one of those a day before and a day after.
  std::optional<std::int64_t> first;
  for (const std::int64_t near : {local - day_seconds, local, local + day_seconds}) {
    const std::int64_t instant = local - offset_at(near);
    if (instant + offset_at(instant) != local) continue;
    if (!first || instant < *first) first = instant;
  }
  return first;
}

}  // namespace flow
