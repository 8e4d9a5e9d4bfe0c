#include "connectors/sqlite_target.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

#include "connectors/registry.h"
#include "connectors/sqlite_catalog.h"
#include "connectors/sqlite_client.h"
#include "connectors/sqlite_letters.h"
#include "connectors/sqlite_rows.h"
#include "core/failure_point.h"
#include "core/sqlite_path.h"
#include "core/suggest.h"

namespace flow {
namespace {

constexpr int lock_wait_ms_max = 5'000;
constexpr int cache_kib = 65'536;

}  // namespace

// ---- before the first read
// -------------------------------------------------------------------------

Result<void> SqliteTarget::check_file() const {
  Failure failure{.cls = FailureClass::setup, .where = where_ + ": " + path_};
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  if (!std::filesystem::exists(status)) {
    failure.what = "the database does not exist";
    failure.hint = "create it, set create_table: true, or correct url:";
    return failure;
  }
  if (!std::filesystem::is_regular_file(status)) {
    failure.what = "a SQLite database must be a file, and this is none";
    failure.hint = "correct url:";
    return failure;
  }
  for (const std::string& needed : {path_, parent.empty() ? std::string(".") : parent}) {
    if (::access(needed.c_str(), W_OK) == 0) continue;
    failure.cls = FailureClass::unauthorized;
    failure.what = needed + " cannot be written: " + std::strerror(errno);
    failure.hint = "give this user the right to write the database and its directory";
    return failure;
  }
  return {};
}

Failure SqliteTarget::no_table(sqlite3* db) const {
  auto names = sqlite_table_names(db, where_);
  if (!names) return names.failure();
  return {.cls = FailureClass::setup,
          .where = where_ + ": " + path_,
          .what = "there is no table " + name_.text() +
                  did_you_mean(name_.table, {names->begin(), names->end()}),
          .hint = "create it, set create_table: true, or correct table:"};
}

Result<void> SqliteTarget::read_table(sqlite3* db) {
  auto table = read_sqlite_table(db, name_, where_);
  if (!table) return table.failure();
  table_ = std::move(table).value();
  if (!table_) return no_table(db);
  return spec_.mode == Mode::merge ? check_sqlite_key(*table_, spec_.key, where_) : Result<void>();
}

Result<void> SqliteTarget::create_file(std::vector<std::string>& notes) const {
  const int error = create_private_file(path_);
  if (error == 0) notes.push_back("created database " + path_);
  if (error == 0 || error == EEXIST) return {};
  return Failure{.cls = FailureClass::setup,
                 .where = where_ + ": " + path_,
                 .what = std::string("the database cannot be created: ") + std::strerror(error),
                 .hint = "name a file in a directory that this user can write",
                 .exit = ExitCode::cannot_create};
}

Result<void> SqliteTarget::create_table(const std::vector<ColumnSpec>& columns,
                                        std::vector<std::string>& notes) {
  if (::access(path_.c_str(), F_OK) == 0) {
    bool there = false;
    auto looked = look_into_sqlite(path_, where_, [&](sqlite3* db) -> Result<void> {
      auto table = read_sqlite_table(db, name_, where_);
      if (!table) return table.failure();
      there = table->has_value();
      return {};
    });
    if (!looked || there) return looked;
  }
  auto sql = sqlite_create_table_sql(name_, columns, spec_.key, where_);
  if (!sql) return sql.failure();
  if (auto made = create_file(notes); !made) return made;
  auto db = open_sqlite(path_, SQLITE_OPEN_READWRITE, where_);
  if (!db) return db.failure();
  sqlite3_busy_timeout(db->get(), lock_wait_ms_max);
  if (auto made = sqlite_run(db->get(), *sql, where_); !made) return made;
  notes.push_back("created table " + name_.text() + " in " + path_);
  return {};
}

Result<TargetSchema> SqliteTarget::prepare(const std::vector<ColumnSpec>& columns) {
  TargetSchema schema;
  schema.fixed = true;
  if (spec_.create_table) {
    auto made = create_table(columns, schema.notes);
    if (!made) return made.failure();
  }
  if (auto there = check_file(); !there) return there.failure();
  auto read = look_into_sqlite(path_, where_, [&](sqlite3* db) { return read_table(db); });
  if (!read) return read.failure();
  schema.columns = table_->columns;
  if (spec_.mode != Mode::merge) return schema;
  schema.key = spec_.key;
  for (Column& column : schema.columns) {
    const bool key =
        std::find(schema.key.begin(), schema.key.end(), column.name) != schema.key.end();
    if (key) column.nullable = column.has_default = false;
  }
  return schema;
}

Result<SqliteHandle> SqliteTarget::open_writer() {
  auto db = open_sqlite(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, where_);
  if (!db) return db;
  sqlite3* const handle = db->get();
  sqlite3_busy_handler(handle, &SqliteTarget::wait_for_lock, this);
  auto mode = sqlite_query(handle, "PRAGMA journal_mode = WAL", {}, where_);
  if (!mode) return mode.failure();
  // Where there can be no WAL, EXTRA makes the removal of the rollback journal durable too.
  const bool wal = !mode->empty() && (*mode)[0][0] == "wal";
  for (const std::string& pragma :
       {std::string("PRAGMA foreign_keys = ON"),
        std::string("PRAGMA synchronous = ") + (wal ? "FULL" : "EXTRA"),
        std::string("PRAGMA wal_autocheckpoint = 0"),
        "PRAGMA cache_size = -" + std::to_string(cache_kib),
        "PRAGMA journal_size_limit = " + std::to_string(std::int64_t{limits_.soft} * 8192)}) {
    if (auto set = sqlite_run(handle, pragma, where_); !set) return set.failure();
  }
  if (!wal) return db;
  auto checkpointer = SqliteCheckpointer::start(path_, limits_, log_, where_);
  if (!checkpointer) return checkpointer.failure();
  checkpointer_ = std::move(checkpointer).value();
  sqlite3_wal_hook(handle, &SqliteTarget::after_commit, this);
  return db;
}

Result<void> SqliteTarget::start(const Columns& plan, const std::optional<TargetMark>&) {
  FLOW_CHECK(table_.has_value(), "a SQLite target is started before it is prepared");
  close_all();
  keeps_letters_ = same_sqlite_database(spec_.url, letters_in_);
  auto db = open_writer();
  if (!db) return db.failure();
  auto triggers = sqlite_query(db->get(),
                               "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND"
                               " lower(tbl_name) = lower(?1) LIMIT 1",
                               {name_.table}, where_);
  if (!triggers) return triggers.failure();
  has_triggers_ = !triggers->empty();
  auto writer = SqliteRowWriter::make(db->get(), *table_, plan, spec_, cancelled_);
  if (!writer) return writer.failure();
  const std::lock_guard guard(handle_mutex_);
  db_ = std::move(db).value();
  writer_.emplace(std::move(writer).value());
  return {};
}

// ---- writing
// ---------------------------------------------------------------------------------------

Result<void> SqliteTarget::write(const Batch& batch, const RowSet& rows) {
  auto done = transaction([&] { return apply(batch, rows); });
  if (done || done.failure().code != foreign_key_code || done.failure().record) return done;
  return first_deferred(batch, rows, std::move(done).failure());
}

// From BEGIN to COMMIT; rolled back after whatever goes wrong.
Result<void> SqliteTarget::transaction(const std::function<Result<void>()>& work) {
  FLOW_CHECK(db_ != nullptr, "a SQLite target is written before it is started");
  cancelled_.store(false, std::memory_order_relaxed);
  if (auto failed = reach(Point::target_write_before)) return *failed;
  if (checkpointer_) {
    if (auto ready = checkpointer_->before_write(db_.get()); !ready) return ready;
  }
  auto done = begin();
  if (done) done = work();
  if (done) done = commit();
  if (sqlite3_get_autocommit(db_.get()) == 0) {
    sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  if (!done) return done;
  if (checkpointer_) checkpointer_->committed(wal_pages_);
  if (auto failed = reach(Point::target_commit_after)) return *failed;
  return {};
}

Result<void> SqliteTarget::begin() {
  if (auto there = check_not_moved(); !there) return there;
  return sqlite_run(db_.get(), "BEGIN IMMEDIATE", where_);
}

Result<void> SqliteTarget::apply(const Batch& batch, const RowSet& rows) {
  const std::size_t half = rows.order.size() / 2;
  if (auto done = writer_->write(batch, rows, 0, half); !done) return done;
  if (auto failed = reach(Point::target_write_torn)) return *failed;
  return writer_->write(batch, rows, half, rows.order.size());
}

Result<void> SqliteTarget::commit() {
  if (auto failed = reach(Point::target_commit_before)) return *failed;
  if (auto there = check_not_moved(); !there) return there;
  if (auto done = sqlite_run(db_.get(), "COMMIT", where_); !done) {
    Failure failure = done.failure();
    // An I/O error may have struck after the log held the whole transaction.
    const bool refused = failure.of_record() || failure.code.starts_with("SQLITE_BUSY");
    failure.effect = refused ? Effect::none : Effect::unknown;
    return failure;
  }
  if (auto failed = reach(Point::target_commit_applied)) {
    failed->effect = Effect::unknown;
    return *failed;
  }
  return {};
}

// What is written to a file that has lost its name would be lost with the process.
Result<void> SqliteTarget::check_not_moved() const {
  int moved = 0;
  sqlite3_file_control(db_.get(), nullptr, SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return {};
  return sqlite_failure(SQLITE_READONLY_DBMOVED, "the database was moved or deleted while in use",
                        where_ + ": " + path_);
}

void SqliteTarget::cancel() noexcept {
  cancelled_.store(true, std::memory_order_relaxed);
  const std::lock_guard guard(handle_mutex_);
  if (db_ != nullptr) sqlite3_interrupt(db_.get());
}

void SqliteTarget::close_all() noexcept {
  checkpointer_.reset();
  const std::lock_guard guard(handle_mutex_);
  writer_.reset();
  if (db_ == nullptr) return;
  // Nobody is waited for: what a reader still needs stays in the log and is read from there.
  sqlite3_busy_handler(db_.get(), nullptr, nullptr);
  sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  db_.reset();
}

int SqliteTarget::wait_for_lock(void* self, int attempt) noexcept {
  constexpr int step_ms = 10;
  auto* target = static_cast<SqliteTarget*>(self);
  if (target->cancelled_.load(std::memory_order_relaxed)) return 0;
  if (attempt * step_ms >= lock_wait_ms_max) return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
  return 1;
}

int SqliteTarget::after_commit(void* self, sqlite3*, const char*, int wal_pages) noexcept {
  static_cast<SqliteTarget*>(self)->wal_pages_ = wal_pages;
  return SQLITE_OK;
}

Result<std::unique_ptr<Target>> make_sqlite_target(const Context& context, const TargetSpec& spec,
                                                   WalLimits limits) {
  auto name = parse_table_name(spec.table);
  if (!name) return name.failure();
  return std::unique_ptr<Target>(
      std::make_unique<SqliteTarget>(context, spec, std::move(name).value(), limits));
}

Result<std::unique_ptr<Target>> make_sqlite_target(const Context& context, const TargetSpec& spec) {
  return make_sqlite_target(context, spec, WalLimits{});
}

}  // namespace flow
