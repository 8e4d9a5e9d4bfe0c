#include "cli/topic_names.h"

#include <algorithm>
#include <cctype>
#include <regex.h>
#include <regex>

namespace flow {
namespace {

constexpr std::size_t topic_bytes_max = 249;
constexpr std::size_t pattern_bytes_max = 500;
constexpr std::size_t repeat_digits_max = 5;  // std::regex overflows on larger numbers in { }

bool repeats_too_often(const std::string& pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string::npos;
       open = pattern.find('{', open + 1)) {
    std::size_t digits = 0;
    for (std::size_t i = open + 1; i < pattern.size() && digits <= repeat_digits_max; ++i) {
      if (pattern[i] == ',') {
        digits = 0;
      } else if (std::isdigit(static_cast<unsigned char>(pattern[i])) != 0) {
        ++digits;
      } else {
        break;
      }
    }
    if (digits > repeat_digits_max) return true;
  }
  return false;
}

}  // namespace

// Patterns go to librdkafka, which reads them as POSIX extended regular expressions. std::regex
// knows the same grammar and bounds what a pattern may cost.
std::string check_topic_pattern(const std::string& pattern) {
  if (pattern.size() > pattern_bytes_max) return "a pattern of at most 500 bytes is needed";
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\') continue;
    const char c = pattern[++i];
    if (c == 'd') return "\\d is not known in these regular expressions; write [0-9]";
    if (c == 's') return "\\s is not known in these regular expressions; no topic has a space";
    if (c == 'w') return "\\w is not known in these regular expressions; write [A-Za-z0-9_]";
  }
  if (repeats_too_often(pattern)) return "too large a regular expression; use fewer repeats";
  try {
    const std::regex compiled(pattern, std::regex::extended);
  } catch (const std::regex_error& e) {
    switch (e.code()) {
      case std::regex_constants::error_brack: return "not a regular expression, a [ is not closed";
      case std::regex_constants::error_paren:
        return "not a regular expression; look at its ( ) and at what * + ? repeat";
      case std::regex_constants::error_brace:
      case std::regex_constants::error_badbrace:
        return "not a regular expression, what stands in { } is not a repeat";
      case std::regex_constants::error_badrepeat:
        return "not a regular expression, a *, + or ? has nothing before it to repeat";
      case std::regex_constants::error_range:
        return "not a regular expression, a range such as [a-z] is the wrong way round";
      case std::regex_constants::error_escape:
        return "not a regular expression, a \\ stands before a sign that needs none";
      case std::regex_constants::error_space:
      case std::regex_constants::error_complexity:
        return "too large a regular expression; use fewer repeats";
      default: return "not a regular expression";
    }
  }
  return "";
}

std::string check_topic_name(const std::string& name) {
  if (name == "." || name == "..") return "is not a topic name";
  if (name.size() > topic_bytes_max) return "is longer than a topic name can be, 249 bytes";
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  });
  if (plain) return "";
  const bool pattern = name.find_first_of("*+?[](){}|^$\\") != std::string::npos;
  return pattern ? "is not a topic name; a regular expression begins with ^"
                 : "is not a topic name: letters, digits, dot, dash and underscore only";
}

bool reads_topic(const std::string& read, const std::string& topic) {
  if (!read.starts_with('^')) return read == topic;
  regex_t compiled;
  if (!check_topic_pattern(read).empty() ||
      ::regcomp(&compiled, read.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return false;
  }
  const bool matches = ::regexec(&compiled, topic.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&compiled);
  return matches;
}

}  // namespace flow
