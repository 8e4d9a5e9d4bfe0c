#include "connectors/file_output.h"

#include <algorithm>

#include "core/row_json.h"

namespace flow::files {

Result<void> LineWriter::plan(const Columns& columns) {
  columns_ = columns;
  header_.clear();
  if (format_ != OutputFormat::csv) return {};
  if (columns.empty() && input_ != FormatKind::csv) {
    return Failure{.cls = FailureClass::setup,
                   .where = "target " + label_,
                   .what = "CSV needs columns, and the pipeline names none",
                   .hint = "add `columns:` to the pipeline, or `format: jsonl` to the target"};
  }
  std::vector<Value> names;
  for (const Column& c : columns) names.push_back(Value::text(c.name));
  append_csv_row(header_, names.size(), names.data());
  return {};
}

Result<void> LineWriter::write(const Batch& batch, const RowSet& rows, Start start,
                               std::string& out) {
  out.clear();
  const bool csv = format_ == OutputFormat::csv;
  if (csv && columns_.empty()) {
    if (auto r = take_header(batch, rows); !r) return r;
  }
  if (csv && start == Start::empty && !header_.empty()) out += header_ + '\n';
  for (const std::uint32_t row : rows.order) {
    if (columns_.empty()) {
      if (auto r = add_record(batch, rows.record[row], out); !r) return r;
      continue;
    }
    if (csv) {
      append_csv_row(out, rows.width, rows.row(row));
    } else {
      append_json_row(out, columns_, rows.row(row));
    }
    out.push_back('\n');
  }
  return {};
}

// One record, one line: line ends between JSON tokens become spaces; other text with line ends is
// no line.
Result<void> LineWriter::add_record(const Batch& batch, std::uint32_t record, std::string& out) {
  const std::string_view value = batch.records[record].value;
  const std::size_t at = out.size();
  if (value.data() == nullptr && input_ == FormatKind::json) out += "null";
  out += value;
  const bool several = input_ != FormatKind::csv && value.find('\n') != std::string_view::npos;
  if (several && input_ == FormatKind::json) {
    std::replace_if(
        out.begin() + static_cast<std::ptrdiff_t>(at), out.end(),
        [](char c) { return c == '\n' || c == '\r'; }, ' ');
  } else if (several) {
    return Failure{.cls = FailureClass::invalid,
                   .where = batch.where(record),
                   .what = "holds a line feed and so cannot be one line of " + label_,
                   .hint = "map it to a column with `columns:` to have it escaped",
                   .record = record};
  }
  out.push_back('\n');
  return {};
}

// CSV records that go through as they are keep their own header; all of them must have the same.
Result<void> LineWriter::take_header(const Batch& batch, const RowSet& rows) {
  for (const std::uint32_t row : rows.order) {
    const Record& r = batch.records[rows.record[row]];
    if (r.header_count == 0) continue;
    const std::string_view header = batch.headers[r.header_first].value;
    if (header_.empty()) header_ = header;
    if (header == header_) continue;
    return Failure{.cls = FailureClass::setup,
                   .where = batch.where(rows.record[row]),
                   .what = "its file has another header line than " + label_ + " begins with",
                   .hint = "map the fields with `columns:`, or write it to a target of its own"};
  }
  return {};
}

}  // namespace flow::files
