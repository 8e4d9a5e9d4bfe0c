#pragma once
// The SQLite target: one transaction a batch; what it refuses is left out or ends the write.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connectors/sqlite_catalog.h"
#include "connectors/sqlite_checkpoint.h"
#include "connectors/sqlite_client.h"
#include "connectors/sqlite_rows.h"
#include "core/registry.h"
#include "core/sqlite_path.h"

namespace flow {

// With other limits of the write-ahead log than those of the program.
Result<std::unique_ptr<Target>> make_sqlite_target(const Context& context, const TargetSpec& spec,
                                                   WalLimits limits);

// Durable: write() returns ok when a power cut cannot undo it: WAL, synchronous=FULL. A transaction
// that is not committed is rolled back, always, and nothing of it stays.
class SqliteTarget final : public Target {
 public:
  SqliteTarget(const Context& context, TargetSpec spec, TableName name, WalLimits limits)
      : spec_(std::move(spec)),
        name_(std::move(name)),
        limits_(limits),
        log_(*context.log),
        letters_in_(writes_letter_table(context) ? context.state->location() : ""),
        path_(sqlite_path(spec_.url)),
        where_("target " + spec_.label) {}
  ~SqliteTarget() override { close_all(); }

  const TargetSpec& spec() const override { return spec_; }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& columns) override;
  Result<void> start(const Columns& plan, const std::optional<TargetMark>& mark) override;
  Result<void> write(const Batch& batch, const RowSet& rows) override;
  Result<std::vector<RecordFailure>> write_around(const Batch& batch, const RowSet& rows,
                                                  const Aside& aside) override;
  bool keeps_letters() const override { return keeps_letters_; }
  void cancel() noexcept override;
  void close() override { close_all(); }

 private:
  Result<void> check_file() const;
  Result<void> read_table(sqlite3* db);
  Result<void> create_file(std::vector<std::string>& notes) const;
  Result<void> create_table(const std::vector<ColumnSpec>& columns,
                            std::vector<std::string>& notes);
  Failure no_table(sqlite3* db) const;

  Result<SqliteHandle> open_writer();
  // One write that leaves out what is refused. banned: rows whose failure rolls the transaction
  // back; it begins anew without them. Apart: each row in a savepoint, so that all of its effects
  // can be undone, and with `deferred` looked at for foreign keys that only COMMIT would check.
  struct Around {
    const Aside& aside;
    std::vector<RecordFailure> refused{};
    std::vector<DeadLetter> letters{};
    std::vector<RecordFailure> banned{};
    bool apart = false;
    bool deferred = false;
    bool again = false;
  };

  static constexpr std::string_view foreign_key_code = "SQLITE_CONSTRAINT_FOREIGNKEY";

  Result<void> transaction(const std::function<Result<void>()>& work);
  Result<void> begin();
  Result<void> apply(const Batch& batch, const RowSet& rows);
  Result<void> apply_around(const Batch& batch, const RowSet& rows, Around& around);
  Result<void> write_apart(const Batch& batch, const RowSet& rows, std::uint32_t row,
                           bool deferred);
  static Result<void> refuse(Around& around, const RecordFailure& failure);
  Failure first_deferred(const Batch& batch, const RowSet& rows, Failure failure);
  Result<void> commit();
  Result<void> check_not_moved() const;
  void close_all() noexcept;

  static int wait_for_lock(void* self, int attempt) noexcept;
  static int after_commit(void* self, sqlite3*, const char*, int wal_pages) noexcept;

  TargetSpec spec_;
  TableName name_;
  WalLimits limits_;
  Log& log_;
  std::string letters_in_;  // URL of the state whose table dead letters go to, if any
  bool keeps_letters_ = false;
  bool has_triggers_ = false;
  std::string path_;
  std::string where_;
  std::optional<SqliteTable> table_;

  std::mutex handle_mutex_;  // cancel() against close()
  SqliteHandle db_;
  std::optional<SqliteRowWriter> writer_;
  std::unique_ptr<SqliteCheckpointer> checkpointer_;
  std::atomic<bool> cancelled_{false};
  int wal_pages_ = 0;
};

}  // namespace flow
