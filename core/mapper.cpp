#include "core/mapper.h"

#include <algorithm>

#include "core/cast_text.h"
#include "core/merge_order.h"

namespace flow {

namespace {

bool is_null(std::string_view bytes) { return bytes.data() == nullptr; }

bool is_number(Kind kind) {
  return kind == Kind::int64 || kind == Kind::float64 || kind == Kind::decimal;
}

// The code of a cast that failed: the value is of the column's type and does not fit it, or it is
// of another.
std::string cast_code(const Value& natural, Type type) {
  const bool number = type == Type::int64 || type == Type::float64 || type == Type::decimal;
  const bool fits =
      number ? is_number(natural.kind()) : type == Type::text && natural.kind() == Kind::text;
  return fits ? "cast.range" : "cast.type";
}

}  // namespace

void Mapper::begin(Batch& batch) const {
  batch.rows.resize(plans_.size());
  batch.filtered.assign(plans_.size(), 0);
  for (std::size_t t = 0; t < plans_.size(); ++t) {
    batch.rows[t].clear();
    batch.rows[t].width = plans_[t].casts.size();
  }
}

void Mapper::refuse(Batch& batch, const Failure& failure, std::int64_t attempts) {
  begin(batch);
  for (std::uint32_t r = 0; r < batch.records.size(); ++r) {
    fail_everywhere(batch, r, Stage::decode, failure);
  }
  for (RecordFailure& f : batch.failures) f.attempts = attempts;
  keep_to_policy(batch);
}

void Mapper::map(Batch& batch) {
  begin(batch);
  decoder_->begin(batch);
  if (!transforms_.empty()) {
    run_transforms(batch);
  } else {
    Failure failure;
    for (std::uint32_t r = 0; r < batch.records.size(); ++r) {
      if (is_null(batch.records[r].value)) {
        tombstone(batch, r);
      } else if (natural_row(batch, r, cells_.data(), failure)) {
        to_targets(batch, r, cells_.data());
      } else {
        fail_everywhere(batch, r, Stage::decode, failure);
      }
    }
  }
  keep_to_policy(batch);
}

// fail: the batch ends before the first record that failed, and the run after it.
void Mapper::keep_to_policy(Batch& batch) const {
  if (!batch.failures.empty() && pipeline_->on_error == OnError::fail) {
    const auto first =
        std::min_element(batch.failures.begin(), batch.failures.end(),
                         [](const auto& a, const auto& b) { return a.record < b.record; });
    Failure stop = first->failure;
    stop.exit = ExitCode::data;
    if (stop.hint.empty()) {
      stop.hint =
          "what is before it is done; mend the record or the column, or let transform_on_error: "
          "dlq set it aside";
    }
    batch.stop = std::move(stop);
    batch.truncate(first->record);
  }
  order(batch);
}

void Mapper::order(Batch& batch) const {
  for (std::size_t t = 0; t < plans_.size(); ++t) {
    order_rows(batch.rows[t], plans_[t].columns(), plans_[t].key);
  }
}

// False: `failure` says why; its `where` is filled in by the caller.
bool Mapper::natural_row(Batch& batch, std::uint32_t r, Value* cells, Failure& failure) {
  const Record& record = batch.records[r];
  std::fill_n(cells, fields_.size(), Value());
  if (decode_ && !decoder_->decode(record, batch.arena, cells, failure)) return false;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (fields_[f].from != FieldSource::From::path && !at_cell(batch, record, f, cells[f], failure))
      return false;
    const ColumnSpec* spec = field_specs_[f];
    if (spec == nullptr || cells[f].kind() != Kind::missing) continue;
    if (spec->fallback) {
      cells[f] = constant(*spec->fallback);
    } else if (spec->required) {
      failure = {.cls = FailureClass::invalid,
                 .code = "decode.missing",
                 .where = "column " + spec->name,
                 .what = "the record has no " + fields_[f].text + ", and the column is required"};
      return false;
    }
  }
  return true;
}

Value Mapper::constant(const FieldSource& field) {
  const std::string& text = field.name;
  switch (field.constant_type) {
    case Type::boolean: return Value::boolean(text == "true");
    case Type::int64: return Value::int64(std::strtoll(text.c_str(), nullptr, 10));
    case Type::decimal: return Value::text(text, Kind::decimal);
    default: return Value::text(text);
  }
}

