#pragma once
// Numbers as their digits, so that nothing passes through a double that need not. Threads: any.
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/batch.h"
#include "core/column.h"

namespace flow {

// A number taken apart: [sign] whole [. fraction] [e exponent]. Borrows the text. The exponent is
// clamped to
// +-1,000,000, far beyond what any rule below lets through.
struct Number {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::int32_t exponent = 0;
  bool plain = false;  // the text is already in the form that plain_decimal() gives
};

// Digits are needed before the point and, with a point, after it; a sign and leading zeros are
// fine. No spaces, no NaN, no infinity.
std::optional<Number> parse_number(std::string_view text);

enum class Exactness : std::uint8_t { exact, has_fraction, out_of_range };

// number x 10^power as an int64, if it is one.
Exactness to_int64(const Number& number, int power, std::int64_t& out);

enum class DecimalFault : std::uint8_t { none, scale, precision, digits };
constexpr std::size_t decimal_digits_max = 1000;

// The number without exponent, sign of zero, plus sign or leading zeros, zeros beyond the scale cut
// off. `text` is returned as it stands when it has that form. Digits in all: at most
// decimal_digits_max.
DecimalFault plain_decimal(const Number& number, std::string_view text, const Limits& limits,
                           Arena& arena, std::string_view& out);

// Nearest double or float; nullopt: too large. What is too small becomes zero.
std::optional<double> nearest_float64(const Number& number, std::string_view text);
std::optional<float> nearest_float32(const Number& number, std::string_view text);

// Decimal digits of an integer, in the arena.
std::string_view int64_text(std::int64_t i, Arena& arena);
// Shortest digits that read back as the same double.
std::string_view float64_text(double d, Arena& arena);

}  // namespace flow
