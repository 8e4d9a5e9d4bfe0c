#pragma once
// Dead letters made from a batch: the record's own bytes beside why it could not go on.
#include <cstdint>
#include <string>

#include "core/batch.h"
#include "core/dead_letter.h"
#include "core/pipeline.h"

namespace flow {

// How often a record was tried for a target, and when it failed first (ms since the Unix epoch).
struct Tried {
  std::int64_t attempts = 1;
  std::int64_t first_failed_ms = 0;
};

// Copies what it needs: a letter outlives its batch. Threads: any.
DeadLetter make_letter(const Pipeline& pipeline, const std::string& run_id, const Batch& batch,
                       const RecordFailure& failure, const Tried& tried);

// The failure's words without the place of the record and the target's label, which the letter
// holds in fields of its own: "column amount: text "x" is not a number".
std::string letter_error(const Failure& failure, const std::string& place,
                         const std::string& label);

}  // namespace flow
