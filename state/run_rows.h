#pragma once
// Rows of the run history to and from the tables runs, run_targets and run_positions.
#include <string>
#include <vector>

#include "state/session.h"

namespace flow {

// Inserts many rows with as few statements as the parameter limits allow. `head`: "INSERT INTO t
// (a, b)", `tail`: what follows VALUES (...), for instance ON CONFLICT. Every row has the same
// width.
Result<void> insert_rows(Statements& statements, const std::string& head, const std::string& tail,
                         const std::vector<Cells>& rows);

// The run as it is now: its row, its targets and its positions replace what was there.
Result<void> save_run(Statements& statements, const RunRow& run);
// Newest first, at most `limit`; pipeline empty: all.
Result<std::vector<RunRow>> load_runs(Statements& statements, const std::string& pipeline,
                                      std::size_t limit);

// Numbers as cells.
Cell cell(std::int64_t number);
Cell cell(std::uint64_t number);
std::int64_t number_in(const Cell& cell);

}  // namespace flow
