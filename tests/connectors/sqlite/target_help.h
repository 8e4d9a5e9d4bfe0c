#pragma once
// A SQLite target under test: a database of its own, rows by hand, and what the table holds
// afterwards.
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "connectors/sqlite_target.h"
#include "core/merge_order.h"
#include "tests/support/memory_parts.h"
#include "tests/support/sqlite_help.h"
#include "tests/support/temp_dir.h"

namespace flow::test {

using Row = std::vector<Value>;

// Shape: rows are given in the order of `plan`; erase() rows carry their key columns only.
class SqliteBench {
 public:
  explicit SqliteBench(const std::string& ddl = "", Mode mode = Mode::append,
                       std::vector<std::string> key = {}, WalLimits limits = {}) {
    if (!ddl.empty()) sqlite_query(path(), ddl);
    spec.kind = "sqlite";
    spec.label = "sqlite orders";
    spec.url = "sqlite:" + path().string();
    spec.table = "orders";
    spec.mode = mode;
    spec.key = std::move(key);
    limits_ = limits;
  }

  std::filesystem::path path() const { return dir_ / "warehouse.db"; }
  const TempDir& dir() const { return dir_; }
  std::vector<std::vector<std::optional<std::string>>> query(const std::string& sql) const {
    return sqlite_query(path(), sql);
  }
  // The table's rows in one line each: values by '|', NULL as the empty sign.
  std::vector<std::string> table(const std::string& sql = "SELECT * FROM orders ORDER BY 1") const {
    std::vector<std::string> lines;
    for (const auto& row : query(sql)) {
      std::string line;
      for (const auto& value : row) line += (line.empty() ? "" : "|") + value.value_or("(null)");
      lines.push_back(line);
    }
    return lines;
  }

  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& columns = {}) {
    Context context;
    context.log = &log;
    context.pipeline = &pipeline;
    context.state = state;
    auto made = make_sqlite_target(context, spec, limits_);
    if (!made) return made.failure();
    target = std::move(made).value();
    return target->prepare(columns);
  }
  // Ready to write the table's columns, or those named.
  void start(const std::vector<std::string>& names = {}) {
    auto schema = prepare();
    REQUIRE_MESSAGE(schema.ok(), schema.failure().text());
    plan.clear();
    for (const Column& column : schema->columns) {
      const bool named = std::find(names.begin(), names.end(), column.name) != names.end();
      if (names.empty() ? !column.generated : named) plan.push_back(column);
    }
    auto started = target->start(plan, std::nullopt);
    REQUIRE_MESSAGE(started.ok(), started.failure().text());
  }

  void add(const Row& row, RowOp op = RowOp::upsert) {
    if (batch.rows.empty()) batch.rows.resize(1);
    RowSet& rows = batch.rows[0];
    rows.width = plan.size();
    const auto record = static_cast<std::uint32_t>(batch.records.size());
    Record& r = batch.records.emplace_back();
    r.span = batch.span_of({"orders", 0}, {0});
    r.offset = {static_cast<std::int64_t>(record)};
    Value* cells = rows.add(record, op);
    std::copy(row.begin(), row.end(), cells);
  }
  Result<void> write() {
    order();
    auto done = target->write(batch, batch.rows[0]);
    batch.clear();
    return done;
  }
  // "record code" of each row that was refused, in order; the letters that `aside` gave are the
  // target's to keep.
  std::vector<std::string> write_around(Aside aside = {}) {
    order();
    auto told = std::make_shared<std::set<std::uint32_t>>();
    if (!aside.refused) {
      aside.refused = [told](const RecordFailure& f) -> Result<std::optional<DeadLetter>> {
        told->insert(f.record);
        return std::optional<DeadLetter>();
      };
    }
    auto refused = target->write_around(batch, batch.rows[0], aside);
    batch.clear();
    if (!refused) return {"failed: " + refused.failure().text()};
    std::sort(refused->begin(), refused->end(),
              [](const auto& a, const auto& b) { return a.record < b.record; });
    std::vector<std::string> out;
    for (const RecordFailure& f : *refused) {
      CHECK(f.failure.record == f.record);
      out.push_back(std::to_string(f.record) + " " + f.failure.code);
    }
    return out;
  }
  void order() {
    if (batch.rows.empty()) batch.rows.resize(1);
    std::vector<std::size_t> key;
    for (std::size_t c = 0; c < plan.size(); ++c) {
      if (std::find(spec.key.begin(), spec.key.end(), plan[c].name) != spec.key.end()) {
        key.push_back(c);
      }
    }
    batch.rows[0].width = plan.size();
    order_rows(batch.rows[0], plan, key);
  }
  void must_write() {
    auto done = write();
    REQUIRE_MESSAGE(done.ok(), done.failure().text());
  }

  TargetSpec spec;
  Pipeline pipeline;
  StateStore* state = nullptr;
  MemoryLog log;
  std::unique_ptr<Target> target;
  Columns plan;
  Batch batch;

 private:
  TempDir dir_;
  WalLimits limits_;
};

inline Value num(std::int64_t i) { return Value::int64(i); }
inline Value str(std::string_view s) { return Value::text(s); }
inline Value dec(std::string_view s) { return Value::text(s, Kind::decimal); }
inline Value none() { return Value::null(); }

}  // namespace flow::test
