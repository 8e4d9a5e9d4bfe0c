#pragma once
// The loop: open_run -> [ read -> decode -> transform -> store_dead_letters -> apply_to_targets ->
// commit_position ]* -> close_run. Two threads: one reads and decodes the next batch while the
// other makes this one durable. Batches never overtake each other: one queue, one writer.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/coordinator.h"
#include "core/mapper.h"
#include "core/ports.h"
#include "core/state.h"

namespace flow {

// Asks a run to end. Threads: any; a signal handler may call drain(). Reasons do not mix: the first
// counts.
class StopSignal {
 public:
  void drain() noexcept { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
};

struct LoopLimits {
  std::optional<std::uint64_t> records;  // --limit
  std::optional<Millis> time;            // --max-time
};

// What a run is doing now, for the progress line and the heartbeat.
struct LoopProgress {
  std::vector<TargetCounts> counts;
  std::uint64_t read = 0;
  DeadCounts dead{};  // dead letters by class
  SourceProgress source;
  std::string retrying;  // the step that is being tried again, empty when all is well
  Spans positions;       // from: first read in this run; next: committed
};

struct LoopEnd {
  RunStatus status = RunStatus::done;
  std::optional<Failure> failure;
  LoopProgress progress;
};

struct LoopParts {
  const Pipeline* pipeline = nullptr;
  Source* source = nullptr;
  PositionStore* positions = nullptr;
  std::vector<Target*> targets;
  Mapper* mapper = nullptr;
  Log* log = nullptr;
  StopSignal* stop = nullptr;
  LoopLimits limits;
  std::vector<TargetMark> marks;
  DeadLetterStore* letters = nullptr;  // transform_on_error: dlq; null: a dry run
  StateStore* state = nullptr;         // attempts at records; null: they are not kept
  std::string run_id;
  // Called about five times a second by a thread of the loop; not while the loop is opening or
  // closing.
  std::function<void(const LoopProgress&)> on_tick;
};

// Runs until the source ends, a limit, a stop or a failure. The parts outlive the call.
// Errors: LoopEnd::failure, the first that counts. Durable: what progress.positions says is
// committed.
LoopEnd run_loop(const LoopParts& parts);

}  // namespace flow
