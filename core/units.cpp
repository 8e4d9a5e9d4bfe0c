#include "core/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

namespace flow {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

// Largest first.
constexpr std::array<Unit, 5> duration_units{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr std::array<Unit, 9> size_units{{{"TiB", std::int64_t{1} << 40},
                                          {"TB", 1'000'000'000'000},
                                          {"GiB", std::int64_t{1} << 30},
                                          {"GB", 1'000'000'000},
                                          {"MiB", std::int64_t{1} << 20},
                                          {"MB", 1'000'000},
                                          {"KiB", std::int64_t{1} << 10},
                                          {"kB", 1'000},
                                          {"B", 1}}};

Failure wrong(std::string what, std::string hint) {
  return {FailureClass::setup, Effect::none, "", "", std::move(what), std::move(hint), {}};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// A whole number and the letters behind it, taken off the front of `text`.
struct Term {
  std::int64_t count = 0;
  std::string_view unit;
};

std::optional<Term> take_term(std::string_view& text) {
  Term term;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), term.count);
  if (error != std::errc{} || !is_digit(text.front())) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  const auto letters = static_cast<std::size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return is_digit(c); }) - text.begin());
  term.unit = text.substr(0, letters);
  text.remove_prefix(letters);
  return term;
}

bool multiply_add(std::int64_t& total, std::int64_t count, std::int64_t factor) {
  std::int64_t part = 0;
  return !__builtin_mul_overflow(count, factor, &part) &&
         !__builtin_add_overflow(total, part, &total);
}

// What a size unit that is not ours was probably meant to be.
std::string size_unit_like(std::string_view unit) {
  const std::string low = lower(unit);
  for (const Unit& known : size_units) {
    if (lower(known.name) == low || lower(known.name).substr(0, 1) == low) {
      return std::string(known.name);
    }
  }
  return "";
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  static const std::string hint =
      "write a number and a unit (ms, s, m, h, d), as in 500ms or 1h30m";
  if (text.empty()) return wrong("is empty where a duration is needed", hint);
  const std::string whole(text);
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  while (!text.empty()) {
    const auto term = take_term(text);
    if (!term) return wrong("\"" + whole + "\" is not a duration", hint);
    if (term->unit.empty()) {
      return wrong("\"" + whole + "\" has no unit", "write " + whole + "ms, " + whole + "s, " +
                                                        whole + "m, " + whole + "h or " + whole +
                                                        "d");
    }
    const auto unit = std::find_if(duration_units.begin(), duration_units.end(),
                                   [&](const Unit& u) { return u.name == term->unit; });
    if (unit == duration_units.end()) {
      return wrong("\"" + whole + "\" is not a duration: no unit is called \"" +
                       std::string(term->unit) + "\"",
                   hint);
    }
    const auto index = static_cast<std::size_t>(unit - duration_units.begin());
    if (index < next_unit) return wrong("\"" + whole + "\" has its units out of order", hint);
    next_unit = index + 1;
    if (!multiply_add(total, term->count, unit->factor)) {
      return wrong("\"" + whole + "\" is too long", "write a shorter duration");
    }
  }
  return Millis(total);
}

std::string format_duration(Millis duration) {
  std::int64_t rest = duration.count();
  if (rest == 0) return "0ms";
  std::string out;
  for (const Unit& unit : duration_units) {
    if (rest / unit.factor == 0) continue;
    out += std::to_string(rest / unit.factor) + std::string(unit.name);
    rest %= unit.factor;
  }
  return out;
}

Result<std::int64_t> parse_size(std::string_view text) {
  static const std::string hint = "write bytes, or a number and a unit (kB, MB, GB, KiB, MiB, GiB)";
  if (text.empty()) return wrong("is empty where a size is needed", hint);
  const std::string whole(text);
  const auto term = take_term(text);
  if (!term || !text.empty()) return wrong("\"" + whole + "\" is not a size", hint);
  if (term->unit.empty()) return term->count;
  const auto unit = std::find_if(size_units.begin(), size_units.end(),
                                 [&](const Unit& u) { return u.name == term->unit; });
  if (unit == size_units.end()) {
    const std::string like = size_unit_like(term->unit);
    return wrong(
        "\"" + whole + "\" is not a size: no unit is called \"" + std::string(term->unit) + "\"",
        like.empty() ? hint : "did you mean " + std::to_string(term->count) + like + "?");
  }
  std::int64_t total = 0;
  if (!multiply_add(total, term->count, unit->factor)) {
    return wrong("\"" + whole + "\" is too large", "write a smaller size");
  }
  return total;
}

std::string format_size(std::int64_t bytes) {
  for (const Unit& unit : size_units) {
    if (unit.factor > 1 && bytes != 0 && bytes % unit.factor == 0) {
      return std::to_string(bytes / unit.factor) + std::string(unit.name);
    }
  }
  return std::to_string(bytes);
}

}  // namespace flow
