#pragma once
// The tables of the state and their numbered migrations, for SQLite and Postgres alike.
#include <string>

#include "state/session.h"

namespace flow {

// The version that this program writes.
int schema_version();
// The first version with tables of dead letters.
inline constexpr int dead_letters_version = 2;

struct Meta {
  std::string id;
  int version = 0;
};

// Errors: class setup when the state is newer than this program; `where` names it.
Result<Meta> read_meta(Statements& statements, const std::string& where);
// Brings an empty (version 0) or older state to schema_version(), inside the caller's transaction.
Result<void> migrate(Statements& statements, int from_version);

}  // namespace flow
