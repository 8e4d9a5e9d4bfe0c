#pragma once
// The text of a YAML file by line: places in characters, what makes a file unreadable, and syntax
// errors in words that say what to do.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/yaml_tree.h"

namespace flow {

// Owner of nothing: the text outlives it. Lines and columns that go in are from 0, columns in
// bytes.
class YamlText {
 public:
  explicit YamlText(std::string_view raw);

  std::string_view text() const { return text_; }  // without a byte order mark
  YamlPlace place(int line, int column) const;
  char at(int line, int column) const;  // line from 1; '\0' past the end of the line
  bool word_at(int line, int column, std::string_view word) const;  // in any case

  // The "-" that stands last before this, nothing but space between them.
  std::optional<YamlPlace> dash_before(int line, int column) const;
  // Whether the quoted text that begins here (behind anchor and tag) also ends: yaml-cpp takes the
  // end of the file for its end.
  bool quote_closed(int line, int column) const;  // line from 1

  // Too large, not UTF-8, or with control characters.
  std::optional<YamlFault> unreadable() const;
  YamlFault syntax_fault(int line, int column, const std::string& parser_says) const;

 private:
  std::string_view line(int line) const;  // from 0, without its end

  std::string_view raw_;
  std::string_view text_;
  std::vector<std::size_t> starts_;
};

}  // namespace flow
