#pragma once
// The commit coordinator: the one place that says in which order things become durable. A reader
// finds the guarantees of a run here (DESIGN section 3).
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/account.h"
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
  Result<void> store_dead_letters(const Batch& batch);
  Result<Finish> apply_to_targets(Batch& batch);
  Result<Finish> apply_to_target(Batch& batch, std::size_t t);
  void leave_out(Batch& batch, std::size_t t, const Failure& failure);
  Result<Finish> commit_position(const Batch& batch);
  enum class Wake : std::uint8_t { again, given_up };
  Wake wait_to_retry(Millis wait, std::string step, const bool& ends);  // ends: guarded by mutex_
  void drop_released(Batch& batch);
  void cancel_targets();
  Spans still_owned(const Spans& spans);
  void report_dropped(const Batch& batch);

  Parts parts_;
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