bool Mapper::at_cell(const Batch& batch, const Record& record, std::size_t f, Value& cell,
                     Failure& failure) {
  const FieldSource& field = fields_[f];
  const auto text = [&](std::string_view bytes) {
    if (is_null(bytes)) {
      cell = Value::null();
    } else {
      cell = Value::text(bytes);
    }
    if (valid_utf8(bytes)) return true;
    failure = {.cls = FailureClass::invalid,
               .code = "decode.utf8",
               .where = field.text,
               .what = "is not valid UTF-8"};
    return false;
  };
  switch (field.from) {
    case FieldSource::From::path: return true;
    case FieldSource::From::value: return text(record.value);
    case FieldSource::From::key: return text(record.key);
    case FieldSource::From::topic:
      cell = Value::text(batch.spans[record.span].partition.topic);
      return true;
    case FieldSource::From::partition:
      cell = Value::int64(batch.spans[record.span].partition.partition);
      return true;
    case FieldSource::From::offset: cell = Value::int64(record.offset.value); return true;
    case FieldSource::From::timestamp:
      cell = record.timestamp_ms < 0 ? Value::null()
                                     : Value::number(Kind::timestamptz, record.timestamp_ms * 1000);
      return true;
    case FieldSource::From::header:
      for (std::uint32_t h = record.header_count; h-- > 0;) {  // the last of a name counts
        const Header& header = batch.headers[record.header_first + h];
        if (header.name == field.name) return text(header.value);
      }
      cell = Value();
      return true;
    case FieldSource::From::constant: cell = constant(field); return true;
  }
  return true;
}

bool Mapper::cast_row(const TargetPlan& plan, const Value* cells, Value* out, Arena& arena,
                      Failure& failure) const {
  for (std::size_t c = 0; c < plan.casts.size(); ++c) {
    out[c] = cells[plan.natural[c]];
    std::string reason;
    const Column& column = plan.casts[c].column();
    if (!plan.casts[c].cast(out[c], arena, reason)) {
      failure = {.cls = FailureClass::invalid,
                 .code = cast_code(cells[plan.natural[c]], column.type),
                 .where = plan.label + ", column " + column.name,
                 .what = reason};
      return false;
    }
    if (plan.required_not_null[c] != 0 && out[c].is_null()) {
      failure = {.cls = FailureClass::invalid,
                 .code = "cast.null",
                 .where = plan.label + ", column " + column.name,
                 .what = std::string(out[c].kind() == Kind::missing ? "the record has no such field"
                                                                    : "is null") +
                         ", and the column is NOT NULL"};
      return false;
    }
  }
  return true;
}

void Mapper::to_targets(Batch& batch, std::uint32_t record, const Value* cells) {
  Failure failure;
  for (std::size_t t = 0; t < plans_.size(); ++t) {
    RowSet& set = batch.rows[t];
    Value* out = set.add(record);
    if (cast_row(plans_[t], cells, out, batch.arena, failure)) continue;
    set.drop_last();
    fail(batch, record, t, Stage::cast, std::move(failure));
  }
}

// A record without value: per target one stated rule (flow-pipeline(5), on_tombstone).
void Mapper::tombstone(Batch& batch, std::uint32_t record) {
  for (std::size_t t = 0; t < plans_.size(); ++t) {
    const TargetPlan& plan = plans_[t];
    RowSet& set = batch.rows[t];
    if (plan.tombstones_pass) {
      set.add(record, RowOp::erase);
      continue;
    }
    if (plan.mode == Mode::merge && plan.on_tombstone == OnTombstone::ignore) {
      ++batch.filtered[t];
      continue;
    }
    Failure failure;
    if (plan.mode == Mode::merge && plan.on_tombstone == OnTombstone::erase) {
      if (erase_row(batch, plan, set, record, failure)) continue;
    } else {
      failure = {.cls = FailureClass::invalid,
                 .code = "tombstone",
                 .where = plan.label,
                 .what = "the record has no value (a tombstone)",
                 .hint = plan.mode == Mode::merge
                             ? "on_tombstone: delete or ignore says what it means"
                             : "an append target has no row for it"};
    }
    fail(batch, record, t, Stage::cast, std::move(failure));
  }
}

