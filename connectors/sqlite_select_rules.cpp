#include "connectors/sqlite_select_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace flow {

namespace {

enum class TokenKind : unsigned char { word, string, quoted_name, sign };

struct Token {
  TokenKind kind;
  std::string_view text;  // as written
  bool is(std::string_view upper) const {
    return kind == TokenKind::word &&
           std::equal(text.begin(), text.end(), upper.begin(), upper.end(), [](char a, char b) {
             return std::toupper(static_cast<unsigned char>(a)) == b;
           });
  }
};

bool in_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || std::isalnum(u) != 0 || c == '_' || c == '$';
}

// SQL from left to right, without spaces and comments.
class Tokens {
 public:
  explicit Tokens(std::string_view sql) : rest_(sql) {}

  std::optional<Token> next() {
    skip_space();
    if (rest_.empty()) return std::nullopt;
    const char c = rest_.front();
    if (c == '\'') return take(TokenKind::string, closed('\''));
    if (c == '"' || c == '`') return take(TokenKind::quoted_name, closed(c));
    if (c == '[') return take(TokenKind::quoted_name, rest_.find(']') + 1);
    std::size_t n = 0;
    while (n < rest_.size() && in_word(rest_[n])) ++n;
    return n > 0 ? take(TokenKind::word, n) : take(TokenKind::sign, 1);
  }

 private:
  Token take(TokenKind kind, std::size_t n) {
    n = n == 0 ? rest_.size() : n;  // not closed: SQLite will say so
    const Token token{kind, rest_.substr(0, n)};
    rest_.remove_prefix(n);
    return token;
  }
  // Length up to the closing quote; a doubled quote stands for itself. 0: there is none.
  std::size_t closed(char quote) const {
    std::size_t at = 1;
    while ((at = rest_.find(quote, at)) != std::string_view::npos) {
      ++at;
      if (at == rest_.size() || rest_[at] != quote) return at;
      ++at;
    }
    return 0;
  }
  void skip_space() {
    while (!rest_.empty()) {
      if (std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
        rest_.remove_prefix(1);
      } else if (rest_.substr(0, 2) == "--") {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.substr(0, 2) == "/*") {
        const std::size_t end = rest_.find("*/", 2);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 2);
      } else {
        return;
      }
    }
  }
  std::string_view rest_;
};

struct Clause {
  std::string_view word;
  std::string_view why;
};

constexpr std::array<Clause, 9> clauses{{
    {"JOIN", "has JOIN"},
    {"GROUP", "has GROUP BY"},
    {"HAVING", "has HAVING"},
    {"ORDER", "has ORDER BY"},
    {"LIMIT", "has LIMIT"},
    {"UNION", "is a compound SELECT (UNION)"},
    {"EXCEPT", "is a compound SELECT (EXCEPT)"},
    {"INTERSECT", "is a compound SELECT (INTERSECT)"},
    {"SELECT", "has a SELECT inside the SELECT"},
}};

std::string one_row(std::string_view why) {
  return std::string(why) +
         ": each record gives one row at most, in record order, and none depends on another";
}

// Text in double quotes: SQL has it for names, many write strings so. Taken as a name where only a
// name can stand, refused where a mistake would silently compare with a field that does not exist.
std::string ambiguous(std::string_view quoted) {
  const std::string inner(quoted.substr(1, quoted.size() < 2 ? 0 : quoted.size() - 2));
  return "has " + std::string(quoted) + ", which could be text or a column: write '" + inner +
         "' for text, [" + inner + "] for a column";
}

}  // namespace

std::string select_fault(std::string_view sql) {
  Tokens tokens(sql);
  const auto first = tokens.next();
  if (!first) return "is empty";
  if (!first->is("SELECT")) return "does not begin with SELECT";
  Token last = *first;
  bool from = false;
  while (const auto token = tokens.next()) {
    if (last.text == ";" && token->text != ";") return "is followed by another one";
    if (token->is("DISTINCT") && last.is("SELECT")) return one_row("has DISTINCT");
    for (const Clause& clause : clauses) {
      if (token->is(clause.word)) return one_row(clause.why);
    }
    const bool names = last.is("AS") || last.text == ".";
    if (token->kind == TokenKind::quoted_name && token->text.front() == '"' && !names) {
      return ambiguous(token->text);
    }
    from = from || token->is("FROM");
    last = *token;
  }
  return from ? "" : "has no FROM source";
}

std::string_view clock_word(std::string_view sql) {
  Tokens tokens(sql);
  while (const auto token = tokens.next()) {
    if (token->kind != TokenKind::string || token->text.size() < 2) continue;
    const Token inner{TokenKind::word, token->text.substr(1, token->text.size() - 2)};
    if (inner.is("NOW") || inner.is("LOCALTIME") || inner.is("UTC")) return token->text;
  }
  return {};
}

}  // namespace flow
