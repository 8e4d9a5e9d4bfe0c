#include "connectors/sqlite_catalog.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/suggest.h"

namespace flow {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

Failure setup(std::string where, std::string what, std::string hint) {
  return {.cls = FailureClass::setup,
          .where = std::move(where),
          .what = std::move(what),
          .hint = std::move(hint)};
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + quote_identifier(name);
  return text;
}

struct Found {
  std::string name;
  bool strict = false;
};

Result<std::optional<Found>> find_table(sqlite3* db, const TableName& name,
                                        const std::string& where) {
  if (!name.schema.empty() && !same_name(name.schema, "main")) {
    return setup(where, "a SQLite file has no schema " + name.schema,
                 "write the table's name alone");
  }
  auto rows = sqlite_query(db,
                           "SELECT name, type, strict FROM pragma_table_list"
                           " WHERE schema = 'main' AND name = ?1 COLLATE NOCASE",
                           {name.table}, where);
  if (!rows) return rows.failure();
  if (rows->empty()) return std::optional<Found>();
  const auto& row = (*rows)[0];
  const std::string kind = row[1].value_or("");
  if (kind != "table") {
    return setup(where, name.text() + " is a " + kind + (kind == "view" ? "" : " table"),
                 "name an ordinary table");
  }
  return std::optional(Found{row[0].value_or(""), row[2] == "1"});
}

// Columns of one index, and what of it keeps merge from relying on it.
Result<SqliteUnique> read_unique(sqlite3* db, const std::string& name, bool partial,
                                 const std::string& where) {
  auto rows =
      sqlite_query(db, "SELECT name, coll FROM pragma_index_xinfo(?1) WHERE key = 1 ORDER BY seqno",
                   {name}, where);
  if (!rows) return rows.failure();
  SqliteUnique unique{name, {}, partial ? "covers only a part of the rows" : ""};
  for (const auto& row : *rows) {
    unique.columns.push_back(row[0].value_or(""));
    if (!row[0]) unique.why_not = "is on an expression";
    if (!same_name(row[1].value_or(""), "BINARY")) {
      unique.why_not = "compares " + row[0].value_or("") + " as " + row[1].value_or("") +
                       ", so that different spellings are one key";
    }
  }
  return unique;
}

Result<std::vector<SqliteUnique>> read_uniques(sqlite3* db, const std::string& table,
                                               std::vector<std::string> primary_key,
                                               const std::string& where) {
  auto rows = sqlite_query(
      db, "SELECT name, origin, partial FROM pragma_index_list(?1) WHERE \"unique\" = 1", {table},
      where);
  if (!rows) return rows.failure();
  std::vector<SqliteUnique> uniques;
  bool indexed = false;
  for (const auto& row : *rows) {
    auto unique = read_unique(db, row[0].value_or(""), row[2] == "1", where);
    if (!unique) return unique.failure();
    uniques.push_back(std::move(unique).value());
    indexed = indexed || row[1] == "pk";
  }
  // An INTEGER PRIMARY KEY is the row's own number and has no index.
  if (!primary_key.empty() && !indexed) uniques.push_back({"the primary key", primary_key, ""});
  return uniques;
}

}  // namespace

