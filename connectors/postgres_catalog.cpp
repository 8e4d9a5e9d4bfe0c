#include "connectors/postgres_catalog.h"

#include <algorithm>
#include <charconv>

namespace flow {
namespace {

// Names are compared as text, never through regclass, so that case and quotes cannot change them.
constexpr const char* table_sql = R"(
SELECT c.oid, n.nspname, c.relname, c.relkind,
       c.relkind = 'v' AND pg_relation_is_updatable(c.oid, true) & 8 <> 0,
       row_security_active(c.oid), c.relhasrules,
       EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled <> 'D'
                AND NOT t.tgisinternal AND t.tgtype & 7 = 7),
       has_schema_privilege(n.oid, 'USAGE'),
       has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'UPDATE'),
       has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'DELETE'),
       has_database_privilege(current_database(), 'TEMP'), current_user, current_database()
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = $1 AND c.relkind NOT IN ('i', 'I', 't', 'c')
   AND CASE WHEN $2 = '' THEN pg_table_is_visible(c.oid) ELSE n.nspname = $2 END)";

// A domain's own limits count when the domain is over another: the innermost type, the outermost
// modifier.
constexpr const char* columns_sql = R"(
WITH RECURSIVE base AS (
  SELECT a.attnum, a.atttypid AS typ, a.atttypmod AS mod FROM pg_attribute a
   WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT b.attnum, t.typbasetype, CASE WHEN b.mod >= 0 THEN b.mod ELSE t.typtypmod END
    FROM base b JOIN pg_type t ON t.oid = b.typ WHERE t.typtype = 'd')
SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typname, t.oid, t.typarray, t.typtype,
       b.mod, a.attnotnull OR EXISTS (
         SELECT 1 FROM base d JOIN pg_type dt ON dt.oid = d.typ
          WHERE d.attnum = a.attnum AND dt.typtype = 'd' AND dt.typnotnull),
       a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a',
       has_column_privilege(a.attrelid, a.attnum, 'INSERT'),
       has_column_privilege(a.attrelid, a.attnum, 'UPDATE'),
       has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
       coalesce(NOT co.collisdeterministic, false), tn.nspname = 'pg_catalog'
  FROM pg_attribute a
  JOIN base b ON b.attnum = a.attnum
  JOIN pg_type t ON t.oid = b.typ AND t.typtype <> 'd'
  JOIN pg_namespace tn ON tn.oid = t.typnamespace
  LEFT JOIN pg_collation co ON co.oid = a.attcollation
 WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum)";

constexpr const char* uniques_sql = R"(
SELECT ic.relname, i.indpred IS NOT NULL, NOT i.indimmediate, i.indisvalid AND i.indisready,
       i.indexprs IS NOT NULL, a.attname
  FROM pg_index i
  JOIN pg_class ic ON ic.oid = i.indexrelid
  CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, at)
  LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
 WHERE i.indrelid = $1::oid AND i.indisunique AND k.at <= i.indnkeyatts
 ORDER BY NOT i.indisprimary, ic.relname, k.at)";

struct TypeRow {
  std::string_view name;
  Type type;
  PgWire wire;
};

// Types of pg_catalog whose binary form is written here. Everything else goes as text.
constexpr TypeRow types[] = {
    {"bool", Type::boolean, PgWire::boolean},
    {"int2", Type::int16, PgWire::int16},
    {"int4", Type::int32, PgWire::int32},
    {"int8", Type::int64, PgWire::int64},
    {"float4", Type::float32, PgWire::float32},
    {"float8", Type::float64, PgWire::float64},
    {"numeric", Type::decimal, PgWire::numeric},
    {"text", Type::text, PgWire::text},
    {"varchar", Type::text, PgWire::text},
    {"bpchar", Type::text, PgWire::text},
    {"json", Type::json, PgWire::text},
    {"jsonb", Type::jsonb, PgWire::jsonb},
    {"bytea", Type::bytes, PgWire::bytes},
    {"date", Type::date, PgWire::date},
    {"timestamp", Type::timestamp, PgWire::timestamp},
    {"timestamptz", Type::timestamptz, PgWire::timestamp},
    {"uuid", Type::uuid, PgWire::uuid},
};

