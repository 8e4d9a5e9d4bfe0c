#pragma once
// Rows as JSON text (Kafka, file and stdout targets): number tokens as they stood, exact integers,
// JSON as is.
#include <string>
#include <string_view>

#include "core/column.h"
#include "core/value.h"

namespace flow {

void append_json_string(std::string& out, std::string_view text);  // quoted and escaped
void append_json(std::string& out, const Value& value);            // missing: "null"
// One object; missing cells are left out. No line feed at the end.
void append_json_row(std::string& out, const Columns& columns, const Value* cells);
// CSV (RFC 4180): null and missing empty and unquoted, empty text "".
void append_csv_row(std::string& out, std::size_t width, const Value* cells);
// A cell as text: what a key expression or a CSV field holds. Timestamps as RFC 3339, UTC,
// microseconds as needed.
void append_text(std::string& out, const Value& value);

}  // namespace flow
