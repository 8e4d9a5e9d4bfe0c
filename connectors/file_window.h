#pragma once
#include <cstddef>
#include <memory>
#include <string_view>

#include "connectors/file_stream.h"
#include "core/batch.h"

namespace flow::files {

// The bytes between the file and the records: read in large pieces, framed in place. One for all
// readers of a source, because one file is read at a time. A record larger than it makes it grow,
// up to max_record_bytes.
class Window {
 public:
  static constexpr std::size_t usual_bytes = Arena::block_bytes - 2 * Arena::padding;
  static constexpr std::size_t max_record_bytes = std::size_t{64} << 20;

  std::string_view bytes() const { return {data_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes) { begin_ += bytes; }
  void clear();
  Result<Got> fill(InputStream& stream);
  bool too_large() const { return end_ - begin_ >= max_record_bytes; }

 private:
  void make_room();

  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace flow::files
