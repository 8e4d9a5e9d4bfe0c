#pragma once
// Dead letters in a SQLite database that holds both a target's table and the state.
#include <span>
#include <sqlite3.h>
#include <string>

#include "core/dead_letter.h"
#include "core/result.h"

namespace flow {

// True when both name the same file, by whatever path. False when either is not there.
bool same_sqlite_database(const std::string& target_url, const std::string& state_url);

// Writes the letters as the state's own store would, in the transaction under way.
Result<void> insert_letters(sqlite3* db, std::span<const DeadLetter> letters,
                            const std::string& where);

}  // namespace flow
