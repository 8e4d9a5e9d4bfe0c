#pragma once
// Where a SQLite file is, and how to look into it without leaving a trace. Paths and URIs only: who
// opens them brings SQLite.
#include <string>
#include <string_view>

#include "core/result.h"

namespace flow {

// "sqlite:PATH" or a plain path.
std::string sqlite_path(std::string_view url);
// The same path without symbolic links, so that every process names the same file alike.
std::string canonical_path(const std::string& path);

// How to read a file as it is now, writing nothing: neither the file nor its -wal and -shm.
// Shape: the URI to open (SQLITE_OPEN_READONLY | SQLITE_OPEN_URI).
//   guarded: SQLite's own locks keep the view consistent beside a writer; without them what was
//   read counts only if `stamp` is still the same afterwards. private_index: before the first read,
//   PRAGMA locking_mode=EXCLUSIVE and no checkpoint on close.
struct SqliteView {
  std::string uri;
  bool guarded = false;
  bool private_index = false;
  std::string stamp;
};
SqliteView sqlite_view(const std::string& path);

// Makes an empty file of mode 0600 that was not there before. Errors: the errno, 0 when made.
int create_private_file(const std::string& path);
// Makes the missing directories above `path`, mode 0700. Errors: the errno, 0 when they are there.
int create_private_directories(const std::string& path);

}  // namespace flow
