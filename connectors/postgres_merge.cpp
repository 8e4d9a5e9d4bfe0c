#include "connectors/postgres_merge.h"

#include <algorithm>
#include <functional>

namespace flow {
namespace {

constexpr Oid text_oid = 25;
constexpr Oid text_array_oid = 1009;
constexpr int version_with_connection_check = 140'000;

std::string joined(std::size_t count, const std::string& between,
                   const std::function<std::string(std::size_t)>& part) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += between;
    out += part(i);
  }
  return out;
}

// The server notices within a second that this program is gone and lets go of its locks, instead of
// finishing a statement for nobody.
std::string begin_sql(const PgSession& session) {
  std::string sql = "BEGIN READ WRITE; ";
  if (session.server_version >= version_with_connection_check) {
    sql += "SET LOCAL client_connection_check_interval = 1000; ";
  }
  if (session.raise_commit) sql += "SET LOCAL synchronous_commit = on; ";
  return sql;
}

// A row that is there already, to the byte, is left alone: writing a batch again leaves no dead
// rows. The comparison is of bytes, so that 1.5 becomes 1.50 and json, which has no equality, can
// be compared.
std::string on_conflict(const TargetSpec& spec, const std::vector<PgColumn>& columns) {
  std::vector<std::string> others;
  for (const PgColumn& c : columns) {
    const auto& key = spec.key;
    if (std::find(key.begin(), key.end(), c.column.name) == key.end()) {
      others.push_back(quote_identifier(c.column.name));
    }
  }
  std::string sql =
      " ON CONFLICT (" +
      joined(spec.key.size(), ", ", [&](std::size_t i) { return quote_identifier(spec.key[i]); }) +
      ") DO ";
  if (others.empty()) return sql + "NOTHING";
  const auto list = [&](const std::string& prefix) {
    return joined(others.size(), ", ", [&](std::size_t i) { return prefix + others[i]; });
  };
  return sql + "UPDATE SET " +
         joined(others.size(), ", ",
                [&](std::size_t i) { return others[i] + " = excluded." + others[i]; }) +
         " WHERE ROW(" + list("old.") + ")::record *<> ROW(" + list("excluded.") + ")::record";
}

// How the function below takes a column: of its base type, or as text.
std::string parameter_type(const PgColumn& column) {
  switch (column.wire) {
    case PgWire::boolean: return "bool[]";
    case PgWire::int16: return "int2[]";
    case PgWire::int32: return "int4[]";
    case PgWire::int64: return "int8[]";
    case PgWire::float32: return "float4[]";
    case PgWire::float64: return "float8[]";
    case PgWire::numeric: return "numeric[]";
    case PgWire::jsonb: return "jsonb[]";
    case PgWire::bytes: return "bytea[]";
    case PgWire::date: return "date[]";
    case PgWire::uuid: return "uuid[]";
    case PgWire::timestamp:
      return column.column.type == Type::timestamptz ? "timestamptz[]" : "timestamp[]";
    case PgWire::text:
    case PgWire::special: return "text[]";
  }
  return "text[]";
}

// A text type takes text by assignment, which refuses what is too long; a cast would cut it.
std::string cast_from_text(const PgColumn& column) {
  constexpr Oid text_oids[] = {25, 1043, 1042};  // text, varchar, char(n)
  const bool text =
      column.wire == PgWire::text &&
      std::find(std::begin(text_oids), std::end(text_oids), column.element) != std::end(text_oids);
  const bool as_text = column.wire == PgWire::text || column.wire == PgWire::special;
  return as_text && !text ? "::" + column.declared : "";
}

// A function that stores rows one by one, each in a subtransaction of its own, and tells of those
// that were refused. `insert`: stores the row that `flow_row` holds. `types`: of the parameters,
// arrays. The names in `names` are quoted.
std::string each_function(const std::string& insert, const std::string& types,
                          const std::string& names, const std::string& parameters) {
  return "CREATE FUNCTION pg_temp.flow_each(" + types +
         ") RETURNS TABLE (flow_at bigint, flow_code text, flow_message text, flow_column text)"
         " LANGUAGE plpgsql AS $flow$\n"
         "#variable_conflict use_column\n"
         "DECLARE flow_row record;\n"
         "BEGIN\n"
         "FOR flow_row IN SELECT new.* FROM unnest(" +
         parameters + ") WITH ORDINALITY AS new (" + names +
         ", \"flow ordinality\") LOOP\n"
         "BEGIN\n" +
         insert +
         ";\n"
         "EXCEPTION WHEN OTHERS THEN\n"
         "GET STACKED DIAGNOSTICS flow_code = RETURNED_SQLSTATE, flow_message = MESSAGE_TEXT,"
         " flow_column = COLUMN_NAME;\n"
         "flow_at := flow_row.\"flow ordinality\";\n"
         "RETURN NEXT;\n"
         "END;\n"
         "END LOOP;\n"
         "END $flow$";
}

}  // namespace

