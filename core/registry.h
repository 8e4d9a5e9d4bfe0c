#pragma once
// Connectors by name. Each connector file offers factories; connectors/registry.cpp lists them, a
// line each.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ports.h"
#include "core/state.h"

namespace flow {

// What a connector may use of the program. Owner: the composition root; outlives the connectors.
struct Context {
  const Pipeline* pipeline = nullptr;
  Log* log = nullptr;
  StateStore* state = nullptr;  // may be null (dry run without state)
  std::string run_id;
  bool dry_run = false;     // reads; never joins a group, commits or writes
  bool until_end = false;   // stop at what was there at the start
  bool follow = false;      // files: go on when more is written
  std::string instance_id;  // Kafka static membership, from the state's slot locks; may be empty
};

// Whether this run writes dead letters to the table of its state.
inline bool writes_letter_table(const Context& context) {
  return context.pipeline->on_error == OnError::dlq && !context.pipeline->dlq.in_topic() &&
         context.state != nullptr && !context.dry_run;
}

// A source and its position authority (for Kafka the same object).
struct SourceParts {
  std::unique_ptr<Source> source;
  std::unique_ptr<PositionStore> own_positions;  // null: `positions` points into `source`
  PositionStore* positions = nullptr;
};

// One line of `flow offsets inspect`. Unknown figures are nullopt.
struct OffsetRow {
  PartitionId partition;
  std::optional<std::int64_t> log_start;
  std::optional<std::int64_t> committed;  // the position authority's
  std::optional<std::int64_t> high;       // high watermark, or file size
  std::optional<std::int64_t> last_stable;
  std::optional<std::int64_t> state;           // what the state says, where it says anything
  std::optional<std::int64_t> lag;             // records that exist to be read (files: bytes)
  std::optional<std::int64_t> lag_ms;          // now minus the timestamp of the first unread record
  std::optional<std::int64_t> expired_unread;  // records removed before they were read
  std::string identity;                        // files
  std::string verdict;  // caught_up | behind | blocked | gap | no_position | unknown
  std::string reason;
};

}  // namespace flow
