#pragma once
// SQLite's C interface with owners, and its errors as failures.
#include <functional>
#include <memory>
#include <optional>
#include <sqlite3.h>
#include <string>
#include <vector>

#include "core/result.h"

namespace flow {

struct SqliteClose {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteHandle = std::unique_ptr<sqlite3, SqliteClose>;
using SqliteStatement = std::unique_ptr<sqlite3_stmt, SqliteClose>;
using SqliteRows = std::vector<std::vector<std::optional<std::string>>>;

// Class by the extended code. `what`: SQLite's message, which holds names but no values.
Failure sqlite_failure(int extended_code, const std::string& what, const std::string& where);
// The last error of this connection.
Failure sqlite_failure(sqlite3* db, const std::string& where);

Result<SqliteHandle> open_sqlite(const std::string& path_or_uri, int flags,
                                 const std::string& where);
Result<void> sqlite_run(sqlite3* db, const std::string& sql, const std::string& where);
Result<SqliteStatement> sqlite_prepare(sqlite3* db, const std::string& sql,
                                       const std::string& where);
// All rows of a query, values as text; `parameters` are bound to ?1, ?2, ...
Result<SqliteRows> sqlite_query(sqlite3* db, const std::string& sql,
                                const std::vector<std::string>& parameters,
                                const std::string& where);

// Calls `look` with a connection that sees the database at `path` as it is and leaves no trace on
// it or beside it. `look` may be called again when somebody wrote meanwhile.
Result<void> look_into_sqlite(const std::string& path, const std::string& where,
                              const std::function<Result<void>(sqlite3*)>& look);

}  // namespace flow
