#pragma once
// The commit coordinator: the one place that says in which order things become durable. A reader
// finds the guarantees of a run here (DESIGN section 3).
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "core/account.h"
#include "core/breaker.h"
#include "core/failure_point.h"
#include "core/letters.h"
#include "core/mapper.h"
#include "core/ports.h"
#include "core/retry.h"

namespace flow {

// What made a batch stop short of its commit, other than a failure.
enum class Finish : std::uint8_t { committed, given_up };

// Makes one batch durable: dead letters, then every target, then the position. Shape: one a loop;
// owns nothing but the marks. Threads: finish() by the writing thread; the others by any. Durable:
// finish() returns committed when the position is. at_least_once: a crash before that repeats the
// batch, never skips it. Errors: transient ones are retried inside for as long as the retry budget
// allows.
class CommitCoordinator {
 public:
  struct Parts {
    const Pipeline* pipeline;
    std::vector<Target*> targets;
    PositionStore* positions;
    const Mapper* mapper;
    Account* account;
    Log* log;
    // With transform_on_error: dlq, but for a dry run: null, and failed records are only reported.
    DeadLetterStore* letters = nullptr;
    StateStore* state = nullptr;
    std::string run_id;
  };
  explicit CommitCoordinator(Parts parts);

  Result<Finish> finish(Batch& batch);

  // Ends a wait between attempts, and, when `now`, the write under way too; the batch is given up.
  void give_up(bool now);
  // These partitions go away: what is being tried again goes on without them; lost: they are not
  // committed either.
  void release(const std::vector<PartitionId>& partitions, Release how, bool now);
  void released_done();

  std::vector<TargetMark> marks() const;
  void set_marks(std::vector<TargetMark> marks);
  bool retrying() const;
  std::string retrying_target() const;

 private:
  // What is to become of one refused row: another attempt, or a dead letter.
  struct Verdict {
    bool again = false;
    Tried tried;
    std::optional<DeadLetter> letter;
  };
  // One attempt at a target: the verdicts by record.
  using Verdicts = std::map<std::uint32_t, Verdict>;
  using RecordKey = std::tuple<PartitionId, Offset, std::string>;  // of one target

  bool sets_aside() const { return parts_.letters != nullptr; }
  Result<Finish> store_dead_letters(Batch& batch);
  Result<Finish> apply_to_targets(Batch& batch);
  Result<Finish> apply_to_target(Batch& batch, std::size_t t);
  Result<std::vector<RecordFailure>> write(const Batch& batch, std::size_t t,
                                           std::span<const DeadLetter> letters, Verdicts& verdicts);
  void note_doubt(const Batch& batch, std::size_t t);
  void note_mark(const Target& target);

  Result<Verdict> judge(const Batch& batch, const RecordFailure& failure);
  Result<Finish> settle_refused(Batch& batch, std::size_t t, std::vector<RecordFailure> refused,
                                Verdicts& verdicts);
  void end_before(Batch& batch, const Failure& failure);
  RecordKey key_of(const Batch& batch, const RecordFailure& failure) const;
  Result<void> load_attempts();
  Result<Finish> load_attempts_once();
  Result<Tried> tried_before(const RecordKey& key);
  Result<Finish> keep_attempts(const std::vector<Attempts>& attempts);
  void forget_attempts(const Batch& batch);
  Result<Finish> wait_between_attempts(std::int64_t made);

  std::vector<DeadLetter> letters_for(const Batch& batch, std::size_t t) const;
  Result<Finish> put_letters(const std::vector<DeadLetter>& letters, Point applied);
  void report(std::span<const RecordFailure> failures) const;

  Result<Finish> commit_position(const Batch& batch);
  // Until it is ok, fails for good, or the budget or a drain ends it.
  Result<Finish> retried(const std::string& name, const bool& ends,
                         const std::function<Result<void>()>& step);
  enum class Wake : std::uint8_t { again, given_up };
  Wake wait_to_retry(Millis wait, std::string step, const bool& ends);  // ends: guarded by mutex_
  void drop_released(Batch& batch);
  void cancel_targets();
  Spans still_owned(const Spans& spans);

  Parts parts_;
  Breaker breaker_;
  // Attempts that failed, by record and target; fresh: read again for the batch in hand, since
  // another replica may have counted too.
  std::optional<std::map<RecordKey, Tried>> attempts_;
  bool attempts_fresh_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool give_up_ = false;             // a drain: no further attempt at a target that fails
  bool cancelled_ = false;           // the drain timed out: stop whatever is under way
  std::set<PartitionId> releasing_;  // being revoked or lost
  std::uint64_t releases_ = 0;       // counts release() calls
  std::uint64_t releases_seen_ = 0;  // of these, taken out of the batch in hand
  std::set<PartitionId> lost_;       // never to be committed
  std::string retrying_;
  std::vector<TargetMark> marks_;
};

}  // namespace flow
