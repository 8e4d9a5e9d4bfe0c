#include "connectors/sqlite_checkpoint.h"

#include <utility>

namespace flow {

Result<std::unique_ptr<SqliteCheckpointer>> SqliteCheckpointer::start(const std::string& path,
                                                                      WalLimits limits, Log& log,
                                                                      const std::string& where) {
  auto db = open_sqlite(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, where);
  if (!db) return db.failure();
  auto set = sqlite_run(db->get(), "PRAGMA synchronous = FULL", where);
  if (!set) return set.failure();
  return std::unique_ptr<SqliteCheckpointer>(
      new SqliteCheckpointer(std::move(db).value(), limits, log, where));
}

SqliteCheckpointer::SqliteCheckpointer(SqliteHandle db, WalLimits limits, Log& log,
                                       std::string where)
    : db_(std::move(db)), limits_(limits), log_(log), where_(std::move(where)), thread_([this] {
        work();
      }) {}

SqliteCheckpointer::~SqliteCheckpointer() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SqliteCheckpointer::committed(int wal_pages) {
  wal_pages_ = wal_pages;
  if (wal_pages < limits_.soft) return;
  {
    const std::lock_guard guard(mutex_);
    if (running_ || finished_) return;
    wanted_ = true;
  }
  changed_.notify_all();
}

Result<void> SqliteCheckpointer::before_write(sqlite3* writer) {
  const bool full = wal_pages_ >= limits_.hard;
  {
    std::unique_lock guard(mutex_);
    if (full) changed_.wait(guard, [&] { return !running_ && !wanted_; });
    if (!finished_ && !full) return {};
    finished_ = false;
  }
  int pages = 0;
  int copied = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(writer, nullptr, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
  if (code != SQLITE_OK && code != SQLITE_BUSY) report(code);
  if (!full || (code == SQLITE_OK && copied == pages)) return {};
  return Failure{.cls = FailureClass::transient,
                 .code = "SQLITE_BUSY",
                 .where = where_,
                 .what = "the write-ahead log has grown to " + std::to_string(pages) +
                         " pages, because a reader of the database stays in its transaction",
                 .hint = "end that reader: see who has the file open by lsof"};
}

void SqliteCheckpointer::work() {
  std::unique_lock guard(mutex_);
  for (;;) {
    changed_.wait(guard, [&] { return stop_ || wanted_; });
    if (stop_) return;
    wanted_ = false;
    running_ = true;
    guard.unlock();
    const int code =
        sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    guard.lock();
    running_ = false;
    finished_ = true;
    if (code != SQLITE_OK && code != SQLITE_BUSY) report(code);
    changed_.notify_all();
  }
}

void SqliteCheckpointer::report(int code) {
  if (std::exchange(reported_, code) == code) return;
  const Failure failure = sqlite_failure(code, sqlite3_errstr(code), where_);
  log_.event(
      Level::warn, "checkpoint.failed",
      {{"where", where_}, {"what", failure.what}, {"code", failure.code}, {"hint", failure.hint}});
}

}  // namespace flow
