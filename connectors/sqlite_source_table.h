#pragma once
// The table `source` of a SQL transform: the rows of a batch, read in place.
#include <cstddef>
#include <sqlite3.h>
#include <string>
#include <vector>

#include "core/batch.h"

namespace flow {

// Shape: named columns over the cells of a RowSet, row by row from `first`. Text is lent to SQLite,
// not copied. In expressions a decimal is a double, a boolean 0 or 1, JSON and times are text. The
// table has one column more, `everything`, that only `SELECT *` asks for. Threads: one. Owner:
// outlives the connection.
struct SourceTable {
  static constexpr const char* everything = "\x01 every column";

  std::vector<std::string> columns;
  const RowSet* rows = nullptr;
  std::size_t first = 0;
  std::size_t current = 0;  // the row that the statement is at

  // Offers `source` with the columns as they are now. Returns a SQLite code.
  int offer(sqlite3* db);
};

}  // namespace flow
