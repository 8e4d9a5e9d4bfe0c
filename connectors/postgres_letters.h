#pragma once
// Dead letters in a Postgres database that holds both a target's table and the state.
#include <span>

#include "connectors/postgres_client.h"
#include "core/dead_letter.h"
#include "core/state.h"

namespace flow {

// True when this connection's database holds the state and its role may write letters there. Asked
// of both ends: the state takes a lock of a name that nobody else knows, and this database must
// show it; a copy of the database or another name for it cannot deceive. Errors: of either side.
Result<bool> same_postgres_database(PostgresClient& client, StateStore& state);

// Writes the letters as the state's own store would, in the transaction under way.
Result<void> insert_letters(PostgresClient& client, std::span<const DeadLetter> letters);

}  // namespace flow
