#pragma once
// The state: run history, file positions, locks. One port, in SQLite or Postgres (state/), one
// conformance suite.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ports.h"
#include "core/result.h"
#include "core/types.h"

namespace flow {

// What happened to the records of a run, for one target. Always: read = written + filtered +
// dropped + dead + pending (checked in code at every commit). Units: records.
struct Counts {
  std::uint64_t read = 0;
  std::uint64_t written = 0;   // durable in the target (superseded inside a batch included)
  std::uint64_t filtered = 0;  // left out by a transform, or a tombstone that is ignored
  std::uint64_t dropped = 0;   // transform_on_error: drop
  std::uint64_t dead = 0;      // dead letters
  std::uint64_t pending = 0;   // read, not yet finished
  std::uint64_t repeats = 0;   // rows that may be there twice after an unknown outcome
  std::uint64_t retries = 0;
};

struct TargetCounts {
  std::string target;
  Counts counts;
};

enum class RunStatus : std::uint8_t { running, done, drained, failed, interrupted };
std::string_view name_of(RunStatus status);
std::optional<RunStatus> run_status_named(std::string_view name);

// A new id of a run that starts at this time: yyyymmddThhmmssZ-xxxxxx, the last part random.
std::string make_run_id(std::int64_t started_ms);
// The lock that a run holds from open_run() until it ends.
std::string run_lock_name(std::string_view run_id);
// The lock that a replay holds as long as it lives: its claims die with it.
std::string replay_lock_name(std::string_view replay_id);
// The number of a state's lock where locks are numbers (advisory locks of Postgres).
std::int64_t lock_number(std::string_view state_id, std::string_view lock_name);
// 64-bit FNV-1a: the same on every machine and in every version.
std::uint64_t stable_hash(std::string_view text);

// One life of `flow run` on one pipeline. Times: milliseconds since the Unix epoch, UTC.
struct RunRow {
  std::string id;  // sortable by start: yyyymmddThhmmssZ-xxxxxx
  std::string pipeline;
  std::string version;   // Pipeline::digest
  std::string contract;  // resolved, one line
  std::string host;
  std::int64_t pid = 0;
  std::int64_t started_ms = 0;
  std::int64_t heartbeat_ms = 0;
  std::optional<std::int64_t> ended_ms;
  RunStatus status = RunStatus::running;
  std::uint64_t read = 0;  // of the whole run (the targets' counts each add up to it)
  std::vector<TargetCounts> targets;
  Spans positions;    // from: first read in this run; next: committed
  std::string error;  // Failure::text(), masked
};

// How often a record was tried for a target without success; made 0: none to remember. Times: ms
// since the Unix epoch.
struct Attempts {
  PartitionId origin;
  Offset offset;
  std::string target;  // label
  std::int64_t made = 0;
  std::int64_t first_failed_ms = 0;
};

// The first records that a run took in hand and has not finished yet. deaths: runs before it that
// died with records of the same position in hand; runs: their ids, the last ones.
struct InFlight {
  Span span;
  std::uint64_t records = 0;  // of the whole batch
  std::int64_t deaths = 0;
  std::string runs;
};

// A lock that dies with its holder. Release: destruction.
class Lock {
 public:
  virtual ~Lock() = default;
};

// Durable: each call returns when a crash cannot undo it. Threads: any (one call at a time inside).
// Errors: a damaged, foreign or newer state is a Failure with exit 74 or 78, never recreated
// silently; a busy or unreachable one is transient.
class StateStore {
 public:
  virtual ~StateStore() = default;
  virtual std::string id() const = 0;        // random, made when the state was created
  virtual std::string location() const = 0;  // masked, for people

  virtual Result<void> open_run(const RunRow& run) = 0;
  virtual Result<void> heartbeat(const RunRow& run) = 0;  // counts, positions, heartbeat_ms
  virtual Result<void> close_run(const RunRow& run) = 0;
  // Newest first; pipeline empty: all. A running row whose run lock is free is given as
  // interrupted.
  virtual Result<std::vector<RunRow>> runs(const std::string& pipeline, std::size_t limit) = 0;

  virtual Result<Spans> positions(const std::string& pipeline) = 0;
  virtual Result<std::vector<TargetMark>> marks(const std::string& pipeline) = 0;
  virtual Result<void> commit_positions(const std::string& pipeline, const std::string& run_id,
                                        const Spans& spans,
                                        const std::vector<TargetMark>& marks) = 0;

  // Attempts at records that may yet be poison: they outlive the run. keep: made 0 forgets.
  virtual Result<std::vector<Attempts>> attempts(const std::string& pipeline) = 0;
  virtual Result<void> keep_attempts(const std::string& pipeline,
                                     const std::vector<Attempts>& attempts) = 0;
  // What was in hand when a run died (crash_loop_limit). keep: replaces all of the pipeline's rows
  // for these partitions; records 0 forgets.
  virtual Result<std::vector<InFlight>> in_flight(const std::string& pipeline) = 0;
  virtual Result<void> keep_in_flight(const std::string& pipeline,
                                      const std::vector<InFlight>& in_flight) = 0;

  // Takes the named lock, waiting up to `wait`; nullptr: somebody else holds it.
  virtual Result<std::unique_ptr<Lock>> lock(const std::string& name, Millis wait) = 0;

  // The table of dead letters in this state, and the progress of those that a topic keeps. The
  // state outlives both.
  virtual Result<std::unique_ptr<DeadLetterStore>> dead_letters();
  virtual Result<std::unique_ptr<LetterProgressStore>> letter_progress(const std::string& topic);
};

// read_only: for inspection and dry runs; a state that does not exist reads as empty and is not
// created.
enum class StateAccess : std::uint8_t { read_write, read_only };

}  // namespace flow
