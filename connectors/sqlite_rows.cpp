#include "connectors/sqlite_rows.h"

#include <algorithm>

#include "core/row_json.h"

namespace flow {
namespace {

constexpr std::size_t rows_between_looks = 256;

std::string insert_sql(const SqliteTable& table, const Columns& plan, const TargetSpec& spec) {
  std::string names, values, updates;
  for (const Column& column : plan) {
    const std::string name = quote_identifier(column.name);
    names += (names.empty() ? "" : ", ") + name;
    values += values.empty() ? "?" : ", ?";
    const bool key = std::find(spec.key.begin(), spec.key.end(), column.name) != spec.key.end();
    if (!key) updates += (updates.empty() ? "" : ", ") + name + " = excluded." + name;
  }
  std::string sql =
      "INSERT INTO " + quote_identifier(table.name) + " (" + names + ") VALUES (" + values + ")";
  if (spec.mode != Mode::merge) return sql;
  std::string key;
  for (const std::string& name : spec.key) {
    key += (key.empty() ? "" : ", ") + quote_identifier(name);
  }
  return sql + " ON CONFLICT (" + key + ") DO " +
         (updates.empty() ? "NOTHING" : "UPDATE SET " + updates);
}

std::string delete_sql(const SqliteTable& table, const TargetSpec& spec) {
  std::string where;
  for (const std::string& name : spec.key) {
    where += (where.empty() ? "" : " AND ") + quote_identifier(name) + " = ?";
  }
  return "DELETE FROM " + quote_identifier(table.name) + " WHERE " + where;
}

// Text that is never null: SQLite takes a null pointer for NULL.
void bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text(statement, index, text.data() != nullptr ? text.data() : "",
                    static_cast<int>(text.size()), SQLITE_STATIC);
}

void bind_bytes(sqlite3_stmt* statement, int index, std::string_view bytes) {
  if (bytes.empty()) {
    sqlite3_bind_zeroblob(statement, index, 0);
  } else {
    sqlite3_bind_blob(statement, index, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_STATIC);
  }
}

}  // namespace

Result<SqliteRowWriter> SqliteRowWriter::make(sqlite3* db, const SqliteTable& table,
                                              const Columns& plan, const TargetSpec& spec,
                                              const std::atomic<bool>& cancelled) {
  SqliteRowWriter writer(db, "target " + spec.label, cancelled);
  for (const Column& column : plan) {
    const auto known = std::find_if(table.columns.begin(), table.columns.end(),
                                    [&](const Column& c) { return c.name == column.name; });
    FLOW_CHECK(known != table.columns.end(), "the plan names a column that the table has not");
    const auto at = static_cast<std::size_t>(known - table.columns.begin());
    writer.cells_.push_back(
        {column.name, known->type_text, turns_text_into_numbers(table.affinities[at]), {}});
  }
  auto put = sqlite_prepare(db, insert_sql(table, plan, spec), writer.where_);
  if (!put) return put.failure();
  writer.put_ = std::move(put).value();
  if (spec.mode != Mode::merge) return writer;
  for (const std::string& name : spec.key) {
    const auto cell = std::find_if(writer.cells_.begin(), writer.cells_.end(),
                                   [&](const Cell& c) { return c.name == name; });
    FLOW_CHECK(cell != writer.cells_.end(), "the plan lacks a key column");
    writer.key_.push_back(static_cast<std::size_t>(cell - writer.cells_.begin()));
  }
  auto erase = sqlite_prepare(db, delete_sql(table, spec), writer.where_);
  if (!erase) return erase.failure();
  writer.erase_ = std::move(erase).value();
  return writer;
}

Result<void> SqliteRowWriter::write(const Batch& batch, const RowSet& rows, std::size_t first,
                                    std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    if (i % rows_between_looks == 0) {
      if (auto go_on = check_cancelled(); !go_on) return go_on;
    }
    if (auto done = write_row(batch, rows, rows.order[i]); !done) return done;
  }
  return {};
}

