#pragma once
// The one table of failure classes by code: SQLSTATE, SQLite result codes, librdkafka error names,
// HTTP statuses and our own. Never by a message's text. Printed in flow-errors(7) and by `flow
// explain --errors`.
#include <span>
#include <string_view>

#include "core/result.h"

namespace flow {

enum class FailureSystem : std::uint8_t { postgres, sqlite, kafka, http, flow };
std::string_view name_of(FailureSystem system);

// One code. Shape: `code` is an SQLSTATE of five characters or a class of them of two, a SQLite
// result code's name, what rd_kafka_err2name() gives, an HTTP status or a hundred of them ("5xx"),
// or a word of ours; `number` is the SQLite result code, else
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
//   kafka, flow: the exact name.
//   http: the exact status, else its hundred.
const FailureRow* find_sqlstate(std::string_view sqlstate);
const FailureRow* find_sqlite(int extended_code);
const FailureRow* find_kafka(std::string_view name);
const FailureRow* find_http(int status);
const FailureRow* find_own(std::string_view code);

// Defaults: an empty SQLSTATE means that no server answered, so `transient`. A code that the table
// does not know is `setup`: the run stops, its position stays, and nothing is set aside on a guess.
FailureClass classify_sqlstate(std::string_view sqlstate);
FailureClass classify_sqlite(int extended_code);
FailureClass classify_kafka(std::string_view name);
FailureClass classify_http(int status);

}  // namespace flow
