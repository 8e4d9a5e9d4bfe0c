#include "connectors/file_framing.h"

#include <algorithm>
#include <cstring>

namespace flow::files {

namespace {

// Index of `c` in bytes[from, ..), bytes.size() when it is not there.
std::size_t find(std::string_view bytes, char c, std::size_t from) {
  if (from >= bytes.size()) return bytes.size();
  const void* at = std::memchr(bytes.data() + from, c, bytes.size() - from);
  if (at == nullptr) return bytes.size();
  return static_cast<std::size_t>(static_cast<const char*>(at) - bytes.data());
}

bool only_spaces(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
}

}  // namespace

void Framer::reset() {
  at_ = plain_ = 0;
  quoted_ = spans_lines_ = false;
}

bool Framer::next(std::string_view bytes, bool last, Frame& frame) {
  std::size_t end = 0;
  const bool ended = format_ == FormatKind::csv ? csv_end(bytes, last, end) : line_end(bytes, end);
  if (!ended && (!last || quoted_ || bytes.empty())) return false;
  frame.open = !ended;
  finish(bytes, ended ? end : bytes.size(), frame);
  return true;
}

bool Framer::line_end(std::string_view bytes, std::size_t& end) {
  end = find(bytes, '\n', at_);
  at_ = end;
  return end < bytes.size();
}

// A quote opens a field only at the field's start (RFC 4180); elsewhere it is an ordinary
// character.
bool Framer::csv_end(std::string_view bytes, bool last, std::size_t& end) {
  end = 0;
  for (;;) {
    if (quoted_ && !leave_quotes(bytes, last)) return false;
    if (end <= at_) end = find(bytes, '\n', at_);
    plain_ = std::max(plain_, at_);
    if (plain_ < end) plain_ = find(bytes, '"', plain_);
    if (plain_ >= end) {
      at_ = end;
      return end < bytes.size();
    }
    const std::size_t quote = plain_;
    at_ = quote + 1;
    if (quote > 0 && bytes[quote - 1] != delimiter_) continue;
    quoted_ = spans_lines_ = true;
    quote_at_ = quote;
  }
}

// Moves behind the closing quote; "" inside is a quote of the text.
bool Framer::leave_quotes(std::string_view bytes, bool last) {
  for (;;) {
    const std::size_t quote = find(bytes, '"', at_);
    at_ = quote;
    if (quote == bytes.size()) return false;
    if (quote + 1 == bytes.size() && !last) return false;
    if (quote + 1 < bytes.size() && bytes[quote + 1] == '"') {
      at_ = quote + 2;
      continue;
    }
    at_ = quote + 1;
    quoted_ = false;
    return true;
  }
}

void Framer::finish(std::string_view bytes, std::size_t end, Frame& frame) {
  frame.size = frame.open ? end : end + 1;
  frame.value = bytes.substr(0, end);
  if (!frame.value.empty() && frame.value.back() == '\r') frame.value.remove_suffix(1);
  frame.lines = 1;
  if (spans_lines_) {
    frame.lines +=
        static_cast<std::uint32_t>(std::count(frame.value.begin(), frame.value.end(), '\n'));
  }
  switch (format_) {
    case FormatKind::json:
      frame.blank = frame.value.empty() || (frame.value.front() <= ' ' && only_spaces(frame.value));
      break;
    case FormatKind::csv: frame.blank = frame.value.empty(); break;
    case FormatKind::raw: frame.blank = false; break;
  }
  plain_ = plain_ > frame.size ? plain_ - frame.size : 0;
  at_ = 0;
  quoted_ = spans_lines_ = false;
}

}  // namespace flow::files
