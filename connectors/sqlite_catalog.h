#pragma once
// What a SQLite table is: columns, affinities, unique keys. Read once, before the first record.
#include <string>
#include <vector>

#include "connectors/sqlite_client.h"
#include "connectors/sqlite_types.h"
#include "core/identifier.h"
#include "core/pipeline.h"

namespace flow {

struct SqliteUnique {
  std::string name;
  std::vector<std::string> columns;
  std::string why_not;  // empty: may be the key of a merge
};

struct SqliteTable {
  std::string name;  // as the database spells it
  Columns columns;
  std::vector<Affinity> affinities;  // per column
  std::vector<SqliteUnique> uniques;
};

// nullopt: no such table. Errors: setup when it is a view or a virtual table, or in another schema
// than main.
Result<std::optional<SqliteTable>> read_sqlite_table(sqlite3* db, const TableName& name,
                                                     const std::string& where);
// The names of the tables there are, for messages.
Result<std::vector<std::string>> sqlite_table_names(sqlite3* db, const std::string& where);

// Errors: setup when no unique key is exactly `key`, or merge could not rely on it.
Result<void> check_sqlite_key(const SqliteTable& table, const std::vector<std::string>& key,
                              const std::string& where);

Result<std::string> sqlite_create_table_sql(const TableName& name,
                                            const std::vector<ColumnSpec>& columns,
                                            const std::vector<std::string>& key,
                                            const std::string& where);

}  // namespace flow
