#pragma once
// The Postgres target: one transaction a batch; what it refuses is left out or ends the write.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "connectors/postgres_catalog.h"
#include "connectors/postgres_client.h"
#include "connectors/postgres_copy.h"
#include "connectors/postgres_merge.h"
#include "core/registry.h"

namespace flow {

// Rows into one table, one transaction a batch. Durable: when write() returns ok, COMMIT was
// acknowledged. Errors: by SQLSTATE; effect unknown when the connection died during COMMIT; invalid
// names the record where it can be found. Reconnects at the next write(). Threads: as the port
// says.
class PostgresTarget final : public Target {
 public:
  PostgresTarget(const Context& context, const TargetSpec& spec)
      : spec_(spec),
        dry_run_(context.dry_run),
        letters_of_(writes_letter_table(context) ? context.state : nullptr),
        client_(spec.url, "flow/" + context.pipeline->name) {}

  const TargetSpec& spec() const override { return spec_; }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& columns) override;
  Result<void> start(const Columns& plan, const std::optional<TargetMark>& mark) override;
  Result<void> write(const Batch& batch, const RowSet& rows) override;
  Result<std::vector<RecordFailure>> write_around(const Batch& batch, const RowSet& rows,
                                                  const Aside& aside) override;
  bool keeps_letters() const override { return keeps_letters_; }
  void cancel() noexcept override { client_.cancel(); }
  void close() override { client_.close(); }

 private:
  enum class End : std::uint8_t { commit, roll_back };

  Result<void> check_server(std::vector<std::string>& notes);
  Result<void> find_table(const std::vector<ColumnSpec>& columns, std::vector<std::string>& notes);
  Failure no_such_table(const TableName& name);
  Result<void> look_for_letters();
  TargetSchema schema(const std::vector<ColumnSpec>& columns, std::vector<std::string> notes) const;

  static constexpr std::size_t few_rows = 1'000;  // up to here arrays beat a temporary table

  Result<void> transaction(const RowSet& rows, std::size_t count, End end,
                           std::span<const DeadLetter> letters = {});
  void choose(const RowSet& rows, std::size_t count);
  Result<void> store(const RowSet& rows);
  Result<void> copy_rows(const RowSet& rows, const std::string& sql);
  Result<void> insert_few(const RowSet& rows);
  Result<void> erase(const RowSet& rows);
  Result<void> end_transaction(End end);
  void name_record(Failure& failure, const RowSet& rows);
  std::optional<std::uint32_t> find_bad_row(const RowSet& rows);

  // One write that leaves out what is refused, by halves and then, when there is much of it, row by
  // row. parts: how many pieces were tried.
  struct Around {
    const Batch& batch;
    const RowSet& rows;
    const Aside& aside;
    std::vector<RecordFailure> refused{};
    std::vector<DeadLetter> letters{};
    std::size_t parts = 0;
    bool function_made = false;
    bool by_halves_only = false;  // the role may not make a temporary function
  };
  enum class Known : std::uint8_t { nothing, one_is_bad };
  using Rows = std::span<const std::uint32_t>;
  Result<void> isolate(Around& around);
  Result<bool> isolate_part(Around& around, Rows part, RowOp op, Known known);
  Result<void> store_part(const RowSet& rows, Rows part, RowOp op);
  Result<bool> each_apart(Around& around, Rows part);
  Result<void> make_each_function(Around& around);
  Result<void> refuse(Around& around, std::uint32_t row, Failure failure);

  Failure placed(Failure failure) const;
  Failure unwritable(const RowSet& rows, std::uint32_t row, std::size_t column);

  TargetSpec spec_;
  bool dry_run_;
  StateStore* letters_of_;  // whose table dead letters go to, if any
  bool keeps_letters_ = false;
  PostgresClient client_;
  PgSession session_;
  PgTable table_;
  std::vector<PgColumn> columns_;  // the plan's
  PgStatements statements_;
  ByteSink sink_;
  PgArrays arrays_;
  std::vector<std::uint32_t> upserts_, erases_;  // rows of the transaction under way
};

}  // namespace flow
