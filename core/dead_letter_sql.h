#pragma once
// How dead letters are written by SQL: one text and one order of values, for the state and for a
// target whose own database holds the state. No vendor header.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dead_letter.h"

namespace flow {

enum class SqlDialect : std::uint8_t { sqlite, postgres };

// A value to bind. Shape: text and bytes are views; absent bytes are null.
struct SqlValue {
  enum class Kind : std::uint8_t { null, number, text, bytes };
  Kind kind = Kind::null;
  std::int64_t number = 0;
  std::string_view text;
};

inline constexpr std::size_t letter_columns = 14;  // of flow.dead_letters
inline constexpr std::size_t record_columns = 5;   // of flow.dead_letter_records

// The values of one letter in the statements' order. Owner: borrows from the letter; reused from
// one letter to the next.
class LetterValues {
 public:
  void fill(const DeadLetter& letter);
  const std::array<SqlValue, letter_columns>& letter() const { return letter_; }
  const std::array<SqlValue, record_columns>& record() const { return record_; }

 private:
  std::array<SqlValue, letter_columns> letter_;
  std::array<SqlValue, record_columns> record_;
  std::string version_, code_, error_, operation_id_, headers_;
};

// SQLite: for each letter, `letter` (values LetterValues::letter(), gives the id), then `record`
// (the id, then LetterValues::record()). `schema`: how the connection calls the database.
struct SqliteLetterStatements {
  std::string letter;
  std::string record;
};
SqliteLetterStatements sqlite_letter_statements(std::string_view schema);

// Postgres: one statement for many letters, parameters are arrays, all in binary format.
std::string postgres_letter_statement();
struct PostgresLetterArrays {
  std::vector<std::uint32_t> types;  // array OIDs
  std::vector<std::string> values;
};
PostgresLetterArrays postgres_letter_arrays(std::span<const DeadLetter* const> letters);

// Each (pipeline, origin, target) once, its last letter, in order of first appearance: one
// statement may not meet a letter twice.
std::vector<const DeadLetter*> distinct_letters(std::span<const DeadLetter> letters);
// The next of them that make one statement: bounded in number and bytes, at least one.
std::span<const DeadLetter* const> next_letters(std::span<const DeadLetter* const> left);

// Headers as one value, bit for bit: for each, the name and the value, each as its length (4 bytes,
// the highest first; ffffffff: null) and its bytes.
std::string encode_headers(const std::vector<LetterHeader>& headers);
std::vector<LetterHeader> decode_headers(std::string_view bytes);

// Text that both systems can hold: an error may quote bytes of a record, cut anywhere. NUL and what
// is not UTF-8 become '?'.
std::string storable_text(std::string_view text);

}  // namespace flow
