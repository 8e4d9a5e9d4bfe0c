#include "connectors/sqlite_client.h"

#include <chrono>
#include <thread>

#include "core/classify.h"
#include "core/sqlite_path.h"

namespace flow {
namespace {

constexpr int read_wait_ms_max = 10'000;

std::string hint_for(int extended_code) {
  switch (extended_code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "another process writes to the database: see which by lsof";
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return extended_code == SQLITE_READONLY_DBMOVED
                 ? "stop, put the file back, and start again"
                 : "give this user the right to write the file and its directory";
    case SQLITE_CANTOPEN: return "check the path of url: and the rights on it and its directory";
    case SQLITE_FULL: return "free some space on the disk of the database";
    case SQLITE_IOERR: return "look at the disk of the database: free space and kernel log";
    case SQLITE_CORRUPT: return "check it with: sqlite3 FILE 'PRAGMA integrity_check'";
    case SQLITE_NOTADB: return "name a SQLite database in url:";
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH: return "correct the record, or the table's constraint";
    case SQLITE_TOOBIG: return "the value is larger than SQLite holds: leave it out by columns:";
    case SQLITE_ERROR:
    case SQLITE_SCHEMA: return "compare the table with the pipeline: flow check --connect FILE";
    default: return "look up the code in flow-errors(7)";
  }
}

}  // namespace

Failure sqlite_failure(int extended_code, const std::string& what, const std::string& where) {
  const FailureRow* row = find_sqlite(extended_code);
  return {.cls = classify_sqlite(extended_code),
          .code = row != nullptr ? std::string(row->code) : std::to_string(extended_code),
          .where = where,
          .what = what,
          .hint = hint_for(extended_code)};
}

Failure sqlite_failure(sqlite3* db, const std::string& where) {
  return sqlite_failure(sqlite3_extended_errcode(db), sqlite3_errmsg(db), where);
}

Result<SqliteHandle> open_sqlite(const std::string& path_or_uri, int flags,
                                 const std::string& where) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path_or_uri.c_str(), &opened, flags, nullptr);
  SqliteHandle db(opened);
  if (code != SQLITE_OK) {
    return db ? sqlite_failure(db.get(), where) : sqlite_failure(code, sqlite3_errstr(code), where);
  }
  sqlite3_extended_result_codes(db.get(), 1);
  return db;
}

Result<void> sqlite_run(sqlite3* db, const std::string& sql, const std::string& where) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return sqlite_failure(db, where);
}

Result<SqliteStatement> sqlite_prepare(sqlite3* db, const std::string& sql,
                                       const std::string& where) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return sqlite_failure(db, where);
  return SqliteStatement(statement);
}

Result<SqliteRows> sqlite_query(sqlite3* db, const std::string& sql,
                                const std::vector<std::string>& parameters,
                                const std::string& where) {
  auto statement = sqlite_prepare(db, sql, where);
  if (!statement) return statement.failure();
  sqlite3_stmt* const s = statement->get();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    sqlite3_bind_text(s, static_cast<int>(i) + 1, parameters[i].data(),
                      static_cast<int>(parameters[i].size()), SQLITE_STATIC);
  }
  SqliteRows rows;
  int code = sqlite3_step(s);
  for (; code == SQLITE_ROW; code = sqlite3_step(s)) {
    auto& row = rows.emplace_back();
    for (int c = 0; c < sqlite3_column_count(s); ++c) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(s, c));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(s, c));
      row.push_back(text == nullptr ? std::nullopt : std::optional(std::string(text, size)));
    }
  }
  if (code != SQLITE_DONE) return sqlite_failure(db, where);
  return rows;
}

namespace {

Result<void> look_once(const SqliteView& view, const std::string& where,
                       const std::function<Result<void>(sqlite3*)>& look) {
  auto db = open_sqlite(view.uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, where);
  if (!db) return db.failure();
  sqlite3_busy_timeout(db->get(), read_wait_ms_max);
  if (view.private_index) {
    sqlite3_db_config(db->get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    auto alone = sqlite_run(db->get(), "PRAGMA locking_mode=EXCLUSIVE", where);
    if (!alone) return alone;
  }
  return look(db->get());
}

}  // namespace

Result<void> look_into_sqlite(const std::string& path, const std::string& where,
                              const std::function<Result<void>(sqlite3*)>& look) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(read_wait_ms_max);
  for (;;) {
    const SqliteView view = sqlite_view(path, Index::shared);
    auto done = look_once(view, where, look);
    const auto how = done ? Reading::succeeded : Reading::failed;
    if (counts(view, path, how) || std::chrono::steady_clock::now() >= end) return done;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace flow
