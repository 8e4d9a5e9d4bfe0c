#pragma once
// A connection of its own in which a SQL transform runs: in memory, without files, extensions,
// clock or chance.
#include <set>
#include <sqlite3.h>
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// Shape: the connection, and what it refused or noticed. Threads: one.
class SqlSandbox {
 public:
  SqlSandbox() = default;
  ~SqlSandbox();
  SqlSandbox(const SqlSandbox&) = delete;
  SqlSandbox& operator=(const SqlSandbox&) = delete;

  // Returns a SQLite code.
  int open();
  sqlite3* db() const { return db_; }
  // Prepares a statement that only SELECTs from `source`, with functions of their arguments alone;
  // what it was refused for is in refused(), in words. Returns a SQLite code.
  int prepare(const std::string& sql, sqlite3_stmt*& statement);
  const std::string& refused() const { return refused_; }
  // Of the last prepare, and of what ran since:
  bool star_seen() const { return star_seen_; }           // SELECT *
  bool dates_seen() const { return dates_seen_; }         // a date function
  bool clock_asked() const { return clock_.asked != 0; }  // 'now'

 private:
  // SQLite's file system layer with a clock that never tells the time. `vfs` is first: SQLite
  // passes it around.
  struct Clock {
    sqlite3_vfs vfs;
    int asked;
  };
  static int no_time(sqlite3_vfs* vfs, sqlite3_int64*);
  static int no_time_double(sqlite3_vfs* vfs, double*);
  static int authorize(void* self, int action, const char* a, const char* b, const char*,
                       const char*);
  int check(int action, std::string_view a, std::string_view b);
  int read_functions();

  Clock clock_{};
  std::string clock_name_;
  bool registered_ = false;
  sqlite3* db_ = nullptr;
  std::set<std::string, std::less<>> functions_;  // whose result follows from their arguments
  bool watching_ = false;
  std::string refused_;
  bool star_seen_ = false;
  bool dates_seen_ = false;
};

}  // namespace flow
