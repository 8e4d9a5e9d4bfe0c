#include "connectors/file_io.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace flow::files {

Fd::~Fd() {
  if (fd_ > 2) ::close(fd_);
}

Failure io_failure(const std::string& path, std::string_view doing, int error) {
  Failure f{.cls = FailureClass::setup, .where = path, .exit = ExitCode::io};
  const char* name = strerrorname_np(error);
  f.code = name != nullptr ? name : std::to_string(error);
  f.what = "cannot " + std::string(doing) + ": " + strerrordesc_np(error);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      f.cls = FailureClass::transient;
      f.hint = "make room; the write is tried again";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      f.exit = ExitCode::configuration;
      f.hint = "give the user that runs flow the right to do so, or name another path";
      break;
    case EMFILE:
    case ENFILE: f.hint = "raise the limit of open files (ulimit -n)"; break;
    case ENOENT:
    case ENOTDIR: f.hint = "check that the path is still there"; break;
    case EIO: f.hint = "the device failed; check it before running again"; break;
    default: f.hint = "mend the cause and run again: the position stands where it was"; break;
  }
  return f;
}

ssize_t read_at(int fd, char* to, std::size_t size, std::int64_t at) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd, to + done, size - done, at + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

Result<Fd> open_for_reading(const std::string& path) {
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) return Fd(fd);
    if (errno != EINTR) return io_failure(path, "open", errno);
  }
}

}  // namespace flow::files
