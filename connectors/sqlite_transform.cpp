#include <algorithm>
#include <cmath>
#include <memory>
#include <sqlite3.h>
#include <string>
#include <utility>
#include <vector>

#include "connectors/registry.h"
#include "connectors/sqlite_sandbox.h"
#include "connectors/sqlite_select_rules.h"
#include "connectors/sqlite_source_table.h"
#include "core/cast_text.h"

namespace flow {

namespace {

constexpr std::size_t columns_max = 1000;
constexpr unsigned json_subtype = 'J';
constexpr std::string_view no_such_column = "no such column: ";

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Failure setup(std::string what, std::string hint) {
  Failure failure;
  failure.cls = FailureClass::setup;
  failure.where = "transform: sql";
  failure.what = std::move(what);
  failure.hint = std::move(hint);
  return failure;
}

Failure refused(const std::string& why) {
  return setup("the statement " + why,
               "write SELECT columns and expressions FROM source [WHERE condition]");
}

// One SELECT over the records of a batch, prepared once. Threads: one.
class SqlTransform final : public RowTransform {
 public:
  explicit SqlTransform(std::string sql) : sql_(std::move(sql)) {}

  Result<void> prepare();
  const std::vector<std::string>& inputs() const override { return table_.columns; }
  const std::vector<std::string>& outputs() const override { return names_; }
  void apply(Batch& batch, const RowSet& in, RowSet& out,
             std::vector<RecordFailure>& failures) override;

 private:
  static constexpr std::size_t computed = static_cast<std::size_t>(-1);

  Failure vendor(const std::string& what) const;
  Result<void> find_columns();
  bool add_column(const std::string& missing);
  int compile(const std::string& sql, Statement& out);
  Result<void> check_program();
  Result<void> check_clock();
  Result<void> name_outputs();
  bool emit(Batch& batch, const RowSet& in, RowSet& out, std::string& fault);
  bool computed_value(int column, Arena& arena, Value& value, std::string& fault);

