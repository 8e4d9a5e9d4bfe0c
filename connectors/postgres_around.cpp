// The Postgres target's writes that leave out what is refused.
#include <algorithm>
#include <numeric>
#include <utility>

#include "connectors/postgres_letters.h"
#include "connectors/postgres_target.h"
#include "core/failure_point.h"

namespace flow {
namespace {

// One bad row among very many is found by halves in fewer pieces than this; past it there are many
// bad rows, and storing each alone is cheaper than looking for them.
constexpr std::size_t parts_by_halves_max = 40;
constexpr std::size_t rows_apart_at_once = 2'000;

}  // namespace

Result<std::vector<RecordFailure>> PostgresTarget::write_around(const Batch& batch,
                                                                const RowSet& rows,
                                                                const Aside& aside) {
  const PostgresWork work(client_);
  if (auto f = reach(Point::target_write_before)) return *f;
  auto whole = transaction(rows, rows.order.size(), End::commit, aside.letters);
  if (whole) return std::vector<RecordFailure>{};
  if (!whole.failure().of_record()) return placed(std::move(whole).failure());
  Around around{.batch = batch, .rows = rows, .aside = aside};
  around.letters.assign(aside.letters.begin(), aside.letters.end());
  auto done = isolate(around);
  if (done) return std::move(around.refused);
  client_.rollback();
  return placed(std::move(done).failure());
}

// One transaction: the good rows and, where they are kept here, the letters of the others. What
// only COMMIT would check is checked at once, so that a row is known by its own failure.
Result<void> PostgresTarget::isolate(Around& around) {
  if (auto r = client_.connect(); !r) return r;
  choose(around.rows, around.rows.order.size());
  const auto erases = erases_;
  const auto upserts = upserts_;
  if (auto r = client_.run(statements_.begin + "SET CONSTRAINTS ALL IMMEDIATE"); !r) return r;
  auto erased = isolate_part(around, erases, RowOp::erase, Known::nothing);
  if (!erased) return std::move(erased).failure();
  auto stored = isolate_part(around, upserts, RowOp::upsert, Known::nothing);
  if (!stored) return std::move(stored).failure();
  if (around.function_made) {
    if (auto r = client_.run("DROP FUNCTION pg_temp.flow_each"); !r) return r;
  }
  if (keeps_letters_) {
    if (auto r = insert_letters(client_, around.letters); !r) return r;
  }
  return end_transaction(End::commit);
}

// True: all of the part is stored. A part of which one is known to be bad is not tried whole.
Result<bool> PostgresTarget::isolate_part(Around& around, Rows part, RowOp op, Known known) {
  if (part.empty()) return true;
  const bool many = around.parts >= parts_by_halves_max && !around.by_halves_only;
  if (many && op == RowOp::upsert && part.size() > 1) return each_apart(around, part);
  if (known == Known::nothing || part.size() == 1) {
    ++around.parts;
    if (auto r = client_.run("SAVEPOINT flow_part"); !r) return std::move(r).failure();
    auto stored = store_part(around.rows, part, op);
    if (stored) {
      if (auto r = client_.run("RELEASE SAVEPOINT flow_part"); !r) return std::move(r).failure();
      return true;
    }
    Failure failure = std::move(stored).failure();
    if (!failure.of_record()) return failure;
    if (const PgError& error = client_.last_error();
        failure.code == error.code && !error.column.empty()) {
      failure.where += ", column " + error.column;
    }
    if (auto r = client_.roll_back_to("flow_part"); !r) return std::move(r).failure();
    if (part.size() == 1) {
      if (auto r = refuse(around, part.front(), std::move(failure)); !r)
        return std::move(r).failure();
      return false;
    }
  }
  const std::size_t half = part.size() / 2;
  auto first = isolate_part(around, part.first(half), op, Known::nothing);
  if (!first) return first;
  auto second =
      isolate_part(around, part.subspan(half), op, *first ? Known::one_is_bad : Known::nothing);
  if (!second) return second;
  return false;
}

Result<void> PostgresTarget::store_part(const RowSet& rows, Rows part, RowOp op) {
  auto& chosen = op == RowOp::erase ? erases_ : upserts_;
  chosen.assign(part.begin(), part.end());
  if (op == RowOp::erase) return erase(rows);
  if (part.size() <= few_rows) return insert_few(rows);
  if (!statements_.staged) return copy_rows(rows, statements_.copy);
  auto r = copy_rows(rows, statements_.stage);
  if (r) r = client_.run(statements_.insert_staged + "; DROP TABLE pg_temp.flow_stage");
  return r;
}

Result<void> PostgresTarget::make_each_function(Around& around) {
  if (around.function_made) return {};
  if (auto r = client_.run("SAVEPOINT flow_part"); !r) return r;
  auto made = client_.run(statements_.each_function);
  if (made) {
    around.function_made = true;
    return client_.run("RELEASE SAVEPOINT flow_part");
  }
  if (made.failure().retryable()) return made;
  around.by_halves_only = true;
  return client_.roll_back_to("flow_part");
}

// Each row in a subtransaction of its own, on the server, without a round trip each.
Result<bool> PostgresTarget::each_apart(Around& around, Rows part) {
  if (auto r = make_each_function(around); !r) return std::move(r).failure();
  if (around.by_halves_only) return isolate_part(around, part, RowOp::upsert, Known::nothing);
  std::vector<std::size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  bool all_good = true;
  while (!part.empty()) {
    const Rows some = part.first(std::min(part.size(), rows_apart_at_once));
    if (!arrays_.fill(around.rows, some, columns_, all, PgArrays::Wording::text)) {
      // A value that cannot be sent at all: its row goes first, the others try again.
      const std::size_t bad = arrays_.bad_row();
      Failure failure = unwritable(around.rows, some[bad], arrays_.bad_column());
      if (!failure.of_record()) return failure;
      if (auto r = each_apart(around, some.first(bad)); !r) return r;
      if (auto r = refuse(around, some[bad], std::move(failure)); !r) return std::move(r).failure();
      all_good = false;
      part = part.subspan(bad + 1);
      continue;
    }
    auto told = client_.query(statements_.each, arrays_.parameters());
    if (!told) return std::move(told).failure();
    for (int i = 0; i < told->rows(); ++i) {
      Failure failure = client_.refused(told->str(i, 1), told->str(i, 2));
      if (!failure.of_record()) return failure;
      if (!told->text(i, 3).empty()) failure.where += ", column " + told->str(i, 3);
      const std::size_t at = std::stoull(told->str(i, 0)) - 1;
      if (auto r = refuse(around, some[at], std::move(failure)); !r) return std::move(r).failure();
      all_good = false;
    }
    part = part.subspan(some.size());
  }
  return all_good;
}

Result<void> PostgresTarget::refuse(Around& around, std::uint32_t row, Failure failure) {
  const std::uint32_t record = around.rows.record[row];
  failure = placed(std::move(failure));
  failure.where = around.batch.where(record) + ", " + failure.where;
  failure.record = record;
  around.refused.push_back({record, 0, std::move(failure)});
  if (!around.aside.refused) return {};
  auto letter = around.aside.refused(around.refused.back());
  if (!letter) return std::move(letter).failure();
  if (*letter) around.letters.push_back(std::move(**letter));
  return {};
}

}  // namespace flow
