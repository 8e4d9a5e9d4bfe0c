#pragma once
// Where one record ends and the next begins: lines, or CSV records whose quoted fields may hold
// line ends. Knows bytes only; no file, no batch.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/pipeline.h"

namespace flow::files {

// One record found in the bytes.
struct Frame {
  std::size_t size = 0;    // with its line end
  std::string_view value;  // without it; a \r before the \n belongs to the line end
  std::uint32_t lines = 1;
  bool blank = false;  // nothing to read in it: skipped
  bool open = false;   // ended by the end of the bytes, not by a line feed
};

// Finds records one after the other. Shape: holds where the search for the current record's end
// stands, so that no byte is searched twice. Threads: one.
class Framer {
 public:
  Framer(FormatKind format, char delimiter) : format_(format), delimiter_(delimiter) {}

  // `bytes` starts at the current record and holds at least what the call before was given. True:
  // `frame` is the record, and the next call starts behind it. False: more bytes are needed.
  // `last`: none will come, so a record without line feed ends here; false then means nothing is
  // left, or in_quotes().
  bool next(std::string_view bytes, bool last, Frame& frame);

  // The current record has a quoted field that is not closed; it began at quote_at(), from the
  // record's start.
  bool in_quotes() const { return quoted_; }
  std::size_t quote_at() const { return quote_at_; }
  // Forgets the current record.
  void reset();

 private:
  bool line_end(std::string_view bytes, std::size_t& end);
  bool csv_end(std::string_view bytes, bool last, std::size_t& end);
  bool leave_quotes(std::string_view bytes, bool last);
  void finish(std::string_view bytes, std::size_t end, Frame& frame);

  FormatKind format_;
  char delimiter_;
  std::size_t at_ = 0;     // searched up to here
  std::size_t plain_ = 0;  // no quote in [at_, plain_)
  std::size_t quote_at_ = 0;
  bool quoted_ = false;
  bool spans_lines_ = false;
};

}  // namespace flow::files
