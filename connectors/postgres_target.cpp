#include "connectors/postgres_target.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "connectors/postgres_check.h"
#include "connectors/postgres_letters.h"
#include "connectors/postgres_merge.h"
#include "connectors/registry.h"
#include "core/failure_point.h"
#include "core/suggest.h"

namespace flow {
namespace {

constexpr std::size_t flush_bytes = std::size_t{128} << 10;

Columns columns_to_create(const std::vector<ColumnSpec>& specs) {
  Columns columns;
  for (const ColumnSpec& spec : specs) {
    Column& c = columns.emplace_back();
    c.name = spec.name;
    c.type = *spec.type;
    c.limits = spec.limits;
    c.limits.refuses_nul = true;
  }
  return columns;
}

}  // namespace

// ---- before the first read ---------------------------------------------------------------------

Result<TargetSchema> PostgresTarget::prepare(const std::vector<ColumnSpec>& columns) {
  const PostgresWork work(client_);
  std::vector<std::string> notes;
  if (auto r = client_.connect(); !r) return placed(r.failure());
  if (auto r = check_server(notes); !r) return placed(r.failure());
  if (auto r = find_table(columns, notes); !r) return placed(r.failure());
  if (table_.columns.empty()) return schema(columns, std::move(notes));  // dry run: not created
  if (auto r = check_table(table_, spec_, columns); !r) return r.failure();
  if (table_.may_drop_rows) {
    notes.push_back(table_.name.text() +
                    " has a BEFORE INSERT trigger: rows that it leaves out count as written");
  }
  return schema(columns, std::move(notes));
}

Result<void> PostgresTarget::check_server(std::vector<std::string>& notes) {
  auto r = client_.query(
      "SELECT pg_is_in_recovery(), current_setting('synchronous_commit') = 'off', "
      "current_setting('fsync') = 'off'");
  if (!r) return r.failure();
  if (r->yes(0, 0)) {
    return Failure{.cls = FailureClass::setup,
                   .code = "25006",
                   .where = client_.place(),
                   .what = "the server is a standby and takes no writes",
                   .hint =
                       "name the primary in url, or list the hosts and add "
                       "target_session_attrs=read-write"};
  }
  session_ = {.server_version = client_.server_version(), .raise_commit = r->yes(0, 1)};
  if (r->yes(0, 2)) {
    notes.emplace_back("the server runs with fsync = off: a crash of its machine can lose rows");
  }
  return {};
}

Result<void> PostgresTarget::find_table(const std::vector<ColumnSpec>& columns,
                                        std::vector<std::string>& notes) {
  auto name = parse_table_name(spec_.table);
  if (!name) return name.failure();
  std::vector<std::string> names = spec_.key;
  for (const ColumnSpec& c : columns) names.push_back(c.name);
  names.push_back(name->table);
  if (!name->schema.empty()) names.push_back(name->schema);
  for (const std::string& n : names) {
    if (auto r = check_postgres_identifier(n); !r) return r;
  }
  auto found = read_table(client_, *name);
  if (!found) return found.failure();
  if (!*found && !spec_.create_table) return no_such_table(*name);
  if (!*found) {
    auto sql = create_table_sql(*name, columns, spec_.key);
    if (!sql) return sql.failure();
    notes.push_back((dry_run_ ? "would create: " : "created: ") + *sql);
    if (dry_run_) {
      table_.name = *name;
      return {};
    }
    if (auto r = client_.run(*sql); !r && r.failure().code != "23505") return r.failure();
    found = read_table(client_, *name);
    if (!found) return found.failure();
    if (!*found) return no_such_table(*name);
  }
  table_ = std::move(**found);
  return {};
}

Failure PostgresTarget::no_such_table(const TableName& name) {
  Failure f{.cls = FailureClass::setup,
            .code = "42P01",
            .where = client_.place(),
            .what = "there is no table " + name.text(),
            .hint = "create it, or say create_table: true"};
  auto existing = table_names(client_, name.schema);
  if (existing) f.what += did_you_mean(name.text(), {existing->begin(), existing->end()});
  return f;
}

TargetSchema PostgresTarget::schema(const std::vector<ColumnSpec>& columns,
                                    std::vector<std::string> notes) const {
  TargetSchema s;
  s.fixed = true;
  s.key = spec_.key;
  s.notes = std::move(notes);
  for (const PgColumn& c : table_.columns) s.columns.push_back(c.column);
  if (table_.columns.empty()) s.columns = columns_to_create(columns);
  // A null in the key would never meet its row again, whatever the table says.
  for (Column& c : s.columns) {
    if (std::find(s.key.begin(), s.key.end(), c.name) != s.key.end()) c.nullable = false;
  }
  return s;
}

Result<void> PostgresTarget::start(const Columns& plan, const std::optional<TargetMark>&) {
  columns_.clear();
  for (const Column& c : plan) {
    const PgColumn* column = table_.find(c.name);
    if (column == nullptr) {
      return Failure{.cls = FailureClass::setup,
                     .where = spec_.label,
                     .what = "the table has no column " + c.name,
                     .hint = "add it, or leave it out under columns"};
    }
    columns_.push_back(*column);
  }
  statements_ = make_statements(table_, spec_, columns_, session_);
  return letters_of_ == nullptr ? Result<void>() : look_for_letters();
}

Result<void> PostgresTarget::look_for_letters() {
  const PostgresWork work(client_);
  if (auto r = client_.connect(); !r) return placed(r.failure());
  auto same = same_postgres_database(client_, *letters_of_);
  if (!same) return placed(same.failure());
  keeps_letters_ = *same;
  return {};
}

// ---- a batch -----------------------------------------------------------------------------------

Result<void> PostgresTarget::write(const Batch& batch, const RowSet& rows) {
  if (rows.order.empty()) return {};
  const PostgresWork work(client_);
  if (auto f = reach(Point::target_write_before)) return *f;
  auto written = transaction(rows, rows.order.size(), End::commit);
  if (written) return written;
  Failure failure = placed(written.failure());
  if (failure.of_record() && !failure.record) name_record(failure, rows);
  if (failure.record) failure.where = batch.where(*failure.record) + ", " + failure.where;
  return failure;
}

// The first `count` rows of the order, from BEGIN to `end`; rolled back after whatever goes wrong.
Result<void> PostgresTarget::transaction(const RowSet& rows, std::size_t count, End end,
                                         std::span<const DeadLetter> letters) {
  if (auto r = client_.connect(); !r) return r;
  choose(rows, count);
  auto r = store(rows);
  if (r && end == End::commit) r = insert_letters(client_, letters);
  if (r) r = end_transaction(end);
  if (!r) client_.rollback();
  return r;
}

void PostgresTarget::choose(const RowSet& rows, std::size_t count) {
  upserts_.clear();
  erases_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t row = rows.order[i];
    (rows.op[row] == RowOp::erase ? erases_ : upserts_).push_back(row);
  }
}