PgStatements make_statements(const PgTable& table, const TargetSpec& spec,
                             const std::vector<PgColumn>& columns, const PgSession& session) {
  const bool merge = spec.mode == Mode::merge;
  const auto special = [](const PgColumn& c) { return c.wire == PgWire::special; };
  const auto name = [&](std::size_t i) { return quote_identifier(columns[i].column.name); };
  const auto each = [&](const std::string& between, const auto& part) {
    return joined(columns.size(), between, part);
  };
  const std::string names = each(", ", name);
  const std::string into = quoted(table.name);

  PgStatements s;
  s.staged = merge || table.kind == PgKind::view || table.row_security ||
             std::any_of(columns.begin(), columns.end(), special);
  s.begin = begin_sql(session);
  s.copy = "COPY " + into + " (" + names + ") FROM STDIN (FORMAT binary)";
  s.stage = "CREATE TEMPORARY TABLE flow_stage (" +
            each(", ",
                 [&](std::size_t i) {
                   return name(i) + " " + (special(columns[i]) ? "text" : columns[i].declared);
                 }) +
            ") ON COMMIT DROP; COPY pg_temp.flow_stage FROM STDIN (FORMAT binary)";
  const auto insert_as = [&](const std::string& from, const auto& cast) {
    return "INSERT INTO " + into + " AS old (" + names + ") SELECT " +
           each(", ", [&](std::size_t i) { return "new." + name(i) + cast(columns[i]); }) +
           " FROM " + from + (merge ? on_conflict(spec, columns) : "");
  };
  const auto insert = [&](const std::string& from) {
    return insert_as(
        from, [&](const PgColumn& c) { return special(c) ? "::" + c.declared : std::string(); });
  };
  const auto unnest = [](std::size_t count) {
    return "unnest(" +
           joined(count, ", ", [](std::size_t i) { return "$" + std::to_string(i + 1); }) +
           ") AS new (";
  };
  s.insert_staged = insert("pg_temp.flow_stage AS new");
  s.insert_arrays = insert(unnest(columns.size()) + names + ")");
  const auto parameter = [](std::size_t i) { return "$" + std::to_string(i + 1); };
  s.each_function = each_function(
      insert_as("(SELECT " + each(", ", [&](std::size_t i) { return "flow_row." + name(i); }) +
                    ") AS new (" + names + ")",
                cast_from_text),
      each(", ", [&](std::size_t i) { return parameter_type(columns[i]); }), names,
      each(", ", parameter));
  s.each = "SELECT flow_at, flow_code, flow_message, flow_column FROM pg_temp.flow_each(" +
           each(", ", parameter) + ")";
  for (const std::string& key : spec.key) {
    const auto at = std::find_if(columns.begin(), columns.end(),
                                 [&](const PgColumn& c) { return c.column.name == key; });
    if (at != columns.end()) s.key.push_back(static_cast<std::size_t>(at - columns.begin()));
  }
  s.erase_arrays = "DELETE FROM " + into + " AS old USING " + unnest(s.key.size()) +
                   joined(s.key.size(), ", ", [&](std::size_t i) { return name(s.key[i]); }) +
                   ") WHERE " + joined(s.key.size(), " AND ", [&](std::size_t i) {
                     return "old." + name(s.key[i]) + " = new." + name(s.key[i]);
                   });
  for (const PgColumn& c : columns) s.wires.push_back(c.wire);
  return s;
}

bool PgArrays::fill(const RowSet& set, std::span<const std::uint32_t> rows,
                    const std::vector<PgColumn>& columns, std::span<const std::size_t> chosen,
                    Wording wording) {
  sinks_.resize(std::max(sinks_.size(), chosen.size()));
  parameters_.types.clear();
  parameters_.values.clear();
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const PgColumn& column = columns[chosen[c]];
    const bool as_text =
        column.wire == PgWire::special || (column.wire == PgWire::text && wording == Wording::text);
    ByteSink& sink = sinks_[c];
    sink.clear();
    put_array_header(sink, as_text ? text_oid : column.element, rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (put_cell(sink, column.wire, set.row(rows[r])[chosen[c]])) continue;
      bad_row_ = r;
      bad_column_ = chosen[c];
      return false;
    }
    parameters_.types.push_back(as_text ? text_array_oid : column.array);
    parameters_.values.push_back(sink.view());
  }
  return true;
}

}  // namespace flow
