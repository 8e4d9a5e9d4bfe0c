#include "core/cast_number.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>

namespace flow {

namespace {

constexpr std::int32_t exponent_max = 1'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view text, std::size_t& at) {
  const std::size_t first = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(first, at - first);
}

// The digits of whole and fraction as one row, and where its decimal point is: value = 0.d0d1d2...
// x 10^point
struct Digits {
  std::string_view whole;
  std::string_view fraction;
  std::int64_t point = 0;

  explicit Digits(const Number& n)
      : whole(n.whole),
        fraction(n.fraction),
        point(static_cast<std::int64_t>(n.whole.size()) + n.exponent) {
    while (!whole.empty() && whole.front() == '0') {
      whole.remove_prefix(1);
      --point;
    }
    if (!whole.empty()) return;
    while (!fraction.empty() && fraction.front() == '0') {
      fraction.remove_prefix(1);
      --point;
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(whole.size() + fraction.size()); }
  char at(std::int64_t i) const {
    if (i < 0 || i >= count()) return '0';
    const auto u = static_cast<std::size_t>(i);
    return u < whole.size() ? whole[u] : fraction[u - whole.size()];
  }
  bool zero() const { return count() == 0; }
  // Digits up to the last one that is not zero.
  std::int64_t significant() const {
    std::int64_t n = count();
    while (n > 0 && at(n - 1) == '0') --n;
    return n;
  }
};

template <class Float>
std::optional<Float> nearest(const Number& number, std::string_view text) {
  if (text.front() == '+') text.remove_prefix(1);
  Float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return value;
  if (Digits(number).point > 0) return std::nullopt;
  return number.negative ? -Float{0} : Float{0};
}

}  // namespace

std::optional<Number> parse_number(std::string_view text) {
  Number n;
  std::size_t at = 0;
  n.plain = true;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    n.negative = text[0] == '-';
    n.plain = n.negative;
    at = 1;
  }
  n.whole = take_digits(text, at);
  if (n.whole.empty()) return std::nullopt;
  if (n.whole.front() == '0' && (n.whole.size() > 1 || n.negative)) n.plain = false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    n.fraction = take_digits(text, at);
    if (n.fraction.empty()) return std::nullopt;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    n.plain = false;
    const bool down = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const std::string_view digits = take_digits(text, at);
    if (digits.empty()) return std::nullopt;
    for (const char c : digits) n.exponent = std::min(n.exponent * 10 + (c - '0'), exponent_max);
    if (down) n.exponent = -n.exponent;
  }
  if (at != text.size()) return std::nullopt;
  return n;
}

Exactness to_int64(const Number& number, int power, std::int64_t& out) {
  const Digits digits(number);
  out = 0;
  if (digits.zero()) return Exactness::exact;
  const std::int64_t point = digits.point + power;
  if (digits.significant() > point) return Exactness::has_fraction;
  if (point > 19) return Exactness::out_of_range;
  std::uint64_t magnitude = 0;  // 19 digits fit
  for (std::int64_t i = 0; i < point; ++i) {
    magnitude = magnitude * 10 + static_cast<std::uint64_t>(digits.at(i) - '0');
  }
  constexpr auto top = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (magnitude > top + (number.negative ? 1 : 0)) return Exactness::out_of_range;
  out = static_cast<std::int64_t>(number.negative ? 0 - magnitude : magnitude);
  return Exactness::exact;
}

DecimalFault plain_decimal(const Number& number, std::string_view text, const Limits& limits,
                           Arena& arena, std::string_view& out) {
  const Digits digits(number);
  const bool limited = limits.precision > 0;
  const std::int64_t point = digits.zero() ? 0 : digits.point;
  std::int64_t decimals = digits.zero() && number.exponent != 0
                              ? 0
                              : static_cast<std::int64_t>(number.fraction.size()) - number.exponent;
  decimals = std::max<std::int64_t>(decimals, 0);
  const std::int64_t needed = std::max<std::int64_t>(digits.significant() - point, 0);
  if (limited && !digits.zero()) {
    if (needed > limits.scale) return DecimalFault::scale;
    if (point + limits.scale > limits.precision) return DecimalFault::precision;
  }
  if (limited) decimals = std::min<std::int64_t>(decimals, std::max(limits.scale, 0));
  const std::int64_t whole = std::max<std::int64_t>(point, 1);
  if (whole + decimals > static_cast<std::int64_t>(decimal_digits_max)) return DecimalFault::digits;
  if (number.plain && decimals == static_cast<std::int64_t>(number.fraction.size())) {
    out = text;
    return DecimalFault::none;
  }
  char* const first = arena.allocate(static_cast<std::size_t>(whole + decimals) + 2);
  char* at = first;
  if (number.negative && !digits.zero()) *at++ = '-';
  if (point <= 0) *at++ = '0';
  for (std::int64_t i = 0; i < point; ++i) *at++ = digits.at(i);
  if (decimals > 0) *at++ = '.';
  for (std::int64_t i = 0; i < decimals; ++i) *at++ = digits.at(point + i);
  out = {first, static_cast<std::size_t>(at - first)};
  return DecimalFault::none;
}

std::optional<double> nearest_float64(const Number& number, std::string_view text) {
  return nearest<double>(number, text);
}

std::optional<float> nearest_float32(const Number& number, std::string_view text) {
  return nearest<float>(number, text);
}

std::string_view int64_text(std::int64_t i, Arena& arena) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, i).ptr;
  return arena.copy({digits, static_cast<std::size_t>(end - digits)});
}

std::string_view float64_text(double d, Arena& arena) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, d).ptr;
  return arena.copy({digits, static_cast<std::size_t>(end - digits)});
}

}  // namespace flow
