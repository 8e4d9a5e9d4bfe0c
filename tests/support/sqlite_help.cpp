#include "tests/support/sqlite_help.h"

#include <memory>
#include <sqlite3.h>
#include <stdexcept>

namespace flow::test {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

[[noreturn]] void fail(sqlite3* database, const std::string& sql) {
  throw std::runtime_error(std::string(sqlite3_errmsg(database)) + " in: " + sql);
}

}  // namespace

std::vector<std::vector<std::optional<std::string>>> sqlite_query(const std::filesystem::path& path,
                                                                  const std::string& sql) {
  sqlite3* opened = nullptr;
  const int open_code = sqlite3_open(path.c_str(), &opened);
  const std::unique_ptr<sqlite3, CloseDatabase> database(opened);
  if (open_code != SQLITE_OK) fail(opened, sql);
  sqlite3_busy_timeout(opened, 10'000);

  std::vector<std::vector<std::optional<std::string>>> rows;
  for (const char* rest = sql.c_str(); *rest != '\0';) {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(opened, rest, -1, &prepared, &rest) != SQLITE_OK) fail(opened, sql);
    const std::unique_ptr<sqlite3_stmt, Finalize> statement(prepared);
    if (prepared == nullptr) continue;
    int code = 0;
    while ((code = sqlite3_step(prepared)) == SQLITE_ROW) {
      auto& row = rows.emplace_back();
      for (int column = 0; column < sqlite3_column_count(prepared); ++column) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, column));
        const auto bytes = static_cast<size_t>(sqlite3_column_bytes(prepared, column));
        row.push_back(text == nullptr ? std::nullopt
                                      : std::optional<std::string>(std::in_place, text, bytes));
      }
    }
    if (code != SQLITE_DONE) fail(opened, sql);
  }
  return rows;
}

}  // namespace flow::test
