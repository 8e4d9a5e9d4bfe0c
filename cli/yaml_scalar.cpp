#include "cli/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace flow {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <std::size_t N>
bool one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 5> nulls{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 6> booleans{"true",  "True",  "TRUE",
                                                   "false", "False", "FALSE"};
constexpr std::array<std::string_view, 3> nans{".nan", ".NaN", ".NAN"};
constexpr std::array<std::string_view, 3> infinities{".inf", ".Inf", ".INF"};

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text;
}

bool all_digits(std::string_view text, int base) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [base](char c) {
    if (base == 8) return c >= '0' && c <= '7';
    if (base == 10) return is_digit(c);
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

std::size_t take_digits(std::string_view& text) {
  const auto end = std::find_if(text.begin(), text.end(), [](char c) { return !is_digit(c); });
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

// [-+]? ( digits [. digits*] | . digits ) ( e [-+]? digits )?
bool is_real(std::string_view text) {
  text = without_sign(text);
  if (one_of(text, infinities)) return true;
  const std::size_t whole = take_digits(text);
  std::size_t fraction = 0;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole + fraction == 0) return false;
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    text = without_sign(text.substr(1));
    if (take_digits(text) == 0) return false;
  }
  return text.empty();
}

}  // namespace

ScalarKind scalar_kind(std::string_view plain) {
  if (one_of(plain, nulls)) return ScalarKind::null;
  if (one_of(plain, booleans)) return ScalarKind::boolean;
  const bool octal = plain.substr(0, 2) == "0o" && all_digits(plain.substr(2), 8);
  const bool hex = plain.substr(0, 2) == "0x" && all_digits(plain.substr(2), 16);
  if (octal || hex || all_digits(without_sign(plain), 10)) return ScalarKind::integer;
  return is_real(plain) || one_of(plain, nans) ? ScalarKind::real : ScalarKind::text;
}

std::optional<std::int64_t> scalar_integer(std::string_view integer) {
  int base = 10;
  if (integer.substr(0, 2) == "0o") base = 8;
  if (integer.substr(0, 2) == "0x") base = 16;
  std::string_view digits = base == 10 ? integer : integer.substr(2);
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string why_not_integer(std::string_view text) {
  const std::string shown = "\"" + std::string(text) + "\"";
  std::string digits(text);
  digits.erase(
      std::remove_if(digits.begin(), digits.end(), [](char c) { return c == '_' || c == ','; }),
      digits.end());
  if (digits != text && all_digits(without_sign(digits), 10)) {
    return "must be a whole number, " + shown + " is text in YAML; write " + digits;
  }
  if (is_real(text) && text.size() < 32) {
    const double value = std::strtod(std::string(text).c_str(), nullptr);
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
    return "must be a whole number without point or exponent, not " + std::string(text) +
           (whole ? "; write " + std::to_string(static_cast<std::int64_t>(value)) : "");
  }
  return "must be a whole number, not " + shown;
}

}  // namespace flow
