#pragma once
// Dead letters: records set aside with their original bytes and the reason. One port for the store,
// whether a table of the state (SQLite, Postgres) or a topic.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "core/result.h"
#include "core/types.h"

namespace flow {

struct LetterHeader {
  std::string name;
  std::optional<std::string> value{};  // nullopt: null
};

// pending -> replaying -> replayed | pending | parked; discarded by hand only.
enum class LetterState : std::uint8_t { pending, replaying, replayed, parked, discarded };
std::string_view name_of(LetterState state);
std::optional<LetterState> letter_state_named(std::string_view name);
std::optional<FailureClass> failure_class_named(std::string_view name);

// One record set aside for one target. Owns its bytes. Unique per (pipeline, origin, offset,
// target). key, value: nullopt is null, "" is empty; bit for bit what the source gave. Times: ms
// since the Unix epoch, UTC. stage: decode | transform | cast | target. attempts: how often it was
// tried, the original emission is 1.
struct DeadLetter {
  std::int64_t id = 0;  // given by the store
  std::string pipeline;
  std::string version;  // Pipeline::digest
  std::string target;   // label
  PartitionId origin;
  Offset offset;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<LetterHeader> headers;
  std::int64_t timestamp_ms = -1;
  std::string stage;
  FailureClass cls = FailureClass::invalid;
  std::string code;
  std::string error;  // masked, no payload beyond a short token
  std::int64_t attempts = 1;
  std::int64_t first_failed_ms = 0;
  std::int64_t last_failed_ms = 0;
  std::string run_id;
  std::string operation_id;  // default topic/partition/offset
  LetterState state = LetterState::pending;
  std::int64_t replays = 0;  // attempts at replaying it that have ended
};

// Which letters. Empty members do not narrow. Times: last_failed_ms in [since_ms, until_ms).
struct LetterFilter {
  std::vector<std::int64_t> ids{};
  std::string topic{}, pipeline{}, target{}, stage{};
  std::optional<FailureClass> cls{};
  std::optional<std::string> key{};
  std::optional<std::int64_t> since_ms{}, until_ms{};
  std::optional<LetterState> state{};
  std::string snapshot{};  // only those of this snapshot
  std::int64_t after = 0;  // ids greater than this one, 0: all
  std::size_t limit = 0;   // 0: all
};

struct LetterGroup {
  std::string pipeline, topic, target, stage, code;
  FailureClass cls = FailureClass::invalid;
  LetterState state = LetterState::pending;
  std::uint64_t count = 0;
  std::int64_t first_ms = 0, last_ms = 0;
};

// What became of one letter in a replay; each makes an audit row (who, when, what, outcome).
struct LetterOutcome {
  std::int64_t id = 0;
  LetterState state = LetterState::replayed;
  std::string outcome{};  // replayed | failed: ... | parked: ... | discarded
  bool tried = true;      // false: given back without an attempt
};

struct LetterAudit {
  std::int64_t letter = 0;
  std::string replay, who, host, what, outcome;
  std::int64_t at_ms = 0;
};

// Keeps dead letters. Durable: every call returns when a crash cannot undo it. Threads: any, one
// call at a time inside. Errors: transient ones are to be tried again; any other stops the run: a
// letter that cannot be written is never a reason to move on.
class DeadLetterStore {
 public:
  virtual ~DeadLetterStore() = default;
  // Same (pipeline, origin, offset, target) again: attempts and the last failure are brought up to
  // date, never a second letter. A letter that was replayed or discarded and fails again is pending
  // again, its history kept.
  virtual Result<void> put(std::span<const DeadLetter> letters) = 0;

  virtual Result<std::vector<DeadLetter>> list(const LetterFilter& filter) = 0;  // by id
  virtual Result<std::vector<LetterGroup>> groups(const LetterFilter& filter) = 0;
  virtual Result<std::uint64_t> count(const LetterFilter& filter) = 0;
  virtual Result<std::vector<LetterAudit>> audit(std::int64_t letter) = 0;

  // Freezes the set that the filter matches now under a new id; later letters do not join it.
  virtual Result<std::string> snapshot(const LetterFilter& filter) = 0;
  // Takes pending letters of the filter for this replay, in id order: two replays never hold the
  // same letter. A claim whose replay is dead (its lock is free) can be taken over.
  virtual Result<std::vector<DeadLetter>> claim(const LetterFilter& filter,
                                                const std::string& replay) = 0;
  virtual Result<void> settle(std::span<const LetterOutcome> outcomes, const std::string& replay,
                              const std::string& who) = 0;
  // Removes letters for good (purge); gives how many.
  virtual Result<std::uint64_t> purge(const LetterFilter& filter) = 0;
};

// What the state knows of a letter that a topic keeps. origin: what it is one letter of. id: the
// place of its first copy in the topic (connectors/kafka_letters.h), and its id from then on.
// through: the place of its newest copy that this is about; a newer one says that it failed again.
struct LetterProgress {
  std::string origin;
  std::int64_t id = 0;
  std::int64_t through = 0;
  LetterState state = LetterState::pending;
  std::int64_t replays = 0;
};

// The states, claims, snapshots and story of the letters of one topic, which holds the letters
// themselves. As DeadLetterStore in all that is named alike.
class LetterProgressStore {
 public:
  virtual ~LetterProgressStore() = default;
  virtual Result<std::vector<LetterProgress>> load() = 0;  // by id; the others are pending
  // Takes those of `letters` that nobody settled or took meanwhile, or whose replay is dead; gives
  // their ids in the order given.
  virtual Result<std::vector<std::int64_t>> claim(std::span<const LetterProgress> letters,
                                                  const std::string& replay) = 0;
  // letters: what is known of those that the outcomes name, for the ones that were never claimed.
  virtual Result<void> settle(std::span<const LetterOutcome> outcomes,
                              std::span<const LetterProgress> letters, const std::string& replay,
                              const std::string& who) = 0;
  virtual Result<std::vector<LetterAudit>> audit(std::int64_t letter) = 0;
  virtual Result<std::string> snapshot(std::span<const std::int64_t> letters) = 0;
  virtual Result<std::vector<std::int64_t>> snapshot_letters(const std::string& snapshot) = 0;
};

// What a target is told beside the rows of a write. letters: to be written in the target's own
// transaction, when it keeps the letters' table in its own database; else empty. refused: called
// for each row that is refused, before anything is durable where the target can roll back; may be
// called again for the same row when the write begins anew. It gives the letter to be written in
// the same transaction, if any; with a Failure the write ends and leaves nothing behind.
struct Aside {
  std::span<const DeadLetter> letters{};
  std::function<Result<std::optional<DeadLetter>>(const RecordFailure&)> refused{};
};

}  // namespace flow
