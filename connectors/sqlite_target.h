#pragma once
// The SQLite target: rows into a table of a database file, one transaction a batch.
#include <memory>

#include "connectors/sqlite_checkpoint.h"
#include "core/registry.h"

namespace flow {

// As make_sqlite_target() of the registry, with other limits of the write-ahead log.
Result<std::unique_ptr<Target>> make_sqlite_target(const Context& context, const TargetSpec& spec,
                                                   WalLimits limits);

}  // namespace flow
