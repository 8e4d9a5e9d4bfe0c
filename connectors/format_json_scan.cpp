#include "connectors/format_json_scan.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <limits>
#include <simdjson.h>

#include "connectors/format_json_string.h"

namespace flow::json {

namespace {

constexpr std::size_t first_capacity = std::size_t{64} << 10;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

const char* digits_end(const char* at, const char* end) {
  while (at < end && is_digit(*at)) ++at;
  return at;
}

// Whether fraction and exponent, what follows the integer part of a number, are well formed up to
// `end`.
bool fraction_and_exponent(const char* at, const char* end) {
  if (at < end && *at == '.') {
    const char* const first = ++at;
    at = digits_end(at, end);
    if (at == first) return false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at < end && (*at == '+' || *at == '-')) ++at;
    const char* const first = at;
    at = digits_end(at, end);
    if (at == first) return false;
  }
  return at == end;
}

std::string_view words(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR: return "it is not valid UTF-8";
    case simdjson::UNCLOSED_STRING: return "a string is not closed";
    case simdjson::UNESCAPED_CHARS: return "a string holds a raw control character";
    case simdjson::EMPTY: return "it is empty";
    default: return simdjson::error_message(error);
  }
}

}  // namespace

Scan::Scan() = default;
Scan::~Scan() = default;

bool Scan::fail(std::string_view what) {
  problem_ = what;
  problem_ += " at byte ";
  problem_ += std::to_string(position() - base_);
  return false;
}

bool Scan::start(std::string_view text) {
  base_ = text.data();
  at_ = count_ = 0;
  size_ = 0;
  if (text.size() > simdjson::SIMDJSON_MAXSIZE_BYTES) return fail("it is larger than 4 GiB");
  if (text.size() > capacity_ || !stage_) {
    capacity_ = std::max({first_capacity, text.size(), capacity_ * 2});
    capacity_ = std::min(capacity_, simdjson::SIMDJSON_MAXSIZE_BYTES);
    const auto error = simdjson::get_active_implementation()->create_dom_parser_implementation(
        capacity_, depth_max, stage_);
    if (error != simdjson::SUCCESS) {
      capacity_ = 0;
      return fail(words(error));
    }
  }
  const auto error = stage_->stage1(reinterpret_cast<const std::uint8_t*>(base_), text.size(),
                                    simdjson::stage1_mode::regular);
  if (error != simdjson::SUCCESS) {
    problem_ = words(error);
    return false;
  }
  size_ = static_cast<std::uint32_t>(text.size());
  index_ = stage_->structural_indexes.get();
  count_ = stage_->n_structural_indexes;
  escapes_ = std::memchr(base_, '\\', size_) != nullptr;
  return true;
}

const char* Scan::token_end() const {
  const char* end = base_ + (at_ + 1 < count_ ? index_[at_ + 1] : size_);
  while (is_space(end[-1])) --end;
  return end;
}

bool Scan::raw_string(std::string_view& raw) {
  const char* const first = position() + 1;
  const char* const end = token_end();
  if (end <= first || end[-1] != '"') return fail("a string is not closed");
  raw = {first, static_cast<std::size_t>(end - first) - 1};
  return true;
}

bool Scan::take_string(Arena& arena, std::string_view& text) {
  if (!raw_string(text)) return false;
  if (escapes_ && text.find('\\') != std::string_view::npos && !unescape(text, arena, text)) {
    return fail("a string holds a bad escape or a lone surrogate");
  }
  advance();
  return true;
}

bool Scan::take_number(Value& value) {
  const char* const first = position();
  const char* const end = token_end();
  const bool negative = *first == '-';
  const char* at = first + (negative ? 1 : 0);
  const char* const whole = at;
  std::uint64_t magnitude = 0;
  while (at < end && is_digit(*at))
    magnitude = magnitude * 10 + static_cast<std::uint64_t>(*at++ - '0');
  const auto digits = at - whole;
  if (digits == 0 || (*whole == '0' && digits > 1)) return fail("not a number");
  constexpr auto top = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (at == end && digits <= 19 && magnitude <= top + (negative ? 1 : 0)) {
    value = Value::int64(static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude));
  } else if (fraction_and_exponent(at, end)) {
    value = Value::text({first, static_cast<std::size_t>(end - first)}, Kind::decimal);
  } else {
    return fail("not a number");
  }
  advance();
  return true;
}

bool Scan::take_word(Value& value) {
  const char* const first = position();
  const std::string_view word{first, static_cast<std::size_t>(token_end() - first)};
  if (word == "true") {
    value = Value::boolean(true);
  } else if (word == "false") {
    value = Value::boolean(false);
  } else if (word == "null") {
    value = Value::null();
  } else {
    return fail("not a value");
  }
  advance();
  return true;
}

bool Scan::take_scalar(Arena& arena, Value& value) {
  const char c = peek();
  if (c == '"') {
    std::string_view text;
    if (!take_string(arena, text)) return false;
    value = Value::text(text);
    return true;
  }
  if (c == '-' || is_digit(c)) return take_number(value);
  return at_end() ? fail("it ends too early") : take_word(value);
}

bool Scan::skip_scalar() {
  const char c = peek();
  if (c == '"') {
    std::string_view raw;
    if (!raw_string(raw)) return false;
    if (escapes_ && !escapes_are_valid(raw)) {
      return fail("a string holds a bad escape or a lone surrogate");
    }
    advance();
    return true;
  }
  Value value;
  if (c == '-' || is_digit(c)) return take_number(value);
  return at_end() ? fail("it ends too early") : take_word(value);
}

bool Scan::skip(std::size_t depth) {
  const char c = peek();
  return c == '{' || c == '[' ? skip_brackets(depth) : skip_scalar();
}

bool Scan::skip_key() {
  if (peek() != '"') return fail("a name is missing");
  if (!skip_scalar()) return false;
  if (peek() != ':') return fail("a colon is missing");
  advance();
  return true;
}

// A loop and a bit per open bracket instead of recursion: what is skipped may be deep.
bool Scan::skip_brackets(std::size_t depth) {
  std::bitset<depth_max> object;
  std::size_t open = 0;
  bool value_next = true;  // else: what follows a value
  do {
    if (value_next) {
      const char c = peek();
      if (c != '{' && c != '[') {
        if (!skip_scalar()) return false;
        value_next = false;
        continue;
      }
      if (depth + open >= depth_max) return fail("it is nested too deeply");
      object[open++] = c == '{';
      advance();
      if (peek() == (c == '{' ? '}' : ']')) {
        value_next = false;
      } else if (c == '{' && !skip_key()) {
        return false;
      }
      continue;
    }
    const bool in_object = object[open - 1];
    const char c = peek();
    if (c == (in_object ? '}' : ']')) {
      --open;
      advance();
    } else if (c == ',') {
      advance();
      value_next = true;
      if (in_object && !skip_key()) return false;
    } else {
      return fail(at_end() ? "it ends too early" : "a comma or a closing bracket is missing");
    }
  } while (open > 0);
  return true;
}

}  // namespace flow::json
