#pragma once
// What becomes of a value on its way into a column: the table "values" of flow-pipeline(5), which
// is printed from here, and whose rows are tests on every target.
#include <span>
#include <string_view>

namespace flow {

// input: the field as JSON has it; empty: the record has no such field.
// type: as a pipeline's `columns:` would spell it, with limits: "numeric(10,2)".
// setting: "unit: ms" or "zone: Europe/Paris"; empty: none.
// result: the cell as JSON text (`null`, or `missing`); "refused" for what makes the record a bad
// one. why: one sentence for the manual; empty: the same as the row above.
struct ValueRule {
  std::string_view input;
  std::string_view type;
  std::string_view setting;
  std::string_view result;
  std::string_view why;
};

constexpr std::string_view value_refused = "refused";
constexpr std::string_view value_missing = "missing";

std::span<const ValueRule> value_rules();

}  // namespace flow
