#pragma once
// The bytes of a file as they are to be read: as they stand, or taken out of gzip or zstd.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "connectors/file_io.h"
#include "core/pipeline.h"
#include "core/result.h"

namespace flow::files {

// What a read gave. bytes 0 without end: nothing there right now (pipes).
struct Got {
  std::size_t bytes = 0;
  bool end = false;  // the end as it is now; a file that grows may give more later
};

enum class Medium : std::uint8_t { file, pipe };

// Bytes straight from a descriptor, with a small buffer for what has been looked at.
class RawInput {
 public:
  RawInput(Fd fd, std::string path, Medium medium);

  // At least `want` buffered bytes, if they can be had: got.bytes is how many there are.
  Result<Got> peek(std::size_t want);
  const char* buffered() const { return buffer_.data() + begin_; }
  std::size_t buffered_size() const { return end_ - begin_; }
  void consume(std::size_t bytes) { begin_ += bytes; }
  // Past the buffer when that is empty.
  Result<Got> read(char* to, std::size_t size);
  Result<void> seek(std::int64_t at);

  std::int64_t taken() const { return at_ - static_cast<std::int64_t>(buffered_size()); }
  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }

 private:
  Result<Got> read_fd(char* to, std::size_t size);

  Fd fd_;
  std::string path_;
  Medium medium_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t at_ = 0;
};

// How the raw bytes are taken apart.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual Result<Got> read(RawInput& raw, char* to, std::size_t size) = 0;
};

// The decompressed bytes of one file or pipe, in order. Compression::automatic is decided by the
// first bytes, at the first read. Units: bytes of the decompressed stream; raw_taken: of the file.
// Errors: a stream that is cut short or damaged names the file and the byte (exit 65).
class InputStream {
 public:
  InputStream(Fd fd, std::string path, Medium medium, Compression compression);

  Result<Got> read(char* to, std::size_t size);
  // Uncompressed files only.
  Result<void> seek(std::int64_t at) { return raw_.seek(at); }
  // automatic until the first read has decided.
  Compression compression() const { return compression_; }
  std::int64_t raw_taken() const { return raw_.taken(); }
  int fd() const { return raw_.fd(); }

 private:
  Result<bool> decide();

  RawInput raw_;
  Compression compression_;
  std::unique_ptr<Codec> codec_;
};

std::unique_ptr<Codec> make_gzip_codec();
std::unique_ptr<Codec> make_zstd_codec();
// What the first bytes of a file say; none when they say nothing.
Compression compression_of(const char* first, std::size_t size);

}  // namespace flow::files
