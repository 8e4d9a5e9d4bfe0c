#pragma once
// Writes rows into one SQLite table by prepared statements.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "connectors/sqlite_catalog.h"
#include "core/batch.h"
#include "core/pipeline.h"

namespace flow {

// Inside the caller's transaction. Every parameter is bound for every row, so nothing of the row
// before stays. Decimals, text, JSON and UUIDs are bound as text; dates and times as text in the
// form of RFC 3339; columns of a numeric affinity take only what they keep exactly
// (sqlite_types.h). No allocation per row once warm. Threads: one. Errors: the record and column of
// the row that failed, as far as SQLite tells.
class SqliteRowWriter {
 public:
  // `plan`: the columns in cell order. `cancelled`: looked at now and then.
  static Result<SqliteRowWriter> make(sqlite3* db, const SqliteTable& table, const Columns& plan,
                                      const TargetSpec& spec, const std::atomic<bool>& cancelled);

  // The rows order[first, last).
  Result<void> write(const Batch& batch, const RowSet& rows, std::size_t first, std::size_t last);
  Result<void> write_row(const Batch& batch, const RowSet& rows, std::uint32_t row);
  // Fails once cancelled; to be asked every few hundred rows.
  Result<void> check_cancelled() const;

 private:
  struct Cell {
    std::string name;
    std::string declared;
    bool numeric = false;  // its affinity turns text into numbers
    std::string scratch;   // text of dates and times, alive until the statement is reset
  };
  SqliteRowWriter(sqlite3* db, std::string where, const std::atomic<bool>& cancelled)
      : db_(db), where_(std::move(where)), cancelled_(&cancelled) {}

  // Why the value cannot be stored as it is; null: it can.
  const char* bind(sqlite3_stmt* statement, int index, const Value& value, Cell& cell);
  Result<void> put(const Batch& batch, const RowSet& rows, std::uint32_t row);
  Result<void> erase(const Batch& batch, const RowSet& rows, std::uint32_t row);
  Result<void> finish(sqlite3_stmt* statement, const Batch& batch, const RowSet& rows,
                      std::uint32_t row);
  Failure refused(const char* why, const Cell& cell, const Batch& batch, const RowSet& rows,
                  std::uint32_t row) const;

  sqlite3* db_;
  std::string where_;
  const std::atomic<bool>* cancelled_;
  std::vector<Cell> cells_;
  std::vector<std::size_t> key_;
  SqliteStatement put_;
  SqliteStatement erase_;  // merge only
};

}  // namespace flow