Result<void> PostgresTarget::store(const RowSet& rows) {
  const PgStatements& s = statements_;
  const bool few = upserts_.size() <= few_rows;
  if (!s.staged) return copy_rows(rows, s.begin + s.copy);
  auto r = few ? client_.run(s.begin) : copy_rows(rows, s.begin + s.stage);
  // Erased first: what an upsert puts may need a unique value that an erased row held.
  if (r && !erases_.empty()) r = erase(rows);
  if (r && !upserts_.empty()) r = few ? insert_few(rows) : client_.run(s.insert_staged);
  return r;
}

Result<void> PostgresTarget::copy_rows(const RowSet& rows, const std::string& sql) {
  if (auto r = client_.begin_copy(sql); !r) return r;
  sink_.clear();
  put_copy_header(sink_);
  const std::size_t half = upserts_.size() / 2;
  for (std::size_t i = 0; i < upserts_.size(); ++i) {
    const bool torn = i == half;
    if (torn || sink_.size() >= flush_bytes) {
      if (auto r = client_.send(sink_.view()); !r) return r;
      sink_.clear();
    }
    if (torn) {
      if (auto f = reach(Point::target_write_torn)) return *f;
    }
    std::size_t column = 0;
    if (!put_copy_row(sink_, statements_.wires, rows.row(upserts_[i]), column)) {
      return unwritable(rows, upserts_[i], column);
    }
  }
  put_copy_trailer(sink_);
  if (auto r = client_.send(sink_.view()); !r) return r;
  auto stored = client_.end_copy();
  if (!stored) return stored.failure();
  if (*stored == upserts_.size() || (!statements_.staged && table_.may_drop_rows)) return {};
  return Failure{.cls = FailureClass::setup,
                 .where = spec_.label,
                 .what = "COPY stored " + std::to_string(*stored) + " of " +
                         std::to_string(upserts_.size()) + " rows; nothing was committed",
                 .hint = "look for a trigger that leaves rows out"};
}

