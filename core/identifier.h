#pragma once
// Names of tables and columns in SQL stores: taken case-exactly, quoted everywhere.
#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"

namespace flow {

// schema empty: the store's search path decides.
struct TableName {
  std::string schema;
  std::string table;
  std::string text() const;  // as people write it: quoted only where a part needs it
};

// `table`, `schema.table`; parts may be quoted: "Mixed"."Order Items", with "" for a quote inside.
// Unquoted parts keep their case. Errors: setup, with what is wrong and how to write it.
Result<TableName> parse_table_name(std::string_view text);

std::string quote_identifier(std::string_view name);  // a"b -> "a""b"
std::string quoted(const TableName& name);            // "schema"."table"

// Postgres cuts longer names, so that two of them could meet in one column.
constexpr std::size_t postgres_identifier_bytes_max = 63;
// Errors: setup when `name` is empty, holds U+0000 or is longer than that.
Result<void> check_postgres_identifier(std::string_view name);

}  // namespace flow
