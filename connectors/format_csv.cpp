#include <algorithm>
#include <string>
#include <utility>

#include "connectors/format_csv_record.h"
#include "connectors/registry.h"
#include "core/cast_text.h"

namespace flow {

namespace {

constexpr std::string_view header_name = "csv.header";
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

Failure invalid(std::string what, std::string hint) {
  Failure failure;
  failure.cls = FailureClass::invalid;
  failure.code = "decode.csv";
  failure.what = std::move(what);
  failure.hint = std::move(hint);
  return failure;
}

class CsvDecoder final : public Decoder {
 public:
  explicit CsvDecoder(const CsvSpec& spec) : spec_(spec), names_(spec.columns) {}

  Result<void> bind(const std::vector<FieldSource>& fields) override {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].from != FieldSource::From::path) continue;
      if (fields[i].path.size() != 1) {
        Failure failure = invalid("CSV has no nested field " + fields[i].text,
                                  "name a column of the file, like $.name");
        failure.cls = FailureClass::setup;
        failure.where = "format: csv";
        return failure;
      }
      wanted_.push_back({fields[i].path.front(), i});
    }
    place();
    return {};
  }

  void begin(const Batch& batch) override {
    batch_ = &batch;
    seen_ = {};
  }

  bool decode(const Record& record, Arena& arena, Value* cells, Failure& failure) override {
    for (const Wanted& wanted : wanted_) cells[wanted.cell] = Value();
    if (spec_.columns.empty() && !use_header(record, failure)) return false;
    const std::string_view text = record.value;
    if (!valid_utf8(text)) {
      failure =
          invalid("the record is not valid UTF-8", "look at the record, and at what wrote it");
      return false;
    }
    if (const char* fault = csv::split(text, spec_.delimiter, arena, fields_)) {
      failure = invalid(std::string("the record is not CSV (RFC 4180): ") + fault,
                        "look at the record, and at what wrote it");
      return false;
    }
    if (fields_.size() != names_.size()) {
      failure = invalid("the record has " + std::to_string(fields_.size()) + " fields, and " +
                            std::to_string(names_.size()) + " columns are named",
                        "check the delimiter and the quotes of this line");
      return false;
    }
    for (const auto& [column, cell] : places_) {
      const std::string_view field = fields_[column];
      cells[cell] = field.data() == nullptr ? Value::null() : Value::text(field);
    }
    return true;
  }

 private:
  struct Wanted {
    std::string name;
    std::size_t cell;
  };

  // The header line that the source attached to this record; most records have that of the one
  // before.
  bool use_header(const Record& record, Failure& failure) {
    std::string_view line;
    for (std::uint32_t h = 0; batch_ != nullptr && h < record.header_count; ++h) {
      const Header& header = batch_->headers[record.header_first + h];
      if (header.name == header_name) line = header.value;
    }
    if (line.data() == nullptr) {
      failure = invalid("no header line is known for this record",
                        "name the columns of the file by csv: {columns: [...]}");
      return false;
    }
    if (line.data() == seen_.data() && line.size() == seen_.size()) return true;
    if (line != header_ || names_.empty()) {
      header_ = line;
      header_problem_ = read_header(line);
      place();
    }
    if (header_problem_.empty()) {
      seen_ = line;
      return true;
    }
    failure = invalid("the header line " + header_problem_,
                      "repair it, or name the columns by csv: {header: false, columns: [...]}");
    return false;
  }

  std::string read_header(std::string_view line) {
    names_.clear();
    if (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    if (!valid_utf8(line)) return "is not valid UTF-8";
    header_arena_.clear();
    csv::Fields names;
    if (const char* fault = csv::split(line, spec_.delimiter, header_arena_, names)) {
      return std::string("is not CSV: ") + fault;
    }
    names_.assign(names.begin(), names.end());
    std::vector<std::string> sorted = names_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    return twice == sorted.end() ? "" : "names " + shown(*twice) + " twice";
  }

  // Where the wanted columns stand in a record.
  void place() {
    places_.clear();
    for (const Wanted& wanted : wanted_) {
      const auto found = std::find(names_.begin(), names_.end(), wanted.name);
      if (found == names_.end()) continue;
      places_.emplace_back(static_cast<std::size_t>(found - names_.begin()), wanted.cell);
    }
  }

  CsvSpec spec_;
  std::vector<Wanted> wanted_;
  std::vector<std::string> names_;                           // of the record's fields, in order
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // field, cell
  csv::Fields fields_;
  const Batch* batch_ = nullptr;
  std::string_view seen_;  // the header last used, by identity: valid for one batch
  std::string header_;
  Arena header_arena_;
  std::string header_problem_;
};

}  // namespace

std::unique_ptr<Decoder> make_csv_decoder(const CsvSpec& spec) {
  return std::make_unique<CsvDecoder>(spec);
}

}  // namespace flow
