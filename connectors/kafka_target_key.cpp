// The message key of what the Kafka target writes.
#include <algorithm>

#include "connectors/kafka_target.h"
#include "core/row_json.h"

namespace flow::kafka {

// A key that is a field of the value comes with the plan: as a column, or alone beside records that
// pass through as they are.
Result<void> KafkaTarget::plan_key() {
  passthrough_ = plan_.empty();
  if (!spec_.message_key) return {};
  const FieldSource& key = *spec_.message_key;
  if (key.from != FieldSource::From::path) {
    key_from_ = key.from == FieldSource::From::key ? KeyFrom::record : KeyFrom::field;
    return {};
  }
  key_from_ = KeyFrom::cell;
  std::string name = key.text;
  if (plan_.size() == 1 && plan_.front().name == key.text) {
    passthrough_ = true;
  } else {
    const auto spec = std::find_if(
        pipeline_->columns.begin(), pipeline_->columns.end(), [&](const ColumnSpec& c) {
          return c.from.from == FieldSource::From::path && c.from.path == key.path;
        });
    const bool renamed = spec != pipeline_->columns.end() && pipeline_->transform.empty();
    if (renamed) name = spec->name;
    if (!renamed && key.path.size() == 1) name = key.path.front();
  }
  const auto at = std::find_if(plan_.begin(), plan_.end(),
                               [&](const Column& column) { return column.name == name; });
  if (at == plan_.end()) {
    return Failure{.cls = FailureClass::setup,
                   .where = "target " + spec_.label,
                   .what = "the message key " + key.text + " is not among the columns",
                   .hint = "add a column for it, or leave key out to keep the records' own keys"};
  }
  key_cell_ = static_cast<std::size_t>(at - plan_.begin());
  return {};
}

std::string_view KafkaTarget::key_of(const Task& task, std::uint32_t row) {
  const Record& record = task.batch.records[task.rows.record[row]];
  // A tombstone has no fields: it keeps the key it came with.
  const bool tombstone = task.rows.op[row] == RowOp::erase;
  if (key_from_ == KeyFrom::record || (key_from_ == KeyFrom::cell && tombstone)) return record.key;
  if (key_from_ == KeyFrom::field) return field_key(task.batch, record);
  const Value& cell = task.rows.row(row)[key_cell_];
  if (cell.is_null()) return {};
  if (cell.holds_text()) return cell.text();
  key_text_.clear();
  append_text(key_text_, cell);
  return key_text_;
}

std::string_view KafkaTarget::field_key(const Batch& batch, const Record& record) {
  const PartitionId& partition = batch.spans[record.span].partition;
  switch (spec_.message_key->from) {
    case FieldSource::From::path:
    case FieldSource::From::key: return record.key;
    case FieldSource::From::value: return record.value;
    case FieldSource::From::topic: return partition.topic;
    case FieldSource::From::partition: key_text_ = std::to_string(partition.partition); break;
    case FieldSource::From::offset: key_text_ = std::to_string(record.offset.value); break;
    case FieldSource::From::timestamp:
      if (record.timestamp_ms < 0) return {};
      key_text_ = std::to_string(record.timestamp_ms);
      break;
    case FieldSource::From::header:
      for (std::uint32_t h = record.header_count; h-- > 0;) {  // the last of a name counts
        const Header& header = batch.headers[record.header_first + h];
        if (header.name == spec_.message_key->name) return header.value;
      }
      return {};
    case FieldSource::From::constant: return spec_.message_key->name;
  }
  return key_text_;
}

}  // namespace flow::kafka
