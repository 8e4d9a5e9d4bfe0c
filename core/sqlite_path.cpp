#include "core/sqlite_path.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace flow {
namespace {

std::string stamp_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return "-;";
  return std::to_string(s.st_ino) + ":" + std::to_string(s.st_size) + ":" +
         std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec) + ";";
}

// Two changes within one tick of the file system's clock look like one.
bool is_settled(const std::string& path) {
  constexpr auto tick_max = std::chrono::milliseconds(20);
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return true;
  const auto changed =
      std::chrono::seconds(s.st_mtim.tv_sec) + std::chrono::nanoseconds(s.st_mtim.tv_nsec);
  const auto age = std::chrono::system_clock::now().time_since_epoch() - changed;
  return age < std::chrono::seconds(0) || age > tick_max;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string file_uri(const std::string& path) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%' || c == '?' || c == '#') {
      uri += {'%', hex[byte >> 4], hex[byte & 15]};
    } else {
      uri += c;
    }
  }
  return uri;
}

std::string stamp_of_all(const std::string& path) {
  return stamp_of(path) + stamp_of(path + "-wal") + stamp_of(path + "-journal") +
         (exists(path + "-shm") ? "shm" : "");
}

}  // namespace

std::string sqlite_path(std::string_view url) {
  constexpr std::string_view scheme = "sqlite:";
  if (url.starts_with(scheme)) url.remove_prefix(scheme.size());
  return std::string(url);
}

std::string canonical_path(const std::string& path) {
  std::error_code error;
  const auto canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

SqliteView sqlite_view(const std::string& path, Index index) {
  SqliteView view;
  view.settled = is_settled(path);
  view.stamp = stamp_of_all(path);
  const std::string uri = file_uri(path);
  if (!exists(path + "-wal")) {
    // A rollback journal says that a writer is at work, or was: SQLite's own locks are needed.
    view.guarded = exists(path + "-journal");
    view.uri = uri + (view.guarded ? "?mode=ro" : "?immutable=1");
  } else if (exists(path + "-shm")) {
    view.guarded = true;
    view.uri = uri + (index == Index::untouched ? "?mode=ro&readonly_shm=1" : "?mode=ro");
  } else {
    view.private_index = true;
    view.uri = uri + "?mode=ro&vfs=unix-none";
  }
  return view;
}

bool counts(const SqliteView& view, const std::string& path, Reading how) {
  if (view.guarded && how == Reading::succeeded) return true;
  return (view.guarded || view.settled) && stamp_of_all(path) == view.stamp;
}

int create_private_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

int create_private_directories(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (parent.empty() || exists(parent)) return 0;
  if (const int error = create_private_directories(parent); error != 0) return error;
  if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  return 0;
}

}  // namespace flow