// The key columns of a tombstone come from @-sources; a single key column may also be the message
// key itself.
bool Mapper::erase_row(Batch& batch, const TargetPlan& plan, RowSet& set, std::uint32_t r,
                       Failure& failure) {
  const Record& record = batch.records[r];
  Value* out = set.add(r, RowOp::erase);
  for (const std::size_t k : plan.key) {
    const Column& column = plan.casts[k].column();
    const std::size_t f = plan.natural[k];
    const bool at = transforms_.empty() && fields_[f].from != FieldSource::From::path;
    std::string reason = "a tombstone does not say it";
    bool ok = true;
    if (at) {
      ok = at_cell(batch, record, f, out[k], failure);
      if (!ok) reason = failure.what;
    } else if (plan.key.size() == 1 && !is_null(record.key)) {
      ok = valid_utf8(record.key);
      reason = "the message key is not valid UTF-8";
      out[k] = Value::text(record.key);
    }
    if (ok) ok = plan.casts[k].cast(out[k], batch.arena, reason);
    if (ok && !out[k].is_null()) continue;
    set.drop_last();
    failure = {.cls = FailureClass::invalid,
               .code = "tombstone.key",
               .where = plan.label + ", key column " + column.name,
               .what = reason,
               .hint = "take every key column from @key or @headers"};
    return false;
  }
  return true;
}

void Mapper::fail(Batch& batch, std::uint32_t record, std::size_t target, Stage stage,
                  Failure failure) {
  const std::string at = batch.where(record);
  failure.where = failure.where.empty() ? at : at + ", " + failure.where;
  batch.failures.push_back({record, static_cast<std::uint32_t>(target), std::move(failure), stage});
}

void Mapper::fail_everywhere(Batch& batch, std::uint32_t record, Stage stage,
                             const Failure& failure) {
  for (std::size_t t = 0; t < plans_.size(); ++t) fail(batch, record, t, stage, failure);
}

// In pieces that stay in the processor's cache and bound the memory between the steps.
void Mapper::run_transforms(Batch& batch) {
  constexpr std::size_t piece = 1024;
  for (std::size_t first = 0; first < batch.records.size(); first += piece) {
    transform_piece(batch, static_cast<std::uint32_t>(first),
                    static_cast<std::uint32_t>(std::min(first + piece, batch.records.size())));
  }
}

void Mapper::transform_piece(Batch& batch, std::uint32_t first, std::uint32_t end) {
  enum : char { value, without, failed };
  std::vector<char>& what = fates_;
  what.assign(end - first, value);
  natural_.clear();
  natural_.width = fields_.size();
  Failure failure;
  for (std::uint32_t r = first; r < end; ++r) {
    if (is_null(batch.records[r].value)) {
      what[r - first] = without;
    } else if (!natural_row(batch, r, natural_.add(r), failure)) {
      natural_.drop_last();
      what[r - first] = failed;
      fail_everywhere(batch, r, Stage::decode, failure);
    }
  }
  std::vector<RecordFailure> failures;
  for (std::size_t k = 0; k < transforms_.size(); ++k) {
    if (k > 0) select_columns(transforms_[k - 1]->outputs(), transforms_[k]->inputs());
    transformed_.clear();
    transformed_.width = transforms_[k]->outputs().size();
    transforms_[k]->apply(batch, natural_, transformed_, failures);
    std::swap(natural_, transformed_);
  }
  for (RecordFailure& f : failures) {
    what[f.record - first] = failed;
    if (f.failure.code.empty()) f.failure.code = "transform.error";
    fail_everywhere(batch, f.record, Stage::transform, f.failure);
  }
  std::size_t row = 0;
  for (std::uint32_t r = first; r < end; ++r) {
    if (what[r - first] == without) tombstone(batch, r);
    if (what[r - first] != value) continue;
    if (row < natural_.rows() && natural_.record[row] == r) {
      to_targets(batch, r, natural_.row(row++));
    } else {
      for (std::uint32_t& n : batch.filtered) ++n;
    }
  }
}

// Lays natural_ out as the next transform wants its inputs.
void Mapper::select_columns(const std::vector<std::string>& have,
                            const std::vector<std::string>& want) {
  std::vector<Value> cells;
  cells.reserve(natural_.rows() * want.size());
  for (std::size_t r = 0; r < natural_.rows(); ++r) {
    for (const std::string& name : want)
      cells.push_back(natural_.row(
          r)[static_cast<std::size_t>(std::find(have.begin(), have.end(), name) - have.begin())]);
  }
  natural_.cells = std::move(cells);
  natural_.width = want.size();
}

}  // namespace flow
