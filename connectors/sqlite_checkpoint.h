#pragma once
// Keeps the write-ahead log short while another connection writes.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <sqlite3.h>
#include <string>
#include <thread>

#include "connectors/sqlite_client.h"
#include "core/ports.h"

namespace flow {

// Units: pages. soft: from here on pages are copied back beside the writing. hard: from here on
// nothing is written until the log is empty again (a reader that stays in its transaction keeps it
// from that).
struct WalLimits {
  int soft = 16'384;
  int hard = 262'144;
};

// Copies pages back on a thread and connection of its own, so that the writer waits only for the
// last of them. Threads: the public functions by the writing thread. Errors: are logged once and
// tried again.
class SqliteCheckpointer {
 public:
  static Result<std::unique_ptr<SqliteCheckpointer>> start(const std::string& path,
                                                           WalLimits limits, Log& log,
                                                           const std::string& where);
  ~SqliteCheckpointer();
  SqliteCheckpointer(const SqliteCheckpointer&) = delete;
  SqliteCheckpointer& operator=(const SqliteCheckpointer&) = delete;

  // After a commit: the log now has this many pages.
  void committed(int wal_pages);
  // Before a transaction: finishes what the thread has begun, so that the log starts over. A
  // failure says that the log is full.
  Result<void> before_write(sqlite3* writer);

 private:
  SqliteCheckpointer(SqliteHandle db, WalLimits limits, Log& log, std::string where);
  void work();
  void report(int code);

  SqliteHandle db_;
  WalLimits limits_;
  Log& log_;
  std::string where_;
  int wal_pages_ = 0;  // writing thread

  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool running_ = false;
  bool finished_ = false;
  bool stop_ = false;
  int reported_ = SQLITE_OK;
  std::thread thread_;
};

}  // namespace flow
