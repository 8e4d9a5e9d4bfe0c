#include "connectors/file_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace flow::files {

namespace {

constexpr std::size_t raw_buffer_bytes = std::size_t{64} << 10;
constexpr int pipe_wait_ms = 20;

class PlainCodec final : public Codec {
 public:
  Result<Got> read(RawInput& raw, char* to, std::size_t size) override {
    return raw.read(to, size);
  }
};

std::unique_ptr<Codec> make_codec(Compression compression) {
  switch (compression) {
    case Compression::gzip: return make_gzip_codec();
    case Compression::zstd: return make_zstd_codec();
    case Compression::automatic:
    case Compression::none: break;
  }
  return std::make_unique<PlainCodec>();
}

}  // namespace

Compression compression_of(const char* first, std::size_t size) {
  const auto starts = [&](std::string_view magic) {
    return size >= magic.size() && std::memcmp(first, magic.data(), magic.size()) == 0;
  };
  if (starts("\x1f\x8b")) return Compression::gzip;
  if (starts("\x28\xb5\x2f\xfd")) return Compression::zstd;
  const bool skippable = size >= 4 && (static_cast<unsigned char>(first[0]) & 0xf0U) == 0x50U &&
                         std::memcmp(first + 1, "\x2a\x4d\x18", 3) == 0;
  return skippable ? Compression::zstd : Compression::none;
}

RawInput::RawInput(Fd fd, std::string path, Medium medium)
    : fd_(std::move(fd)), path_(std::move(path)), medium_(medium) {
  if (medium_ == Medium::file) ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

Result<Got> RawInput::read_fd(char* to, std::size_t size) {
  if (medium_ == Medium::pipe) {
    pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, pipe_wait_ms) <= 0) return Got{};
  }
  for (;;) {
    const ssize_t n = ::read(fd_.get(), to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Got{};
    if (n < 0) {
      Failure f = io_failure(path_, "read", errno);
      f.where += " byte " + std::to_string(at_);
      return f;
    }
    at_ += n;
    return Got{.bytes = static_cast<std::size_t>(n), .end = n == 0};
  }
}

Result<Got> RawInput::peek(std::size_t want) {
  if (buffer_.empty()) buffer_.resize(raw_buffer_bytes);
  if (begin_ > 0 && buffered_size() < want) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, buffered_size());
    end_ -= begin_;
    begin_ = 0;
  }
  while (buffered_size() < want) {
    auto got = read_fd(buffer_.data() + end_, buffer_.size() - end_);
    if (!got) return got;
    end_ += got->bytes;
    if (got->bytes == 0) return Got{.bytes = buffered_size(), .end = got->end};
  }
  return Got{.bytes = buffered_size(), .end = false};
}

Result<Got> RawInput::read(char* to, std::size_t size) {
  if (buffered_size() == 0) return read_fd(to, size);
  const std::size_t n = std::min(size, buffered_size());
  std::memcpy(to, buffered(), n);
  consume(n);
  return Got{.bytes = n, .end = false};
}

Result<void> RawInput::seek(std::int64_t at) {
  if (::lseek(fd_.get(), at, SEEK_SET) < 0) return io_failure(path_, "seek in", errno);
  begin_ = end_ = 0;
  at_ = at;
  return {};
}

InputStream::InputStream(Fd fd, std::string path, Medium medium, Compression compression)
    : raw_(std::move(fd), std::move(path), medium), compression_(compression) {
  if (compression_ != Compression::automatic) codec_ = make_codec(compression_);
}

// False: not enough bytes yet to tell.
Result<bool> InputStream::decide() {
  constexpr std::size_t magic_bytes = 4;
  auto got = raw_.peek(magic_bytes);
  if (!got) return std::move(got).failure();
  if (got->bytes < magic_bytes && !got->end) return false;
  compression_ = compression_of(raw_.buffered(), raw_.buffered_size());
  codec_ = make_codec(compression_);
  return true;
}

Result<Got> InputStream::read(char* to, std::size_t size) {
  if (!codec_) {
    auto decided = decide();
    if (!decided) return std::move(decided).failure();
    if (!*decided) return Got{};
  }
  return codec_->read(raw_, to, size);
}

}  // namespace flow::files
