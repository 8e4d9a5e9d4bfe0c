#include "state/file_lock.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace flow {
namespace {

constexpr Millis poll_interval{50};
constexpr std::size_t name_length_max = 200;

class FileLock final : public Lock {
 public:
  FileLock(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() override {
    ::unlink(path_.c_str());
    ::close(fd_);
  }

 private:
  int fd_;
  std::string path_;
};

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

Failure lock_failure(int error, const std::string& path) {
  Failure failure{.cls = FailureClass::setup,
                  .where = "lock " + path,
                  .what = std::string("the lock cannot be taken: ") + std::strerror(error),
                  .hint = "put the state on a local disk, or use state: postgres://..."};
  if (error == EACCES || error == EPERM || error == EROFS) {
    failure.cls = FailureClass::unauthorized;
    failure.hint = "give this user the right to write the directory of the state";
  } else if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR) {
    failure.cls = FailureClass::transient;
    failure.hint = "raise the limit of open files (ulimit -n)";
  } else if (error == ENOSPC || error == EDQUOT || error == EIO) {
    failure.exit = ExitCode::io;
    failure.hint = "free some space on the disk of the state";
  }
  return failure;
}

// Whether the descriptor still is the file of that name: its last holder may have taken the name
// away.
bool is_named(int fd, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// The lock, or null when somebody else has it.
Result<std::unique_ptr<Lock>> try_lock(const std::string& path) {
  for (;;) {
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return lock_failure(errno, path);
    struct flock lock = whole_file();
    if (::fcntl(fd, F_OFD_SETLK, &lock) != 0) {
      const int error = errno;
      ::close(fd);
      if (error == EAGAIN || error == EACCES) return std::unique_ptr<Lock>();
      return lock_failure(error, path);
    }
    if (is_named(fd, path)) return std::unique_ptr<Lock>(std::make_unique<FileLock>(fd, path));
    ::close(fd);
  }
}

}  // namespace

std::string lock_file_name(const std::string& name) {
  static constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string file;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool leading_dot = c == '.' && file.empty();
    if (plain.find(c) != std::string_view::npos && !leading_dot) {
      file += c;
    } else {
      file += {'%', hex[byte >> 4], hex[byte & 15]};
    }
  }
  if (file.size() <= name_length_max) return file;
  char hash[20];
  std::snprintf(hash, sizeof hash, "~%016llx", static_cast<unsigned long long>(stable_hash(name)));
  return file.substr(0, name_length_max) + hash;
}

Result<std::unique_ptr<Lock>> FileLocks::take(const std::string& name, Millis wait) {
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
    return lock_failure(errno, directory_);
  }
  const std::string path = directory_ + "/" + lock_file_name(name);
  const auto end = std::chrono::steady_clock::now() + wait;
  for (;;) {
    auto lock = try_lock(path);
    if (!lock || *lock != nullptr) return lock;
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= Millis{0}) return std::unique_ptr<Lock>();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, poll_interval));
  }
}

Result<bool> FileLocks::held(const std::string& name) {
  const std::string path = directory_ + "/" + lock_file_name(name);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    if (errno == EACCES) return true;  // another user's: what cannot be seen counts as held
    return lock_failure(errno, path);
  }
  struct flock lock = whole_file();
  const int done = ::fcntl(fd, F_OFD_GETLK, &lock);
  const int error = errno;
  ::close(fd);
  if (done != 0) return lock_failure(error, path);
  return lock.l_type != F_UNLCK;
}

}  // namespace flow
