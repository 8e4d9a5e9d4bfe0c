#include "core/field_source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "core/suggest.h"

namespace flow {
namespace {

using From = FieldSource::From;

struct Meta {
  std::string_view name;
  From from;
};
constexpr std::array<Meta, 5> metas{{{"key", From::key},
                                     {"topic", From::topic},
                                     {"partition", From::partition},
                                     {"offset", From::offset},
                                     {"timestamp", From::timestamp}}};
constexpr std::string_view header_prefix = "@headers.";
constexpr std::size_t steps_max = 64;

Failure wrong(std::string what, std::string hint) {
  return {FailureClass::setup, Effect::none, "", "", std::move(what), std::move(hint), {}};
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// 'it''s' -> it's, from the front of `text`.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] != '\'') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\'') {
      out += text[++i];
    } else {
      text.remove_prefix(i + 1);
      return out;
    }
  }
  return std::nullopt;
}

// "[2]" from the front of `text`, without leading zeros.
std::optional<std::string> take_index(std::string_view& text) {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos || close < 2) return std::nullopt;
  const std::string_view digits = text.substr(1, close - 1);
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  text.remove_prefix(close + 1);
  return "[" + std::to_string(index) + "]";
}

Result<FieldSource> parse_path(std::string_view text) {
  FieldSource out;
  out.text = std::string(text);
  std::string_view rest = text.substr(1);
  out.from = rest.empty() ? From::value : From::path;
  while (!rest.empty()) {
    if (out.path.size() == steps_max) return wrong("has more than 64 steps", "shorten the path");
    std::optional<std::string> step;
    if (rest.front() == '[') {
      step = take_index(rest);
      if (!step)
        return wrong(quoted(text) + " has a bad index", "write $.list[0] for its first item");
    } else if (rest.front() == '.' && rest.size() > 1 && rest[1] == '\'') {
      rest.remove_prefix(1);
      step = take_quoted(rest);
      if (!step) return wrong(quoted(text) + " has an open quote", "write $.'a name'");
    } else if (rest.front() == '.') {
      rest.remove_prefix(1);
      const std::size_t end = std::min(rest.find_first_of(".["), rest.size());
      step = std::string(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    if (!step || step->empty()) {
      return wrong(quoted(text) + " is not a path", "write $ or $.name or $.name.inner[0]");
    }
    out.path.push_back(*std::move(step));
  }
  return out;
}

Result<FieldSource> parse_meta(std::string_view text) {
  FieldSource out;
  out.text = std::string(text);
  if (text.substr(0, header_prefix.size()) == header_prefix) {
    out.from = From::header;
    out.name = std::string(text.substr(header_prefix.size()));
    if (out.name.empty()) return wrong("\"@headers.\" names no header", "write @headers.name");
    return out;
  }
  std::vector<std::string_view> names{"headers.NAME"};
  for (const Meta& meta : metas) {
    if (meta.name == text.substr(1)) {
      out.from = meta.from;
      return out;
    }
    names.push_back(meta.name);
  }
  const std::string near = nearest_name(text.substr(1), names);
  return wrong(quoted(text) + " is not known",
               near.empty() ? "write @key, @topic, @partition, @offset, @timestamp or @headers.NAME"
                            : "did you mean \"@" + near + "\"?");
}

// The type of a JSON number token, if `text` is one.
std::optional<Type> number_type(std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '-') rest.remove_prefix(1);
  const auto take_digits = [&rest] {
    std::size_t n = 0;
    while (n < rest.size() && is_digit(rest[n])) ++n;
    rest.remove_prefix(n);
    return n;
  };
  const bool leading_zero = rest.size() > 1 && rest[0] == '0' && is_digit(rest[1]);
  if (leading_zero || take_digits() == 0) return std::nullopt;
  if (rest.empty()) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? Type::int64 : Type::decimal;
  }
  if (rest.front() == '.') {
    rest.remove_prefix(1);
    if (take_digits() == 0) return std::nullopt;
  }
  if (!rest.empty() && (rest.front() == 'e' || rest.front() == 'E')) {
    rest.remove_prefix(1);
    if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) rest.remove_prefix(1);
    if (take_digits() == 0) return std::nullopt;
  }
  return rest.empty() ? std::optional(Type::decimal) : std::nullopt;
}

}  // namespace

FieldSource constant_field(std::string_view text, Type type) {
  FieldSource out;
  out.from = From::constant;
  out.name = std::string(text);
  out.constant_type = type;
  out.text = std::string(text);
  return out;
}

Result<FieldSource> parse_field_source(std::string_view text) {
  if (text.empty()) return wrong("is empty", "write $.name for a field of the record");
  if (text.front() == '$') return parse_path(text);
  if (text.front() == '@') return parse_meta(text);
  if (text.front() == '\'') {
    std::string_view rest = text;
    auto constant = take_quoted(rest);
    if (!constant || !rest.empty()) {
      return wrong(quoted(text) + " has an open quote", "write 'text', a quote inside as ''");
    }
    FieldSource out = constant_field(*constant, Type::text);
    out.text = std::string(text);
    return out;
  }
  if (text == "true" || text == "false") return constant_field(text, Type::boolean);
  if (const auto type = number_type(text)) return constant_field(text, *type);
  return wrong(quoted(text) + " is neither a field nor a constant",
               "write $." + std::string(text) + " for the field, '" + std::string(text) +
                   "' in single quotes for a constant text");
}

}  // namespace flow
