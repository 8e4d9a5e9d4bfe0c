#pragma once
// What the file source and the file target share of POSIX: an owned descriptor, whole reads at a
// place, and one table from errno to failures.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

#include "core/result.h"

namespace flow::files {

// An open descriptor. Owner: one. Descriptors 0 to 2 are only borrowed and never closed.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The failure for `error` (errno) while `doing` ("open", "read", ...) something with `path`.
// Errors: no room is transient; rights are set-up; the rest is I/O (exit 74).
Failure io_failure(const std::string& path, std::string_view doing, int error);

// Reads up to `size` bytes at `at`; fewer only at the end of the file. -1: errno says why.
ssize_t read_at(int fd, char* to, std::size_t size, std::int64_t at);

// Opens for reading, pipes without waiting for their writer.
Result<Fd> open_for_reading(const std::string& path);

}  // namespace flow::files
