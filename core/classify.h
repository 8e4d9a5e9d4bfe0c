#pragma once
// The one table of failure classes by the vendors' own codes: SQLSTATE, SQLite result codes,
// librdkafka error names. Never by a message's text. Printed in flow-errors(7).
#include <span>
#include <string_view>

#include "core/result.h"

namespace flow {

enum class FailureSystem : std::uint8_t { postgres, sqlite, kafka };
std::string_view name_of(FailureSystem system);

// One code. Shape: `code` is an SQLSTATE of five characters or a class of them of two, a SQLite
// result code's name, or what rd_kafka_err2name() gives; `number` is the SQLite result code, else
// 0.
struct FailureRow {
  FailureSystem system;
  std::string_view code;
  int number;
  FailureClass cls;
  std::string_view sentence;
};
std::span<const FailureRow> failure_table();

// The row that decides for a code; null when the table has none.
//   postgres: the exact SQLSTATE, else its class (first two characters).
//   sqlite: the extended code, else its primary code (low byte).
//   kafka: the exact name.
const FailureRow* find_sqlstate(std::string_view sqlstate);
const FailureRow* find_sqlite(int extended_code);
const FailureRow* find_kafka(std::string_view name);

// Defaults: an empty SQLSTATE means that no server answered, so `transient`. A code that the table
// does not know is `setup`: the run stops, its position stays, and nothing is set aside on a guess.
FailureClass classify_sqlstate(std::string_view sqlstate);
FailureClass classify_sqlite(int extended_code);
FailureClass classify_kafka(std::string_view name);

}  // namespace flow
