#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/cast.h"
#include "core/ports.h"
#include "core/registry.h"
#include "tests/support/pg_help.h"

namespace flow::test {

class NoLog final : public Log {
 public:
  void event(Level, std::string_view, const Fields&) override {}
};

// A postgres target with what the loop would put around it: casts to the table's columns and the
// order of rows. Shape: write() takes natural values, one row a record; record i of a call is
// topic/0@100+i.
class Writer {
 public:
  Writer(const std::string& url, const std::string& table, Mode mode = Mode::append,
         std::vector<std::string> key = {});

  TargetSpec& spec() { return spec_; }
  // prepare() and start() with the columns of that name, in that order (none: all the table has).
  Result<TargetSchema> open(const std::vector<std::string>& columns = {});
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& columns = {});

  struct Row {
    std::vector<Value> cells;
    RowOp op = RowOp::upsert;
  };
  Result<void> write(const std::vector<Row>& rows);
  Result<void> write(const std::vector<std::vector<Value>>& rows);
  // As write(), leaving out what is refused.
  Result<std::vector<RecordFailure>> write_around(const std::vector<Row>& rows, const Aside& aside);
  Result<std::vector<RecordFailure>> write_around(const std::vector<std::vector<Value>>& rows,
                                                  const Aside& aside = {});
  // A text that lives as long as the writer.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  Target& target() { return *target_; }
  std::string zone = "UTC";
  bool dry_run = false;

  StateStore* state = nullptr;
  Pipeline& pipeline() { return pipeline_; }

 private:
  void lay_out(const std::vector<Row>& rows, Batch& batch, RowSet& set);

  Pipeline pipeline_;
  TargetSpec spec_;
  NoLog log_;
  Context context_;
  std::unique_ptr<Target> target_;
  Columns plan_;
  std::vector<std::size_t> key_;
  std::deque<std::string> texts_;
};

inline Value text(std::string_view s) { return Value::text(s); }
inline Value number(std::int64_t i) { return Value::int64(i); }
inline Value token(std::string_view s) { return Value::text(s, Kind::decimal); }
inline Value json(std::string_view s) { return Value::text(s, Kind::json); }

// The server of the tests.
std::string server();
// "a|b|NULL" per row.
std::vector<std::string> lines(const PgSchema& schema, const std::string& sql);

}  // namespace flow::test
