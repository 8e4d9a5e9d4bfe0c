#pragma once
// What a Postgres table is: columns, unique constraints, rights. Read once, before the first
// record.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/postgres_client.h"
#include "core/column.h"
#include "core/identifier.h"
#include "core/pipeline.h"

namespace flow {

// How a column's values travel in binary. special: as text, cast by the server (inet, arrays,
// interval, ...).
enum class PgWire : std::uint8_t {
  boolean,
  int16,
  int32,
  int64,
  float32,
  float64,
  numeric,
  text,
  jsonb,
  bytes,
  date,
  timestamp,
  uuid,
  special,
};

// A column of a table. wire, element, array: of its base type (domains resolved); declared: what
// DDL calls it.
struct PgColumn {
  Column column;
  PgWire wire = PgWire::special;
  Oid element = 0;
  Oid array = 0;
  std::string declared;
  bool can_insert = false;
  bool can_update = false;
  bool can_select = false;
  std::string
      why_not_key;  // empty: values are equal when they are spelled the same, as merge needs
};

enum class PgKind : std::uint8_t { table, partitioned, view, foreign, other };

struct PgUnique {
  std::string name;
  std::vector<std::string> columns;
  bool partial = false;
  bool deferrable = false;
  bool valid = true;
  bool expression = false;  // takes part beside the columns
};

struct PgTable {
  TableName name;  // schema always filled in
  PgKind kind = PgKind::table;
  std::string kind_name;
  bool insertable_view = false;
  bool row_security = false;  // COPY refuses such a table
  bool has_rules = false;
  bool may_drop_rows = false;  // a BEFORE INSERT trigger can
  bool schema_usage = false;
  bool can_insert = false;
  bool can_update = false;
  bool can_select = false;
  bool can_delete = false;
  bool can_temp = false;
  std::string role;
  std::string database;
  std::vector<PgColumn> columns;
  std::vector<PgUnique> uniques;

  const PgColumn* find(std::string_view name) const;
};

// Errors: as the client's; nullopt: no such table in the search path (or the named schema).
Result<std::optional<PgTable>> read_table(PostgresClient& client, const TableName& name);

// Tables that a wrong name may have meant, in `schema` or everywhere when empty.
Result<std::vector<std::string>> table_names(PostgresClient& client, const std::string& schema);

// CREATE TABLE of the columns that the pipeline gives. Errors: setup, a column has no type.
Result<std::string> create_table_sql(const TableName& name, const std::vector<ColumnSpec>& columns,
                                     const std::vector<std::string>& key);

}  // namespace flow
