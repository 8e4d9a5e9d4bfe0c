#pragma once
// One JSON text, token by token. simdjson's first stage finds the tokens and checks UTF-8, string
// ends and raw control characters; the rest of RFC 8259 (structure, numbers, words, escapes, depth)
// is checked here as the caller walks, so that a text walked to its end is valid whatever was taken
// out of it.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/batch.h"
#include "core/value.h"

namespace simdjson::internal {
class dom_parser_implementation;
}

namespace flow::json {

constexpr std::size_t depth_max = 1024;

// Shape: a cursor over the tokens of one text at a time; memory is kept between texts. Errors: a
// false return; problem() then says what is wrong and at which byte. Threads: one.
class Scan {
 public:
  Scan();
  ~Scan();
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  bool start(std::string_view text);
  bool at_end() const { return at_ == count_; }
  // First byte of the current token; 0 at the end.
  char peek() const { return at_ < count_ ? base_[index_[at_]] : '\0'; }
  const char* position() const { return base_ + (at_ < count_ ? index_[at_] : size_); }
  void advance() { ++at_; }
  // End of the token before the current one, when that is a single byte: a bracket.
  const char* behind_bracket() const { return base_ + index_[at_ - 1] + 1; }

  // Each takes the current token, which must be of that kind.
  bool take_string(Arena& arena, std::string_view& text);
  bool take_scalar(Arena& arena, Value& value);
  // Takes the value at the cursor without keeping it. `depth`: brackets around it.
  bool skip(std::size_t depth);

  bool fail(std::string_view what);
  const std::string& problem() const { return problem_; }

 private:
  const char* token_end() const;
  bool raw_string(std::string_view& raw);
  bool take_number(Value& value);
  bool take_word(Value& value);
  bool skip_scalar();
  bool skip_brackets(std::size_t depth);
  bool skip_key();

  std::unique_ptr<simdjson::internal::dom_parser_implementation> stage_;
  std::size_t capacity_ = 0;
  const char* base_ = nullptr;
  const std::uint32_t* index_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t at_ = 0;
  std::uint32_t size_ = 0;
  bool escapes_ = false;  // a backslash somewhere in the text
  std::string problem_;
};

}  // namespace flow::json