// In two halves, so that a torn write can be told from none; the server sees one transaction.
Result<void> PostgresTarget::insert_few(const RowSet& rows) {
  std::vector<std::size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::span<const std::uint32_t> upserts = upserts_;
  const bool armed = failure_point::armed.load(std::memory_order_relaxed) != 0;
  const std::size_t half = armed ? upserts.size() / 2 : 0;
  for (const auto part : {upserts.first(half), upserts.subspan(half)}) {
    if (part.empty()) continue;
    if (!arrays_.fill(rows, part, columns_, all)) {
      return unwritable(rows, part[arrays_.bad_row()], arrays_.bad_column());
    }
    if (auto r = client_.query(statements_.insert_arrays, arrays_.parameters()); !r) {
      return r.failure();
    }
    if (part.data() == upserts.data()) {
      if (auto f = reach(Point::target_write_torn)) return *f;
    }
  }
  return {};
}

// The joins that are switched off would read the whole table; the key's index is always there.
Result<void> PostgresTarget::erase(const RowSet& rows) {
  if (!arrays_.fill(rows, erases_, columns_, statements_.key)) {
    return unwritable(rows, erases_[arrays_.bad_row()], arrays_.bad_column());
  }
  if (auto r = client_.run("SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off");
      !r) {
    return r;
  }
  auto r = client_.query(statements_.erase_arrays, arrays_.parameters());
  if (!r) return r.failure();
  if (upserts_.empty()) {
    if (auto f = reach(Point::target_write_torn)) return *f;
  }
  return {};
}

Result<void> PostgresTarget::end_transaction(End end) {
  if (end == End::roll_back) {
    auto r = client_.run("SET CONSTRAINTS ALL IMMEDIATE");
    if (r) client_.rollback();
    return r;
  }
  if (auto f = reach(Point::target_commit_before)) return *f;
  if (auto r = client_.commit(); !r) return r;
  if (auto f = reach(Point::target_commit_applied)) {
    f->effect = Effect::unknown;
    return *f;
  }
  if (auto f = reach(Point::target_commit_after)) return *f;
  return {};
}

// ---- failures ----------------------------------------------------------------------------------

void PostgresTarget::name_record(Failure& failure, const RowSet& rows) {
  const PgError error = client_.last_error();
  if (!error.column.empty()) failure.where += ", column " + error.column;
  if (error.copy_line > 0 && error.copy_line <= upserts_.size()) {
    failure.record = rows.record[upserts_[error.copy_line - 1]];
  } else if (const auto row = find_bad_row(rows)) {
    failure.record = rows.record[*row];
  }
}

// Some errors name no row (foreign keys, merge constraints). The shortest prefix of the order that
// fails ends in the row at fault; each probe is rolled back. None, when the failure does not come
// again.
std::optional<std::uint32_t> PostgresTarget::find_bad_row(const RowSet& rows) {
  const std::size_t all = rows.order.size();
  std::size_t good = 0;
  std::size_t bad = all + 1;  // not seen to fail yet
  while (bad - good > 1) {
    const std::size_t middle = std::min(all, good + (bad - good) / 2);
    const auto r = transaction(rows, middle, End::roll_back);
    if (!r && !r.failure().of_record()) return std::nullopt;
    (r ? good : bad) = middle;
  }
  if (bad > all) return std::nullopt;
  return rows.order[bad - 1];
}

Failure PostgresTarget::placed(Failure failure) const {
  failure.where = failure.where.empty() || failure.where == spec_.label
                      ? spec_.label
                      : spec_.label + " (" + failure.where + ")";
  return failure;
}

Failure PostgresTarget::unwritable(const RowSet& rows, std::uint32_t row, std::size_t column) {
  const Value& cell = rows.row(row)[column];
  const bool numeric = cell.kind() == Kind::decimal && columns_[column].wire == PgWire::numeric;
  Failure f{.cls = FailureClass::defect, .where = "column " + columns_[column].column.name};
  f.what = "a cell of kind " + std::string(name_of(cell.kind())) + " came for type " +
           columns_[column].declared;
  if (numeric) {
    f.cls = FailureClass::invalid;
    f.what = "the number has more digits than numeric can hold";
  }
  f.record = rows.record[row];
  return f;
}

Result<std::unique_ptr<Target>> make_postgres_target(const Context& context,
                                                     const TargetSpec& spec) {
  return std::unique_ptr<Target>(std::make_unique<PostgresTarget>(context, spec));
}

}  // namespace flow
