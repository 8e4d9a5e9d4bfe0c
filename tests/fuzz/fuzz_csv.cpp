// The CSV decoder takes or refuses any bytes, as header and as record, and reads back what the CSV
// writer wrote.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/registry.h"
#include "core/cast_text.h"
#include "core/row_json.h"

namespace {

using namespace flow;

void check(bool holds) {
  if (!holds) std::abort();
}

FieldSource path(const std::string& name) {
  FieldSource field;
  field.path = {name};
  return field;
}

// Two columns, without a header line.
std::unique_ptr<Decoder> two_columns() {
  CsvSpec spec;
  spec.header = false;
  spec.columns = {"a", "b"};
  auto decoder = make_csv_decoder(spec);
  check(decoder->bind({path("a"), path("b")}).ok());
  return decoder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto plain = two_columns();
  static const auto headed = [] {
    auto decoder = make_csv_decoder({});
    check(decoder->bind({path("a"), path("b")}).ok());
    return decoder;
  }();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static Batch batch;
  batch.clear();
  Failure failure;
  std::vector<Value> cells(2);

  const std::size_t line = bytes.find('\n');
  if (line != std::string_view::npos) {
    batch.headers.push_back({"csv.header", batch.arena.copy(bytes.substr(0, line))});
    Record record;
    record.header_count = 1;
    record.value = batch.arena.copy(bytes.substr(line + 1));
    headed->begin(batch);
    if (!headed->decode(record, batch.arena, cells.data(), failure)) check(!failure.what.empty());
  }

  Record record;
  record.value = batch.arena.copy(bytes);
  if (!plain->decode(record, batch.arena, cells.data(), failure)) return 0;
  std::string row;
  append_csv_row(row, cells.size(), cells.data());
  check(valid_utf8(row));
  std::vector<Value> again(2);
  record.value = batch.arena.copy(row);
  check(plain->decode(record, batch.arena, again.data(), failure));
  for (std::size_t i = 0; i < 2; ++i) {
    check(again[i].kind() == cells[i].kind());
    if (cells[i].kind() == Kind::text) check(again[i].text() == cells[i].text());
  }
  return 0;
}
