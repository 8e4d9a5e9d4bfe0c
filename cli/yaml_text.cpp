#include "cli/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace flow {
namespace {

constexpr std::size_t bytes_max = std::size_t{1} << 20;
constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";

// Bytes of the UTF-8 character at the front of `text`; 0: not one.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

struct Explained {
  std::string_view parser_says;
  std::string_view message;
};
constexpr std::array<Explained, 11> explained{{
    {"illegal map value",
     "a \":\" where no key can be; put the text in quotes, or look at the indentation"},
    {"end of map not found",
     "this does not go on with what is above; look at the indentation and at quotes that end "
     "early"},
    {"end of sequence not found",
     "this does not go on with the list above; look at the indentation and the \"-\""},
    {"end of map flow not found", "the \"{\" is not closed, or a comma is missing before this"},
    {"end of sequence flow not found",
     "the \"[\" is not closed, or a comma is missing before this"},
    {"illegal block entry", "a list cannot begin here; put its \"-\" on a line of its own"},
    {"illegal flow end", "this bracket closes nothing"},
    {"illegal EOF in scalar", "a quote is opened and never closed"},
    {"illegal map key", "a key cannot stand here; look at the indentation"},
    {"the referenced anchor is not defined",
     "this alias names no anchor (&name) that stands above it"},
    {"bad file", "the text cannot be read"},
}};

}  // namespace

YamlText::YamlText(std::string_view raw) : raw_(raw), text_(raw) {
  if (text_.substr(0, utf8_mark.size()) == utf8_mark) text_.remove_prefix(utf8_mark.size());
  starts_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') starts_.push_back(i + 1);
  }
}

std::string_view YamlText::line(int line) const {
  const auto index = static_cast<std::size_t>(std::max(line, 0));
  if (index >= starts_.size()) return {};
  const std::size_t end = index + 1 < starts_.size() ? starts_[index + 1] - 1 : text_.size();
  return text_.substr(starts_[index], end - starts_[index]);
}

YamlPlace YamlText::place(int line_from_0, int column) const {
  const std::string_view before =
      line(line_from_0).substr(0, static_cast<std::size_t>(std::max(column, 0)));
  const auto characters = std::count_if(before.begin(), before.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  });
  return {line_from_0 + 1, static_cast<int>(characters) + 1, 0};
}

char YamlText::at(int line_from_1, int column) const {
  const std::string_view text = line(line_from_1 - 1);
  const auto index = static_cast<std::size_t>(std::max(column, 0));
  return index < text.size() ? text[index] : '\0';
}

bool YamlText::word_at(int line_from_1, int column, std::string_view word) const {
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = at(line_from_1, column + static_cast<int>(i));
    if (std::tolower(static_cast<unsigned char>(c)) != word[i]) return false;
  }
  return true;
}

std::optional<YamlPlace> YamlText::dash_before(int line_from_0, int column) const {
  for (int at = line_from_0; at >= 0; --at) {
    const std::string_view before =
        at == line_from_0 ? line(at).substr(0, static_cast<std::size_t>(column)) : line(at);
    const std::size_t last = before.find_last_not_of(" \t\r");
    if (last == std::string_view::npos) continue;
    if (before[last] != '-') return std::nullopt;
    return place(at, static_cast<int>(last));
  }
  return std::nullopt;
}

bool YamlText::quote_closed(int line_from_1, int column) const {
  const auto index = static_cast<std::size_t>(line_from_1 - 1);
  if (index >= starts_.size()) return true;
  std::string_view rest = text_.substr(starts_[index] + static_cast<std::size_t>(column));
  while (!rest.empty() && (rest.front() == '&' || rest.front() == '!')) {
    rest.remove_prefix(std::min(rest.find_first_of(" \t\r\n"), rest.size()));
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
  }
  if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) return true;
  const char quote = rest.front();
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (quote == '"' && rest[i] == '\\') {
      ++i;
    } else if (rest[i] == quote) {
      if (quote == '"' || i + 1 == rest.size() || rest[i + 1] != quote) return true;
      ++i;
    }
  }
  return false;
}

std::optional<YamlFault> YamlText::unreadable() const {
  if (raw_.size() > bytes_max) {
    return YamlFault{{}, "is larger than 1 MiB, which no pipeline file is"};
  }
  for (std::size_t i = 0; i < text_.size();) {
    const std::size_t size = character_size(text_.substr(i));
    const auto byte = static_cast<unsigned char>(text_[i]);
    const bool control =
        (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F;
    if (size == 0 || control) {
      const auto next = std::upper_bound(starts_.begin(), starts_.end(), i);
      const auto line = static_cast<int>(next - starts_.begin()) - 1;
      const YamlPlace at = place(line, static_cast<int>(i - *(next - 1)));
      return YamlFault{at, size == 0 ? "is not UTF-8 text here; save the file as UTF-8"
                                     : "holds a control character here; remove it"};
    }
    i += size;
  }
  return std::nullopt;
}

YamlFault YamlText::syntax_fault(int line_from_0, int column,
                                 const std::string& parser_says) const {
  const YamlPlace at = place(line_from_0, column);
  const std::string_view text = line(line_from_0);
  const std::string_view indent =
      text.substr(0, std::min(text.find_first_not_of(" \t"), text.size()));
  if (indent.find('\t') != std::string_view::npos || parser_says.find("tab") != std::string::npos) {
    return {{at.line, static_cast<int>(std::min(indent.find('\t'), indent.size())) + 1, 0},
            "a tab in the indentation; indent with spaces"};
  }
  const bool in_flow = parser_says.find("flow not found") != std::string::npos;
  if (in_flow && text.find("${") != std::string_view::npos) {
    return {at, "a bracket is not closed, or ${...} stands without quotes inside { } or [ ]"};
  }
  const char c = this->at(at.line, column);
  if (parser_says == "unknown token" && c != '\0') {
    return {at, std::string("a value cannot begin with ") + c + "; put it in quotes"};
  }
  const auto known = std::find_if(explained.begin(), explained.end(),
                                  [&](const Explained& e) { return e.parser_says == parser_says; });
  return {at, known != explained.end() ? std::string(known->message) : "not YAML: " + parser_says};
}

}  // namespace flow
