#pragma once
// A record that makes the program die, again and again, is found and set aside (crash_loop_limit).
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/pipeline.h"
#include "core/state.h"

namespace flow {

// What the run before had in hand when it died is in the state: a run marks its first batch before
// anything is done with it, and forgets the mark once it is committed. After crash_loop_limit runs
// that died over the same position, batches are read one at a time and half as large as the one
// that the last run died of, each marked, until a run dies of a single record: the next sets it
// aside. Shape: one a run; nothing to do when the limit is 0. Units: records. Durable: take() and
// done() return when the state has it. Threads: begin(), take() by the reading thread, done() by
// the writing one, which are never at it at once while one_at_a_time(). Errors: the state's.
class CrashLoop {
 public:
  CrashLoop(const Pipeline& pipeline, StateStore* state, std::string run_id);

  Result<void> begin();  // before the first read
  // Each batch is to be committed before the next is read.
  bool one_at_a_time() const { return narrow_; }
  std::size_t records_max(std::size_t limit) const;
  // The batch as it was read. A failure: its one record is what the runs before died of.
  Result<std::optional<Failure>> take(const Batch& batch);
  Result<void> done(const Batch& batch);
  std::int64_t deaths() const { return deaths_; }

 private:
  const InFlight* suspect(const Span& span) const;
  void pass(const Span& span);
  Failure killer(const InFlight& mark) const;

  const Pipeline& pipeline_;
  StateStore* state_;  // null: off
  std::string run_id_;
  std::map<PartitionId, InFlight> suspects_;  // of the last run, with its death counted
  bool narrow_ = false;
  bool marking_ = false;  // the next batch is marked
  std::int64_t deaths_ = 0;
  std::uint64_t records_ = 0;  // of the batch that the last run died of
};

}  // namespace flow