  std::string sql_;
  SourceTable table_;
  std::string missing_;  // the column that SQLite missed last
  SqlSandbox sandbox_;
  Statement statement_;  // before the sandbox goes
  std::vector<std::string> names_;
  std::vector<std::size_t> origins_;  // input column that an output copies, or `computed`
};

Failure SqlTransform::vendor(const std::string& what) const {
  Failure failure = setup(what + ": " + sqlite3_errmsg(sandbox_.db()), "correct the SQL");
  failure.code = "SQLITE " + std::to_string(sqlite3_extended_errcode(sandbox_.db()));
  return failure;
}

int SqlTransform::compile(const std::string& sql, Statement& out) {
  sqlite3_stmt* statement = nullptr;
  const int rc = sandbox_.prepare(sql, statement);
  out.reset(statement);
  return rc;
}

Result<void> SqlTransform::prepare() {
  if (const std::string fault = select_fault(sql_); !fault.empty()) return refused(fault);
  if (sandbox_.open() != SQLITE_OK) {
    Failure failure = vendor("SQLite cannot be used for SQL transforms");
    failure.hint = "check the installed SQLite";
    return failure;
  }
  if (sqlite3_compileoption_used("ENABLE_COLUMN_METADATA") == 0) {
    return setup("this SQLite was built without SQLITE_ENABLE_COLUMN_METADATA",
                 "use the SQLite of the distribution");
  }
  if (auto found = find_columns(); !found) return found;
  if (auto checked = check_program(); !checked) return checked;
  if (auto checked = check_clock(); !checked) return checked;
  return name_outputs();
}

// Which columns the statement reads is what SQLite misses one by one.
Result<void> SqlTransform::find_columns() {
  while (true) {
    if (table_.offer(sandbox_.db()) != SQLITE_OK) return vendor("the table source cannot be made");
    const int rc = compile(sql_, statement_);
    if (!sandbox_.refused().empty()) {
      return setup(sandbox_.refused(),
                   "write SELECT columns and expressions FROM source [WHERE condition]");
    }
    if (rc == SQLITE_OK && sandbox_.star_seen()) {
      return refused(
          "has *, and what a record holds is not known before it is read: name the columns");
    }
    if (rc == SQLITE_OK) return {};
    const std::string message = sqlite3_errmsg(sandbox_.db());
    if (message.compare(0, no_such_column.size(), no_such_column) != 0) {
      return vendor("the statement is not accepted");
    }
    if (!add_column(message.substr(no_such_column.size()))) {
      return vendor("the statement is not accepted");
    }
    if (table_.columns.size() > columns_max) {
      return refused("reads more than " + std::to_string(columns_max) + " columns");
    }
  }
}

// A name that is missed again, with a column of that name, is a qualified one (s.amount): what is
// before the first dot goes. False: that does not help either.
bool SqlTransform::add_column(const std::string& missing) {
  std::string name = missing;
  if (missing == missing_) {
    const std::string& last = table_.columns.back();
    const std::size_t dot = last.find('.');
    if (dot == std::string::npos) return false;
    name = last.substr(dot + 1);
    table_.columns.pop_back();
  }
  missing_ = missing;
  const auto known = std::find(table_.columns.begin(), table_.columns.end(), name);
  if (name.empty() || known != table_.columns.end()) return false;
  table_.columns.push_back(std::move(name));
  return true;
}

// Joins and aggregates show in the program that SQLite makes of the statement.
Result<void> SqlTransform::check_program() {
  Statement program;
  if (compile("EXPLAIN " + sql_, program) != SQLITE_OK)
    return vendor("the statement is not accepted");
  int tables = 0;
  while (sqlite3_step(program.get()) == SQLITE_ROW) {
    const std::string_view op =
        reinterpret_cast<const char*>(sqlite3_column_text(program.get(), 1));
    if (op == "VOpen" || op == "OpenRead") ++tables;
    if (op.substr(0, 3) == "Agg") {
      return refused(
          "has an aggregate: each record gives one row at most, in record order, and none "
          "depends on another");
    }
  }
  if (tables == 0) return refused("has no FROM source");
  if (tables > 1) return refused("reads more than the one table source");
  return {};
}

// A date function without arguments is found by running the statement on one record without fields.
Result<void> SqlTransform::check_clock() {
  const std::string_view word = sandbox_.dates_seen() ? clock_word(sql_) : std::string_view();
  RowSet rows;
  rows.width = table_.columns.size();
  rows.add(0);
  table_.rows = &rows;
  while (sqlite3_step(statement_.get()) == SQLITE_ROW) continue;
  sqlite3_reset(statement_.get());
  table_.rows = nullptr;
  if (word.empty() && !sandbox_.clock_asked()) return {};
  return setup(
      "the statement asks for the machine's " +
          (word.empty() ? "time" : "time or zone by " + std::string(word)),
      "take times from the record (a column from @timestamp is when it was written): a record "
      "read again must give the same row");
}

Result<void> SqlTransform::name_outputs() {
  const int count = sqlite3_column_count(statement_.get());
  for (int i = 0; i < count; ++i) {
    const char* name = sqlite3_column_name(statement_.get(), i);
    const char* origin = sqlite3_column_origin_name(statement_.get(), i);
    if (name == nullptr) return vendor("the statement is not accepted");
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
      return refused("gives two columns the name " + shown(name) + ": name them apart with AS");
    }
    names_.emplace_back(name);
    const auto found = std::find(table_.columns.begin(), table_.columns.end(),
                                 origin == nullptr ? std::string() : std::string(origin));
    const bool copied = origin != nullptr && found != table_.columns.end();
    origins_.push_back(copied ? static_cast<std::size_t>(found - table_.columns.begin())
                              : computed);
  }
  return {};
}

void SqlTransform::apply(Batch& batch, const RowSet& in, RowSet& out,
                         std::vector<RecordFailure>& failures) {
  table_.rows = &in;
  table_.first = 0;
  out.width = names_.size();
  const auto fail = [&](std::string why) {
    Failure failure;
    failure.cls = FailureClass::invalid;
    failure.where = "transform: sql";
    failure.what = "the row cannot be computed: " + std::move(why);
    failure.hint =
        "guard the expression (CASE, coalesce, json_valid) or leave such records out by WHERE";
    failures.push_back({in.record[table_.current], 0, std::move(failure)});
  };
  std::string fault;
  while (table_.first < in.rows()) {
    table_.current = table_.first;
    int rc = SQLITE_ROW;
    while ((rc = sqlite3_step(statement_.get())) == SQLITE_ROW) {
      if (!emit(batch, in, out, fault)) fail(fault);
    }
    if (rc == SQLITE_DONE) break;
    FLOW_CHECK(rc != SQLITE_MISUSE && table_.current < in.rows(),
               "the SQL transform lost its place");
    fail(sqlite3_errmsg(sandbox_.db()));
    sqlite3_reset(statement_.get());
    table_.first = table_.current + 1;
  }
  sqlite3_reset(statement_.get());
  table_.rows = nullptr;
}

bool SqlTransform::emit(Batch& batch, const RowSet& in, RowSet& out, std::string& fault) {
  const std::size_t row = table_.current;
  Value* cells = out.add(in.record[row], in.op[row]);
  for (std::size_t i = 0; i < origins_.size(); ++i) {
    if (origins_[i] != computed) {
      cells[i] = in.row(row)[origins_[i]];
    } else if (!computed_value(static_cast<int>(i), batch.arena, cells[i], fault)) {
      out.drop_last();
      return false;
    }
  }
  return true;
}

bool SqlTransform::computed_value(int column, Arena& arena, Value& value, std::string& fault) {
  sqlite3_stmt* const statement = statement_.get();
  const auto bytes = [&](const void* data) {
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
    return arena.copy(size == 0 ? std::string_view()
                                : std::string_view(static_cast<const char*>(data), size));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: value = Value::int64(sqlite3_column_int64(statement, column)); return true;
    case SQLITE_FLOAT:
      value = Value::float64(sqlite3_column_double(statement, column));
      if (std::isfinite(value.d())) return true;
      fault = names_[static_cast<std::size_t>(column)] + " is not a finite number";
      return false;
    case SQLITE_BLOB:
      value = Value::text(bytes(sqlite3_column_blob(statement, column)), Kind::bytes);
      return true;
    case SQLITE_TEXT: {
      const bool json =
          sqlite3_value_subtype(sqlite3_column_value(statement, column)) == json_subtype;
      value = Value::text(bytes(sqlite3_column_text(statement, column)),
                          json ? Kind::json : Kind::text);
      if (valid_utf8(value.text())) return true;
      fault = names_[static_cast<std::size_t>(column)] + " is not valid UTF-8";
      return false;
    }
    default: value = Value::null(); return true;
  }
}

}  // namespace

Result<std::unique_ptr<RowTransform>> make_sql_transform(const TransformSpec& spec) {
  auto transform = std::make_unique<SqlTransform>(spec.sql);
  if (auto prepared = transform->prepare(); !prepared) return prepared.failure();
  return Result<std::unique_ptr<RowTransform>>(std::move(transform));
}

}  // namespace flow
