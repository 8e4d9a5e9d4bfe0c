#pragma once
// Dead letters as rows: which ones a filter means, and letters from what was selected.
#include <string>
#include <string_view>
#include <vector>

#include "state/session.h"

namespace flow {

// Whether a replay holds the letter `id` of a store (a literal).
std::string claimed(std::string_view id, std::string_view store);
inline constexpr std::string_view own_store = "''";

// The part of a statement that narrows `flow.dead_letters l`, with its parameters from $1 on.
struct LetterWhere {
  std::string text;  // starts with " WHERE "
  Cells parameters;
  std::string next_parameter() const { return "$" + std::to_string(parameters.size() + 1); }
};
LetterWhere where_of(const LetterFilter& filter, SqlDialect dialect);
// " LIMIT n", empty without a limit.
std::string limit_of(const LetterFilter& filter);

// A list of ids as one parameter: "id IN (...)" text for parameter `mark`, and its value.
std::string ids_in(std::string_view column, std::string_view mark, SqlDialect dialect);
Cell ids_cell(const std::vector<std::int64_t>& ids, SqlDialect dialect);
std::vector<std::int64_t> ids_of(const Table& table);
// A FROM item that gives a row for each id of parameter `mark`, column `letter`.
std::string ids_from(std::string_view mark, SqlDialect dialect);

// "SELECT ... FROM ... " of whole letters; letters_of() reads what it gives.
// claimed: all that are selected are held by a replay.
enum class LettersAre : std::uint8_t { any, claimed };
std::string select_letters(SqlDialect dialect, LettersAre which);
std::vector<DeadLetter> letters_of(const Table& table, SqlDialect dialect);

// claimed: only letters that a replay holds.
enum class GroupsOf : std::uint8_t { all, claimed };
std::string select_groups(const LetterWhere& where, GroupsOf which);
std::vector<LetterGroup> groups_of(const Table& table);

}  // namespace flow
