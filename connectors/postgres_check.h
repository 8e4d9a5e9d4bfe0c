#pragma once
// What must hold of a table before the first record is read.
#include <string>
#include <vector>

#include "connectors/postgres_catalog.h"
#include "core/pipeline.h"

namespace flow {

// The columns that a pipeline writes: those it names that the table has, else all that can be
// written.
std::vector<const PgColumn*> written_columns(const PgTable& table,
                                             const std::vector<ColumnSpec>& given);

// Kind of the table, key constraint, rights. Errors: setup, or unauthorized with the GRANT that is
// missing.
Result<void> check_table(const PgTable& table, const TargetSpec& spec,
                         const std::vector<ColumnSpec>& given);

}  // namespace flow
