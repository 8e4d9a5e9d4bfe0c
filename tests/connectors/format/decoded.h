#pragma once
// Decodes one record at a time, for tests. The record's bytes are followed by unhelpful ones.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connectors/registry.h"
#include "core/row_json.h"

namespace flow::test {

inline FieldSource path(std::vector<std::string> steps) {
  FieldSource field;
  field.path = std::move(steps);
  for (const std::string& step : field.path) field.text += "." + step;
  return field;
}

class Decoded {
 public:
  Decoded(std::unique_ptr<Decoder> decoder, const std::vector<FieldSource>& fields)
      : decoder_(std::move(decoder)), cells(fields.size()) {
    bound = decoder_->bind(fields).ok();
  }

  // Whether the record decodes; `cells` and `failure` say the rest.
  bool read(std::string_view bytes) {
    record = Record();
    char* copy = batch.arena.allocate(bytes.size() + Arena::padding);
    std::copy(bytes.begin(), bytes.end(), copy);
    std::fill_n(copy + bytes.size(), Arena::padding, '}');
    record.value = {copy, bytes.size()};
    if (!header.empty()) {
      batch.headers.push_back({"csv.header", batch.arena.copy(header)});
      record.header_first = static_cast<std::uint32_t>(batch.headers.size() - 1);
      record.header_count = 1;
    }
    decoder_->begin(batch);
    return decoder_->decode(record, batch.arena, cells.data(), failure);
  }
  // The cells as words: kind and content.
  std::string row() const {
    std::string out;
    for (const Value& cell : cells) {
      if (!out.empty()) out += " | ";
      out += name_of(cell.kind());
      if (cell.is_null()) continue;
      out += ' ';
      append_text(out, cell);
    }
    return out;
  }

 private:
  std::unique_ptr<Decoder> decoder_;

 public:
  Batch batch;
  Record record;
  std::string header;
  std::vector<Value> cells;
  Failure failure;
  bool bound = false;
};

}  // namespace flow::test
