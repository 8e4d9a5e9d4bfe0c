#pragma once
// What a target's columns are: names, types and what they accept. Decoding casts straight to these,
// so that a record that a table cannot hold is found before it reaches the table.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// The type a cell is cast to. `any`: as the record says it (Kafka and file targets; SQLite column
// without type).
enum class Type : std::uint8_t {
  any,
  boolean,
  int16,
  int32,
  int64,
  float32,
  float64,
  decimal,
  text,
  json,
  jsonb,
  bytes,
  date,
  timestamp,
  timestamptz,
  uuid,
};
std::string_view name_of(Type type);  // "int64", "decimal", ...
std::optional<Type> type_named(
    std::string_view name);  // also common SQL spellings ("bigint", "numeric")

// Limits of a type. decimal: precision (digits in all) and scale, 0 precision = no limit. text:
// characters at most, 0 = no limit. `refuses_nul`: the store cannot hold U+0000 in text or JSON
// (Postgres).
struct Limits {
  int precision = 0;
  int scale = 0;
  std::uint32_t length = 0;
  bool refuses_nul = false;
};

struct Column {
  std::string name;
  Type type = Type::any;
  Limits limits;
  bool nullable = true;
  bool has_default = false;  // the table fills it when the pipeline does not name it
  bool generated = false;    // the table computes it: never written
  std::string type_text;     // the store's own spelling, for messages: "numeric(10,2)"
};

using Columns = std::vector<Column>;

}  // namespace flow
