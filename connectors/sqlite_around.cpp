// The SQLite target's writes that leave out what is refused.
#include <algorithm>
#include <utility>

#include "connectors/sqlite_letters.h"
#include "connectors/sqlite_target.h"
#include "core/failure_point.h"

namespace flow {

Result<std::vector<RecordFailure>> SqliteTarget::write_around(const Batch& batch,
                                                              const RowSet& rows,
                                                              const Aside& aside) {
  Around around{.aside = aside, .apart = has_triggers_};
  for (;;) {
    around.again = false;
    auto done = transaction([&] { return apply_around(batch, rows, around); });
    if (done) return std::move(around.refused);
    const bool at_commit = done.failure().code == foreign_key_code && !done.failure().record;
    if (at_commit && !around.deferred) {
      around.apart = around.deferred = around.again = true;
    }
    if (!around.again) return std::move(done).failure();
  }
}

Result<void> SqliteTarget::apply_around(const Batch& batch, const RowSet& rows, Around& around) {
  constexpr std::size_t rows_between_looks = 256;
  around.refused.clear();
  around.letters.assign(around.aside.letters.begin(), around.aside.letters.end());
  for (const RecordFailure& f : around.banned) {
    if (auto told = refuse(around, f); !told) return told;
  }
  for (std::size_t i = 0; i < rows.order.size(); ++i) {
    if (i == rows.order.size() / 2) {
      if (auto failed = reach(Point::target_write_torn)) return *failed;
    }
    if (i % rows_between_looks == 0) {
      if (auto go_on = writer_->check_cancelled(); !go_on) return go_on;
    }
    const std::uint32_t row = rows.order[i];
    const std::uint32_t record = rows.record[row];
    if (std::any_of(around.banned.begin(), around.banned.end(),
                    [&](const RecordFailure& f) { return f.record == record; })) {
      continue;
    }
    auto done = around.apart ? write_apart(batch, rows, row, around.deferred)
                             : writer_->write_row(batch, rows, row);
    if (done) continue;
    if (!done.failure().of_record()) return done;
    const RecordFailure failure{record, 0, std::move(done).failure()};
    if (sqlite3_get_autocommit(db_.get()) != 0) {  // RAISE(ROLLBACK), ON CONFLICT ROLLBACK
      around.banned.push_back(failure);
      around.again = true;
      return failure.failure;
    }
    if (auto told = refuse(around, failure); !told) return told;
  }
  return keeps_letters_ ? insert_letters(db_.get(), around.letters, where_) : Result<void>();
}

Result<void> SqliteTarget::write_apart(const Batch& batch, const RowSet& rows, std::uint32_t row,
                                       bool deferred) {
  if (auto set = sqlite_run(db_.get(), "SAVEPOINT flow_row", where_); !set) return set;
  auto done = writer_->write_row(batch, rows, row);
  int open_keys = 0;
  int highest = 0;
  if (done && deferred) {
    sqlite3_db_status(db_.get(), SQLITE_DBSTATUS_DEFERRED_FKS, &open_keys, &highest, 0);
  }
  if (open_keys != 0) {
    done = sqlite_failure(SQLITE_CONSTRAINT_FOREIGNKEY, "FOREIGN KEY constraint failed",
                          where_ + ": " + batch.where(rows.record[row]));
    done.failure().record = rows.record[row];
  }
  if (!done && sqlite3_get_autocommit(db_.get()) != 0) return done;
  if (!done) {
    if (auto undone = sqlite_run(db_.get(), "ROLLBACK TO flow_row", where_); !undone) return undone;
  }
  auto released = sqlite_run(db_.get(), "RELEASE flow_row", where_);
  return done ? released : done;
}

Result<void> SqliteTarget::refuse(Around& around, const RecordFailure& failure) {
  around.refused.push_back(failure);
  if (!around.aside.refused) return {};
  auto letter = around.aside.refused(failure);
  if (!letter) return std::move(letter).failure();
  if (*letter) around.letters.push_back(std::move(**letter));
  return {};
}

// COMMIT names no row: the first one that leaves a foreign key open is the one.
Failure SqliteTarget::first_deferred(const Batch& batch, const RowSet& rows, Failure failure) {
  const Aside stop{.refused = [](const RecordFailure& f) -> Result<std::optional<DeadLetter>> {
    return f.failure;
  }};
  Around around{.aside = stop, .apart = true, .deferred = true};
  auto found = transaction([&] { return apply_around(batch, rows, around); });
  return found ? failure : std::move(found).failure();
}

}  // namespace flow
