#include "core/coordinator.h"

#include <algorithm>

#include "core/failure_point.h"

namespace flow {

CommitCoordinator::CommitCoordinator(Parts parts) : parts_(std::move(parts)) {}

// The delivery contract in one function. at_least_once: whatever crash comes between two of these
// lines, the position still stands before the batch, so the batch is read again; after the last
// line it never is.
Result<Finish> CommitCoordinator::finish(Batch& batch) {
  if (auto r = store_dead_letters(batch); !r) return r.failure();
  auto applied = apply_to_targets(batch);
  if (!applied || *applied == Finish::given_up) return applied;
  return commit_position(batch);
}

// Every record that a target does not get is accounted for before anything moves.
// transform_on_error: drop is the one way to leave a record out; with `fail` the batch ends before
// it.
Result<void> CommitCoordinator::store_dead_letters(const Batch& batch) {
  if (auto f = reach(Point::store_dead_letters_before)) return *f;
  FLOW_CHECK(batch.failures.empty() || parts_.pipeline->on_error == OnError::drop,
             "a failed record is neither kept out nor set aside");
  report_dropped(batch);
  if (auto f = reach(Point::store_dead_letters_after)) return *f;
  return {};
}

void CommitCoordinator::report_dropped(const Batch& batch) {
  constexpr std::size_t shown = 10;
  for (std::size_t i = 0; i < std::min(shown, batch.failures.size()); ++i) {
    const RecordFailure& f = batch.failures[i];
    parts_.log->event(
        Level::warn, "record.dropped",
        {{"target", parts_.targets[f.target]->spec().label}, {"error", f.failure.text()}});
  }
  if (batch.failures.size() > shown) {
    parts_.log->event(Level::warn, "record.dropped",
                      {{"more_in_this_batch", std::to_string(batch.failures.size() - shown)}});
  }
}

Result<Finish> CommitCoordinator::apply_to_targets(Batch& batch) {
  if (auto f = reach(Point::apply_to_targets_before)) return *f;
  for (std::size_t t = 0; t < parts_.targets.size(); ++t) {
    auto r = apply_to_target(batch, t);
    if (!r || *r == Finish::given_up) return r;
  }
  if (auto f = reach(Point::apply_to_targets_after)) return *f;
  return Finish::committed;
}

// One target: written until it is durable, the same rows in the same order at each attempt.
Result<Finish> CommitCoordinator::apply_to_target(Batch& batch, std::size_t t) {
  Target& target = *parts_.targets[t];
  const std::string step = "write to " + target.spec().label;
  Retry retry(parts_.pipeline->retry, *parts_.log, step);
  for (;;) {
    drop_released(batch);
    if (batch.rows[t].rows() == 0) break;
    auto written = target.write(batch, batch.rows[t]);
    if (written) break;
    const Failure& failure = written.failure();
    if (failure.effect == Effect::unknown && target.spec().mode == Mode::append) {
      parts_.account->repeat(t, batch.rows[t].rows());
      parts_.log->event(Level::warn, "write.in_doubt",
                        {{"target", target.spec().label},
                         {"rows", std::to_string(batch.rows[t].rows())},
                         {"means", "these rows may be there twice after the next attempt"}});
    }
    if (failure.cls == FailureClass::invalid && failure.record) {
      leave_out(batch, t, failure);
      continue;
    }
    if (!failure.retryable()) return failure;
    parts_.account->retry(t);
    const auto wait = retry.failed(failure);
    if (!wait) {
      Failure spent = failure;
      spent.hint =
          "gave up after retry.for; the position has not moved, so the next run goes on from here";
      return spent;
    }
    if (wait_to_retry(*wait, step, give_up_) == Wake::given_up) return Finish::given_up;
  }
  retry.succeeded();
  if (auto mark = target.mark()) {
    const std::scoped_lock lock(mutex_);
    const auto at = std::find_if(marks_.begin(), marks_.end(), [&](const TargetMark& m) {
      return m.target == target.spec().label;
    });
    if (at == marks_.end()) {
      marks_.push_back({target.spec().label, *mark});
    } else {
      at->mark = *mark;
    }
  }
  return Finish::committed;
}

// The target refused one record. drop: the rest of the batch is written without it. fail: what
// stands before it is written and committed, and the run ends there.
void CommitCoordinator::leave_out(Batch& batch, std::size_t t, const Failure& failure) {
  const std::uint32_t record = *failure.record;
  if (parts_.pipeline->on_error == OnError::drop) {
    batch.set_aside(record, static_cast<std::uint32_t>(t), failure);
    parts_.log->event(Level::warn, "record.dropped",
                      {{"target", parts_.targets[t]->spec().label}, {"error", failure.text()}});
  } else {
    batch.stop = failure;
    batch.stop->exit = ExitCode::data;
    batch.truncate(record);
  }
  parts_.mapper->order(batch);
}

Result<Finish> CommitCoordinator::commit_position(const Batch& batch) {
  if (auto f = reach(Point::commit_position_before)) return *f;
  Retry retry(parts_.pipeline->retry, *parts_.log, "commit the position");
  for (;;) {
    const auto committed = parts_.positions->commit(still_owned(batch.spans), marks());
    if (committed) break;
    const Failure& failure = committed.failure();
    if (!failure.retryable()) return failure;
    const auto wait = retry.failed(failure);
    if (!wait) return failure;
    // A drain still waits here: the targets hold the batch already, and giving up would repeat it.
    if (wait_to_retry(*wait, "commit the position", cancelled_) == Wake::given_up)
      return Finish::given_up;
  }
  retry.succeeded();
  if (auto f = reach(Point::commit_position_after)) return *f;
  return Finish::committed;
}

CommitCoordinator::Wake CommitCoordinator::wait_to_retry(Millis wait, std::string step,
                                                         const bool& ends) {
  std::unique_lock lock(mutex_);
  retrying_ = std::move(step);
  wake_.wait_for(lock, wait, [&] { return ends || releases_ != releases_seen_; });
  retrying_.clear();
  return ends ? Wake::given_up : Wake::again;
}

// Rows of partitions that are going away are not tried again; what is already durable stays and is
// committed when the partition was revoked, not when it was lost.
void CommitCoordinator::drop_released(Batch& batch) {
  std::vector<char> gone(batch.spans.size(), 0);
  {
    const std::scoped_lock lock(mutex_);
    releases_seen_ = releases_;
    if (releasing_.empty() && lost_.empty()) return;
    for (std::size_t i = 0; i < batch.spans.size(); ++i) {
      const PartitionId& p = batch.spans[i].partition;
      gone[i] = releasing_.contains(p) || lost_.contains(p) ? 1 : 0;
    }
  }
  batch.abandon(gone);
  parts_.mapper->order(batch);
}

Spans CommitCoordinator::still_owned(const Spans& spans) {
  const std::scoped_lock lock(mutex_);
  Spans owned;
  for (const Span& s : spans) {
    if (!lost_.contains(s.partition)) owned.push_back(s);
  }
  return owned;
}

void CommitCoordinator::give_up(bool now) {
  {
    const std::scoped_lock lock(mutex_);
    give_up_ = true;
    cancelled_ = cancelled_ || now;
  }
  wake_.notify_all();
  if (now) cancel_targets();
}

void CommitCoordinator::release(const std::vector<PartitionId>& partitions, Release how, bool now) {
  {
    const std::scoped_lock lock(mutex_);
    ++releases_;
    releasing_.insert(partitions.begin(), partitions.end());
    if (how == Release::lost) lost_.insert(partitions.begin(), partitions.end());
  }
  wake_.notify_all();
  if (now) cancel_targets();
}

void CommitCoordinator::released_done() {
  const std::scoped_lock lock(mutex_);
  releasing_.clear();
  lost_.clear();
}

void CommitCoordinator::cancel_targets() {
  for (Target* t : parts_.targets) t->cancel();
}

std::vector<TargetMark> CommitCoordinator::marks() const {
  const std::scoped_lock lock(mutex_);
  return marks_;
}

void CommitCoordinator::set_marks(std::vector<TargetMark> marks) {
  const std::scoped_lock lock(mutex_);
  marks_ = std::move(marks);
}

bool CommitCoordinator::retrying() const { return !retrying_target().empty(); }

std::string CommitCoordinator::retrying_target() const {
  const std::scoped_lock lock(mutex_);
  return retrying_;
}

}  // namespace flow