Result<void> SqliteRowWriter::write_row(const Batch& batch, const RowSet& rows, std::uint32_t row) {
  return rows.op[row] == RowOp::erase ? erase(batch, rows, row) : put(batch, rows, row);
}

Result<void> SqliteRowWriter::check_cancelled() const {
  if (!cancelled_->load(std::memory_order_relaxed)) return {};
  return sqlite_failure(SQLITE_INTERRUPT, "the write was cancelled", where_);
}

const char* SqliteRowWriter::bind(sqlite3_stmt* statement, int index, const Value& value,
                                  Cell& cell) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::null: sqlite3_bind_null(statement, index); return nullptr;
    case Kind::boolean:
    case Kind::int64: sqlite3_bind_int64(statement, index, value.i()); return nullptr;
    case Kind::float64:
      if (value.d() != value.d()) return "is not a number, which SQLite would turn into NULL";
      sqlite3_bind_double(statement, index, value.d());
      return nullptr;
    case Kind::decimal:
      if (cell.numeric && !decimal_kept(value.text())) {
        return "has more digits than a number of SQLite keeps";
      }
      bind_text(statement, index, value.text());
      return nullptr;
    case Kind::text:
    case Kind::json:
    case Kind::uuid:
      if (cell.numeric && !text_kept(value.text())) {
        return "is text that looks like a number, and the column would turn it into one";
      }
      bind_text(statement, index, value.text());
      return nullptr;
    case Kind::bytes: bind_bytes(statement, index, value.text()); return nullptr;
    case Kind::date:
    case Kind::timestamp:
    case Kind::timestamptz:
      cell.scratch.clear();
      append_text(cell.scratch, value);
      bind_text(statement, index, cell.scratch);
      return nullptr;
  }
  return nullptr;
}

Result<void> SqliteRowWriter::put(const Batch& batch, const RowSet& rows, std::uint32_t row) {
  sqlite3_stmt* const statement = put_.get();
  const Value* const values = rows.row(row);
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    const char* why = bind(statement, static_cast<int>(c) + 1, values[c], cells_[c]);
    if (why != nullptr) return refused(why, cells_[c], batch, rows, row);
  }
  return finish(statement, batch, rows, row);
}

Result<void> SqliteRowWriter::erase(const Batch& batch, const RowSet& rows, std::uint32_t row) {
  sqlite3_stmt* const statement = erase_.get();
  const Value* const values = rows.row(row);
  for (std::size_t k = 0; k < key_.size(); ++k) {
    Cell& cell = cells_[key_[k]];
    const char* why = bind(statement, static_cast<int>(k) + 1, values[key_[k]], cell);
    if (why != nullptr) return refused(why, cell, batch, rows, row);
  }
  return finish(statement, batch, rows, row);
}

Result<void> SqliteRowWriter::finish(sqlite3_stmt* statement, const Batch& batch,
                                     const RowSet& rows, std::uint32_t row) {
  const int code = sqlite3_step(statement);
  if (code == SQLITE_DONE) [[likely]] {
    sqlite3_reset(statement);
    return {};
  }
  Failure failure = sqlite_failure(db_, where_);
  sqlite3_reset(statement);
  if (failure.of_record()) {
    failure.where += ": " + batch.where(rows.record[row]);
    failure.record = rows.record[row];
  }
  return failure;
}

Failure SqliteRowWriter::refused(const char* why, const Cell& cell, const Batch& batch,
                                 const RowSet& rows, std::uint32_t row) const {
  return {.cls = FailureClass::invalid,
          .code = "cast.sqlite",
          .where = where_ + ": " + batch.where(rows.record[row]) + ", column " + cell.name,
          .what = "the value " + std::string(why) + " (declared " + cell.declared + ")",
          .hint = "declare the column TEXT, or give it another value by columns:",
          .record = rows.record[row]};
}

}  // namespace flow
