// The JSON decoder says the same about a record whatever columns it is asked for, and what it gives
// out is JSON that it reads again.
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

FieldSource path(std::vector<std::string> steps) {
  FieldSource field;
  field.path = std::move(steps);
  return field;
}

struct Asked {
  explicit Asked(std::vector<FieldSource> asked) : fields(std::move(asked)), cells(fields.size()) {
    if (!decoder->bind(fields).ok()) std::abort();
  }
  bool read(std::string_view bytes) {
    arena.clear();
    Record record;
    record.value = arena.copy(bytes);
    return decoder->decode(record, arena, cells.data(), failure);
  }
  std::unique_ptr<Decoder> decoder = make_json_decoder();
  std::vector<FieldSource> fields;
  std::vector<Value> cells;
  Arena arena;
  Failure failure;
};

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Asked one({path({"absent"})});
  static Asked some({path({"a"}), path({"b"}), path({"c"}), path({"v"})});
  static Asked same({path({"a"}), path({"b"}), path({"c"}), path({"v"})});
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool read = one.read(bytes);
  check(some.read(bytes) == read);
  if (!read) {
    check(!one.failure.what.empty());
    return 0;
  }
  const Columns columns = [] {
    Columns c(4);
    c[0].name = "a", c[1].name = "b", c[2].name = "c", c[3].name = "v";
    return c;
  }();
  std::string row;
  append_json_row(row, columns, some.cells.data());
  check(valid_utf8(row));
  check(same.read(row));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    check(same.cells[i].kind() == some.cells[i].kind());
    if (some.cells[i].kind() != Kind::text && some.cells[i].kind() != Kind::decimal) continue;
    check(same.cells[i].text() == some.cells[i].text());
  }
  return 0;
}
