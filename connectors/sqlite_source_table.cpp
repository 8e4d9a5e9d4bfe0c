#include "connectors/sqlite_source_table.h"

#include <limits>
#include <new>

#include "core/cast_number.h"
#include "core/row_json.h"

namespace flow {

namespace {

constexpr unsigned json_subtype = 'J';  // how SQLite's JSON functions know their own

struct Table {
  sqlite3_vtab base;
  SourceTable* source;
};

struct Cursor {
  sqlite3_vtab_cursor base;
  SourceTable* source;
};

SourceTable& source_of(sqlite3_vtab_cursor* cursor) {
  return *reinterpret_cast<Cursor*>(cursor)->source;
}

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

// Without rowid, so that records may have fields called rowid or oid.
int connect(sqlite3* db, void* context, int, const char* const*, sqlite3_vtab** out, char**) {
  auto* source = static_cast<SourceTable*>(context);
  std::string sql = "CREATE TABLE source(";
  for (const std::string& column : source->columns) sql += quoted(column) + ",";
  sql += quoted(SourceTable::everything) + " PRIMARY KEY) WITHOUT ROWID";
  const int rc = sqlite3_declare_vtab(db, sql.c_str());
  if (rc != SQLITE_OK) return rc;
  auto* table = new (std::nothrow) Table{{}, source};
  if (table == nullptr) return SQLITE_NOMEM;
  *out = &table->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<Table*>(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
  info->estimatedCost = 1e6;
  info->estimatedRows = 1'000'000;
  return SQLITE_OK;
}

int open(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  auto* cursor = new (std::nothrow) Cursor{{}, reinterpret_cast<Table*>(table)->source};
  if (cursor == nullptr) return SQLITE_NOMEM;
  *out = &cursor->base;
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  delete reinterpret_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  SourceTable& source = source_of(cursor);
  source.current = source.first;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++source_of(cursor).current;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) {
  const SourceTable& source = source_of(cursor);
  return source.rows == nullptr || source.current >= source.rows->rows() ? 1 : 0;
}

void lend(sqlite3_context* out, std::string_view text) {
  sqlite3_result_text64(out, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

// What is too large for a double is infinite: it still compares as it should.
double as_double(std::string_view token) {
  const auto number = parse_number(token);
  const auto value = number ? nearest_float64(*number, token) : std::nullopt;
  if (value) return *value;
  const double infinity = std::numeric_limits<double>::infinity();
  return token.front() == '-' ? -infinity : infinity;
}

void give(sqlite3_context* out, const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::null: return;  // null is what SQLite takes when nothing is said
    case Kind::boolean:
    case Kind::int64: sqlite3_result_int64(out, value.i()); return;
    case Kind::float64: sqlite3_result_double(out, value.d()); return;
    case Kind::decimal: sqlite3_result_double(out, as_double(value.text())); return;
    case Kind::text:
    case Kind::uuid: lend(out, value.text()); return;
    case Kind::json:
      lend(out, value.text());
      sqlite3_result_subtype(out, json_subtype);
      return;
    case Kind::bytes:
      sqlite3_result_blob64(out, value.text().data(), value.text().size(), SQLITE_STATIC);
      return;
    case Kind::date:
    case Kind::timestamp:
    case Kind::timestamptz: {
      std::string text;
      append_text(text, value);
      sqlite3_result_text64(out, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
      return;
    }
  }
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* out, int index) {
  const SourceTable& source = source_of(cursor);
  const auto i = static_cast<std::size_t>(index);
  if (i < source.columns.size()) give(out, source.rows->row(source.current)[i]);
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor*, sqlite3_int64*) { return SQLITE_ERROR; }

sqlite3_module make_module() {
  sqlite3_module module{};
  module.xConnect = connect;  // without xCreate it is there by its own name
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xOpen = open;
  module.xClose = close;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}

}  // namespace

int SourceTable::offer(sqlite3* db) {
  static const sqlite3_module module = make_module();
  const int rc = sqlite3_create_module_v2(db, "source", &module, this, nullptr);
  if (rc != SQLITE_OK) return rc;
  sqlite3_stmt* first_use = nullptr;  // connects it
  const int connected = sqlite3_prepare_v2(db, "SELECT 1 FROM source", -1, &first_use, nullptr);
  sqlite3_finalize(first_use);
  return connected;
}

}  // namespace flow