Result<std::optional<SqliteTable>> read_sqlite_table(sqlite3* db, const TableName& name,
                                                     const std::string& where) {
  auto found = find_table(db, name, where);
  if (!found) return found.failure();
  if (!*found) return std::optional<SqliteTable>();
  SqliteTable table;
  table.name = (*found)->name;
  const auto strictness = (*found)->strict ? Strictness::strict : Strictness::flexible;
  auto rows = sqlite_query(db,
                           "SELECT name, type, \"notnull\", dflt_value, pk, hidden"
                           " FROM pragma_table_xinfo(?1) ORDER BY cid",
                           {table.name}, where);
  if (!rows) return rows.failure();
  std::vector<std::string> primary_key;
  for (const auto& row : *rows) {
    const std::string declared = row[1].value_or("");
    Column column = column_declared(row[0].value_or(""), declared, strictness);
    column.nullable = row[2] != "1";
    column.has_default = row[3].has_value();
    column.generated = row[5] != "0";
    if (row[4] != "0") primary_key.push_back(column.name);
    table.affinities.push_back(affinity_in(declared, strictness));
    table.columns.push_back(std::move(column));
  }
  auto uniques = read_uniques(db, table.name, primary_key, where);
  if (!uniques) return uniques.failure();
  table.uniques = std::move(uniques).value();
  const bool numbers_itself = !table.uniques.empty() && primary_key.size() == 1 &&
                              table.uniques.back().name == "the primary key";
  for (Column& column : table.columns) {
    if (numbers_itself && column.name == primary_key[0]) column.has_default = true;
  }
  return std::optional(std::move(table));
}

Result<std::vector<std::string>> sqlite_table_names(sqlite3* db, const std::string& where) {
  auto rows = sqlite_query(db,
                           "SELECT name FROM pragma_table_list WHERE schema = 'main'"
                           " AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
                           {}, where);
  if (!rows) return rows.failure();
  std::vector<std::string> names;
  for (const auto& row : *rows) names.push_back(row[0].value_or(""));
  return names;
}

Result<void> check_sqlite_key(const SqliteTable& table, const std::vector<std::string>& key,
                              const std::string& where) {
  for (const std::string& name : key) {
    const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                     [&](const Column& c) { return c.name == name; });
    if (column == table.columns.end()) {
      std::vector<std::string_view> names;
      for (const Column& c : table.columns) names.push_back(c.name);
      return setup(where, "the table has no column " + name + did_you_mean(name, names),
                   "correct key: or the table");
    }
    const auto at = static_cast<std::size_t>(column - table.columns.begin());
    if (column->type == Type::decimal && !turns_text_into_numbers(table.affinities[at])) {
      return setup(where, "key column " + name + " holds decimals as text, where 1.5 is not 1.50",
                   "declare it NUMERIC, or take another key");
    }
  }
  const std::set<std::string> wanted(key.begin(), key.end());
  std::string near;
  for (const SqliteUnique& unique : table.uniques) {
    if (std::set<std::string>(unique.columns.begin(), unique.columns.end()) != wanted) continue;
    if (unique.why_not.empty()) return {};
    near = "; " + unique.name + " " + unique.why_not;
  }
  return setup(where,
               "no unique constraint of the table is exactly on key (" + listed(key) + ")" + near,
               "CREATE UNIQUE INDEX " + quote_identifier(table.name + "_key") + " ON " +
                   quote_identifier(table.name) + " (" + quoted_list(key) + ")");
}

Result<std::string> sqlite_create_table_sql(const TableName& name,
                                            const std::vector<ColumnSpec>& columns,
                                            const std::vector<std::string>& key,
                                            const std::string& where) {
  if (columns.empty()) {
    return setup(where, "there are no columns to create the table from",
                 "name them under columns:");
  }
  std::string sql = "CREATE TABLE IF NOT EXISTS " + quote_identifier(name.table) + " (";
  for (const ColumnSpec& column : columns) {
    if (!column.type) {
      return setup(where, "the table is to be created, and column " + column.name + " has no type",
                   "give it one under columns:, or create the table by hand");
    }
    const bool is_key = std::find(key.begin(), key.end(), column.name) != key.end();
    sql += quote_identifier(column.name) + " " +
           declaration_for(*column.type, column.limits, is_key ? Role::key : Role::plain) +
           (is_key ? " NOT NULL, " : ", ");
  }
  if (!key.empty()) return sql + "PRIMARY KEY (" + quoted_list(key) + "))";
  sql.resize(sql.size() - 2);
  return sql + ")";
}

}  // namespace flow