int integer(std::string_view text) {
  int n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

// Type modifiers count a header of 4 bytes; numeric packs precision above a scale of 11 bits with
// sign.
void set_limits(PgColumn& c, std::string_view type, int modifier) {
  c.column.limits.refuses_nul =
      c.wire == PgWire::text || c.wire == PgWire::jsonb || c.wire == PgWire::special;
  if (modifier < 4) return;
  const int packed = modifier - 4;
  if (type == "varchar" || type == "bpchar") {
    c.column.limits.length = static_cast<std::uint32_t>(packed);
  } else if (type == "numeric") {
    c.column.limits.precision = (packed >> 16) & 0xffff;
    c.column.limits.scale = ((packed & 0x7ff) ^ 1024) - 1024;
  }
}

std::string why_not_key(const PgColumn& c, std::string_view type, int modifier, bool folds) {
  if (c.wire == PgWire::special || type == "json" || type == "jsonb" || type == "citext") {
    return "values of type " + c.declared + " can be equal without being spelled the same";
  }
  if (folds) return "its collation is nondeterministic: different texts can be equal";
  if (c.wire == PgWire::timestamp && modifier >= 0 && modifier < 6) {
    return "type " + c.declared + " rounds, so different values can become equal";
  }
  return "";
}

PgColumn read_column(const PgResult& r, int row) {
  PgColumn c;
  const std::string_view type = r.text(row, 2);
  const bool of_system = r.yes(row, 14);
  const int modifier = integer(r.text(row, 6));
  c.declared = r.str(row, 1);
  c.element = static_cast<Oid>(std::stoul(r.str(row, 3)));
  c.array = static_cast<Oid>(std::stoul(r.str(row, 4)));
  c.column.name = r.str(row, 0);
  c.column.type = Type::text;
  c.column.type_text = c.declared;
  const auto* known = std::find_if(std::begin(types), std::end(types),
                                   [&](const TypeRow& t) { return t.name == type; });
  if (of_system && known != std::end(types)) {
    c.column.type = known->type;
    c.wire = known->wire;
  } else if (r.text(row, 5) == "e" || type == "citext") {
    c.wire = PgWire::text;  // their binary form is their text
  }
  set_limits(c, of_system ? type : "", modifier);
  c.column.nullable = !r.yes(row, 7);
  c.column.has_default = r.yes(row, 8);
  c.column.generated = r.yes(row, 9);
  c.can_insert = r.yes(row, 10);
  c.can_update = r.yes(row, 11);
  c.can_select = r.yes(row, 12);
  c.why_not_key = why_not_key(c, type, modifier, r.yes(row, 13));
  return c;
}

PgKind kind_of(std::string_view relkind, std::string& name) {
  switch (relkind.front()) {
    case 'r': name = "table"; return PgKind::table;
    case 'p': name = "partitioned table"; return PgKind::partitioned;
    case 'v': name = "view"; return PgKind::view;
    case 'f': name = "foreign table"; return PgKind::foreign;
    case 'm': name = "materialized view"; return PgKind::other;
    case 'S': name = "sequence"; return PgKind::other;
    default: name = "relation"; return PgKind::other;
  }
}

void add_unique(std::vector<PgUnique>& uniques, const PgResult& r, int row) {
  if (uniques.empty() || uniques.back().name != r.text(row, 0)) {
    uniques.push_back({.name = r.str(row, 0),
                       .columns = {},
                       .partial = r.yes(row, 1),
                       .deferrable = r.yes(row, 2),
                       .valid = r.yes(row, 3),
                       .expression = r.yes(row, 4)});
  }
  if (!r.null(row, 5)) uniques.back().columns.push_back(r.str(row, 5));
}

std::string ddl_type(const ColumnSpec& c) {
  const auto in_brackets = [](auto... n) {
    std::string out;
    ((out += (out.empty() ? "(" : ",") + std::to_string(n)), ...);
    return out + ")";
  };
  switch (*c.type) {
    case Type::boolean: return "boolean";
    case Type::int16: return "smallint";
    case Type::int32: return "integer";
    case Type::int64: return "bigint";
    case Type::float32: return "real";
    case Type::float64: return "double precision";
    case Type::decimal:
      return c.limits.precision == 0 ? "numeric"
                                     : "numeric" + in_brackets(c.limits.precision, c.limits.scale);
    case Type::json: return "json";
    case Type::jsonb: return "jsonb";
    case Type::bytes: return "bytea";
    case Type::date: return "date";
    case Type::timestamp: return "timestamp";
    case Type::timestamptz: return "timestamptz";
    case Type::uuid: return "uuid";
    case Type::any:
    case Type::text: break;
  }
  return c.limits.length == 0 ? "text" : "varchar" + in_brackets(c.limits.length);
}

}  // namespace

