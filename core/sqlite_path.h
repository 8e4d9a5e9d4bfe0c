#pragma once
// Where a SQLite file is, and how to look into it without leaving a trace. Paths and URIs only: who
// opens them brings SQLite.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace flow {

// "sqlite:PATH" or a plain path.
std::string sqlite_path(std::string_view url);
// The same path without symbolic links, so that every process names the same file alike.
std::string canonical_path(const std::string& path);

// How to read a file as it is now, writing nothing: neither the file nor its -wal.
// Index: whether -shm, which SQLite can make anew, stays untouched too. A process that does so must
// not write the same database by another connection meanwhile: SQLite would take the index for
// read-only there too.
enum class Index : std::uint8_t { untouched, shared };
// Shape: the URI to open (SQLITE_OPEN_READONLY | SQLITE_OPEN_URI).
//   guarded: SQLite's own locks keep the view consistent beside a writer.
//   private_index: before the first read, PRAGMA locking_mode=EXCLUSIVE and no checkpoint on close.
//   settled: the last change is older than the clock of the file system is coarse.
struct SqliteView {
  std::string uri;
  bool guarded = false;
  bool private_index = false;
  bool settled = false;
  std::string stamp;  // of what was there
};
SqliteView sqlite_view(const std::string& path, Index index);
inline bool is_missing(const SqliteView& view) { return view.stamp.starts_with('-'); }

// Whether what was read through the view counts. When not, somebody wrote, came or went meanwhile:
// look again.
enum class Reading : std::uint8_t { succeeded, failed };
bool counts(const SqliteView& view, const std::string& path, Reading how);

// Makes an empty file of mode 0600 that was not there before. Errors: the errno, 0 when made.
int create_private_file(const std::string& path);
// Makes the missing directories above `path`, mode 0700. Errors: the errno, 0 when they are there.
int create_private_directories(const std::string& path);

}  // namespace flow
