#include "connectors/sqlite_sandbox.h"

#include <cstdint>

#include "connectors/sqlite_source_table.h"

namespace flow {

namespace {

constexpr int text_bytes_max = 256 << 20;

bool is_date_function(std::string_view name) {
  return name == "date" || name == "time" || name == "datetime" || name == "julianday" ||
         name == "unixepoch" || name == "strftime";
}

}  // namespace

int SqlSandbox::no_time(sqlite3_vfs* vfs, sqlite3_int64*) {
  reinterpret_cast<Clock*>(vfs)->asked = 1;
  return SQLITE_ERROR;
}

int SqlSandbox::no_time_double(sqlite3_vfs* vfs, double*) { return no_time(vfs, nullptr); }

int SqlSandbox::open() {
  const sqlite3_vfs* base = sqlite3_vfs_find(nullptr);
  if (base == nullptr) return SQLITE_ERROR;
  clock_.vfs = *base;
  clock_.vfs.pNext = nullptr;
  clock_.vfs.xCurrentTime = no_time_double;
  clock_.vfs.xCurrentTimeInt64 = no_time;
  clock_name_ = "no-clock-" + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  clock_.vfs.zName = clock_name_.c_str();
  int rc = sqlite3_vfs_register(&clock_.vfs, 0);
  if (rc != SQLITE_OK) return rc;
  registered_ = true;
  constexpr int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
  rc = sqlite3_open_v2(":memory:", &db_, flags, clock_name_.c_str());
  if (rc != SQLITE_OK) return rc;
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(db_, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, text_bytes_max);
  sqlite3_set_authorizer(db_, authorize, this);
  return read_functions();
}

SqlSandbox::~SqlSandbox() {
  sqlite3_close_v2(db_);
  if (registered_) sqlite3_vfs_unregister(&clock_.vfs);
}

int SqlSandbox::read_functions() {
  sqlite3_stmt* statement = nullptr;
  int rc = sqlite3_prepare_v2(
      db_, "SELECT DISTINCT name FROM pragma_function_list WHERE type = 's' AND (flags & ?1) <> 0",
      -1, &statement, nullptr);
  if (rc != SQLITE_OK) return rc;
  sqlite3_bind_int(statement, 1, SQLITE_DETERMINISTIC);
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
    functions_.emplace(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)));
  }
  const int end = sqlite3_finalize(statement);
  return rc == SQLITE_DONE ? end : rc;
}

int SqlSandbox::prepare(const std::string& sql, sqlite3_stmt*& statement) {
  refused_.clear();
  star_seen_ = dates_seen_ = false;
  clock_.asked = 0;
  watching_ = true;
  const int rc = sqlite3_prepare_v3(db_, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                    SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  watching_ = false;
  return rc;
}

int SqlSandbox::authorize(void* self, int action, const char* a, const char* b, const char*,
                          const char*) {
  const auto text = [](const char* s) { return s == nullptr ? std::string_view() : s; };
  return static_cast<SqlSandbox*>(self)->check(action, text(a), text(b));
}

int SqlSandbox::check(int action, std::string_view a, std::string_view b) {
  if (!watching_) return SQLITE_OK;
  std::string why;
  switch (action) {
    case SQLITE_SELECT: return SQLITE_OK;
    case SQLITE_READ:
      if (a == "source") {
        star_seen_ = star_seen_ || b == SourceTable::everything;
        return SQLITE_OK;
      }
      why = "the only table is source, and this reads " + std::string(a);
      break;
    case SQLITE_FUNCTION:
      if (functions_.count(b) != 0) {
        dates_seen_ = dates_seen_ || is_date_function(b);
        return SQLITE_OK;
      }
      why = "the function " + std::string(b) +
            " is not allowed: the result must follow from the record alone, so that a record read "
            "again gives the same row";
      break;
    default: why = "the statement does more than SELECT from source"; break;
  }
  if (refused_.empty()) refused_ = std::move(why);
  return SQLITE_DENY;
}

}  // namespace flow