const PgColumn* PgTable::find(std::string_view name) const {
  const auto at = std::find_if(columns.begin(), columns.end(),
                               [&](const PgColumn& c) { return c.column.name == name; });
  return at == columns.end() ? nullptr : &*at;
}

Result<std::optional<PgTable>> read_table(PostgresClient& client, const TableName& name) {
  auto found = client.query(table_sql, {name.table, name.schema});
  if (!found) return found.failure();
  const PgResult& r = *found;
  if (r.rows() == 0) return std::optional<PgTable>();
  PgTable table;
  const std::string oid = r.str(0, 0);
  table.name = {r.str(0, 1), r.str(0, 2)};
  table.kind = kind_of(r.text(0, 3), table.kind_name);
  table.insertable_view = r.yes(0, 4);
  table.row_security = r.yes(0, 5);
  table.has_rules = r.yes(0, 6);
  table.may_drop_rows = r.yes(0, 7);
  table.schema_usage = r.yes(0, 8);
  table.can_insert = r.yes(0, 9);
  table.can_update = r.yes(0, 10);
  table.can_select = r.yes(0, 11);
  table.can_delete = r.yes(0, 12);
  table.can_temp = r.yes(0, 13);
  table.role = r.str(0, 14);
  table.database = r.str(0, 15);
  auto columns = client.query(columns_sql, {oid});
  if (!columns) return columns.failure();
  for (int row = 0; row < columns->rows(); ++row) {
    table.columns.push_back(read_column(*columns, row));
  }
  auto uniques = client.query(uniques_sql, {oid});
  if (!uniques) return uniques.failure();
  for (int row = 0; row < uniques->rows(); ++row) add_unique(table.uniques, *uniques, row);
  return std::optional<PgTable>(std::move(table));
}

Result<std::vector<std::string>> table_names(PostgresClient& client, const std::string& schema) {
  auto found = client.query(R"(
SELECT n.nspname, c.relname, $1 = '' AND pg_table_is_visible(c.oid)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
   AND n.nspname !~ '^pg_' AND ($1 = '' OR n.nspname = $1)
 ORDER BY 1, 2 LIMIT 1000)",
                            {schema});
  if (!found) return found.failure();
  std::vector<std::string> names;
  for (int row = 0; row < found->rows(); ++row) {
    const std::string in = found->yes(row, 2) ? "" : found->str(row, 0);
    names.push_back(TableName{in, found->str(row, 1)}.text());
  }
  return names;
}

Result<std::string> create_table_sql(const TableName& name, const std::vector<ColumnSpec>& columns,
                                     const std::vector<std::string>& key) {
  std::string sql = "CREATE TABLE IF NOT EXISTS " + quoted(name) + " (";
  for (const ColumnSpec& c : columns) {
    if (!c.type) {
      return Failure{.cls = FailureClass::setup,
                     .where = "column " + c.name,
                     .what = "the table is to be created, and this column has no type",
                     .hint = "give it one under columns:, such as " + c.name +
                             ": {type: text}, or create the table by hand"};
    }
    sql += quote_identifier(c.name) + " " + ddl_type(c) + ", ";
  }
  if (!key.empty()) {
    sql += "PRIMARY KEY (";
    for (const std::string& k : key) sql += quote_identifier(k) + ", ";
    sql.replace(sql.size() - 2, 2, ")");
  } else if (sql.ends_with(", ")) {
    sql.resize(sql.size() - 2);
  }
  return sql + ")";
}

}  // namespace flow
