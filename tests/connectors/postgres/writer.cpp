#include "tests/connectors/postgres/writer.h"

#include <algorithm>
#include <stdexcept>

#include "connectors/registry.h"
#include "core/merge_order.h"
#include "tests/support/services.h"

namespace flow::test {

Writer::Writer(const std::string& url, const std::string& table, Mode mode,
               std::vector<std::string> key) {
  pipeline_.name = "test";
  spec_.kind = "postgres";
  spec_.label = "postgres " + table;
  spec_.url = url;
  spec_.table = table;
  spec_.mode = mode;
  spec_.key = std::move(key);
}

Result<TargetSchema> Writer::prepare(const std::vector<ColumnSpec>& columns) {
  context_.pipeline = &pipeline_;
  context_.log = &log_;
  context_.state = state;
  context_.dry_run = dry_run;
  auto made = make_postgres_target(context_, spec_);
  if (!made) return made.failure();
  target_ = std::move(made).value();
  return target_->prepare(columns);
}

Result<TargetSchema> Writer::open(const std::vector<std::string>& columns) {
  std::vector<ColumnSpec> specs(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) specs[i].name = columns[i];
  auto schema = prepare(specs);
  if (!schema) return schema;
  plan_.clear();
  key_.clear();
  for (const Column& c : schema->columns) {
    if (columns.empty() && !c.generated) plan_.push_back(c);
  }
  for (const std::string& name : columns) {
    const auto at = std::find_if(schema->columns.begin(), schema->columns.end(),
                                 [&](const Column& c) { return c.name == name; });
    if (at == schema->columns.end()) throw std::runtime_error("no column " + name);
    plan_.push_back(*at);
  }
  for (const std::string& k : spec_.key) {
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      if (plan_[i].name == k) key_.push_back(i);
    }
  }
  if (auto r = target_->start(plan_, std::nullopt); !r) return r.failure();
  return schema;
}

Result<void> Writer::write(const std::vector<std::vector<Value>>& rows) {
  std::vector<Row> upserts;
  for (const auto& cells : rows) upserts.push_back({cells});
  return write(upserts);
}

Result<void> Writer::write(const std::vector<Row>& rows) {
  Batch batch;
  RowSet set;
  lay_out(rows, batch, set);
  return target_->write(batch, set);
}

Result<std::vector<RecordFailure>> Writer::write_around(const std::vector<std::vector<Value>>& rows,
                                                        const Aside& aside) {
  std::vector<Row> upserts;
  for (const auto& cells : rows) upserts.push_back({cells});
  return write_around(upserts, aside);
}

Result<std::vector<RecordFailure>> Writer::write_around(const std::vector<Row>& rows,
                                                        const Aside& aside) {
  Batch batch;
  RowSet set;
  lay_out(rows, batch, set);
  return target_->write_around(batch, set, aside);
}

void Writer::lay_out(const std::vector<Row>& rows, Batch& batch, RowSet& set) {
  std::vector<Caster> casts;
  for (const Column& c : plan_) casts.emplace_back(CastRule{c, TimeUnit::none, zone});
  batch.span_of({"topic", 0}, Position{100});
  set.width = plan_.size();
  for (std::uint32_t r = 0; r < rows.size(); ++r) {
    batch.records.emplace_back();
    batch.records.back().offset = Offset{100 + r};
    Value* cells = set.add(r, rows[r].op);
    for (std::size_t c = 0; c < rows[r].cells.size(); ++c) {
      cells[c] = rows[r].cells[c];
      std::string reason;
      if (!casts[c].cast(cells[c], batch.arena, reason)) throw std::runtime_error(reason);
    }
  }
  order_rows(set, plan_, key_);
}

std::string server() { return services().postgres; }

std::vector<std::string> lines(const PgSchema& schema, const std::string& sql) {
  std::vector<std::string> out;
  for (const PgRow& row : schema.query(sql)) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += (i ? "|" : "") + row[i].value_or("NULL");
    out.push_back(line);
  }
  return out;
}

}  // namespace flow::test
