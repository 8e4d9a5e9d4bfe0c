#include "core/coordinator.h"

#include <algorithm>
#include <utility>

namespace flow {

CommitCoordinator::CommitCoordinator(Parts parts)
    : parts_(std::move(parts)), breaker_(parts_.pipeline->dlq) {}

// The delivery contract in one function. at_least_once: whatever crash comes between two of these
// lines, the position still stands before the batch, so the batch is read again; after the last
// line it never is. A record that a target refuses is stored inside apply_to_targets: in the
// target's own transaction, or else before the function returns.
Result<Finish> CommitCoordinator::finish(Batch& batch) {
  auto done = load_attempts_once();
  if (done && *done == Finish::committed) done = store_dead_letters(batch);
  if (done && *done == Finish::committed) done = apply_to_targets(batch);
  if (done && *done == Finish::committed) done = commit_position(batch);
  if (!done || *done == Finish::given_up) return done;
  breaker_.commit();
  forget_attempts(batch);
  return done;
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

// One target: written until every row is durable or set aside, the rows of a key in their order.
Result<Finish> CommitCoordinator::apply_to_target(Batch& batch, std::size_t t) {
  Target& target = *parts_.targets[t];
  const std::string step = "write to " + target.spec().label;
  Retry retry(parts_.pipeline->retry, *parts_.log, step);
  bool owed = target.keeps_letters();  // the letters that go into its transaction
  for (;;) {
    drop_released(batch);
    if (batch.rows[t].order.empty()) break;
    Verdicts verdicts;
    const auto letters = owed ? letters_for(batch, t) : std::vector<DeadLetter>{};
    auto refused = write(batch, t, letters, verdicts);
    if (refused) {
      owed = false;
      retry.succeeded();
      if (refused->empty()) break;
      auto settled = settle_refused(batch, t, std::move(*refused), verdicts);
      if (!settled || *settled == Finish::given_up) return settled;
      continue;
    }
    const Failure& failure = refused.failure();
    if (failure.effect == Effect::unknown) note_doubt(batch, t);
    if (parts_.pipeline->on_error == OnError::fail && failure.of_record() && failure.record) {
      end_before(batch, failure);
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
  note_mark(target);
  if (!owed) return Finish::committed;
  return put_letters(letters_for(batch, t), Point::store_dead_letters_applied);
}

// fail: the target gets the batch or names a record, and the run ends there. drop, dlq: the target
// writes what it can and names the rest.
Result<std::vector<RecordFailure>> CommitCoordinator::write(const Batch& batch, std::size_t t,
                                                            std::span<const DeadLetter> letters,
                                                            Verdicts& verdicts) {
  Target& target = *parts_.targets[t];
  if (parts_.pipeline->on_error == OnError::fail) {
    auto written = target.write(batch, batch.rows[t]);
    if (!written) return written.failure();
    return std::vector<RecordFailure>{};
  }
  if (sets_aside()) {
    if (auto past = breaker_.begin(batch)) return *past;
  }
  Aside aside{.letters = letters};
  aside.refused = [&](const RecordFailure& f) -> Result<std::optional<DeadLetter>> {
    RecordFailure named = f;
    named.target = static_cast<std::uint32_t>(t);
    auto verdict = judge(batch, named);
    if (!verdict) return std::move(verdict).failure();
    Verdict& kept = verdicts[f.record] = std::move(*verdict);
    if (!target.keeps_letters()) return std::optional<DeadLetter>();
    return std::exchange(kept.letter, std::nullopt);
  };
  auto refused = target.write_around(batch, batch.rows[t], aside);
  if (!refused) return refused;
  for (RecordFailure& f : *refused) {
    f.target = static_cast<std::uint32_t>(t);
    f.stage = Stage::target;
    FLOW_CHECK(verdicts.contains(f.record), "a target refused a row without a word");
  }
  return refused;
}

void CommitCoordinator::note_doubt(const Batch& batch, std::size_t t) {
  const TargetSpec& spec = parts_.targets[t]->spec();
  if (spec.mode != Mode::append) return;
  const std::size_t rows = batch.rows[t].order.size();
  parts_.account->repeat(t, rows);
  parts_.log->event(Level::warn, "write.in_doubt",
                    {{"target", spec.label},
                     {"rows", std::to_string(rows)},
                     {"means", "these rows may be there twice after the next attempt"}});
}

void CommitCoordinator::note_mark(const Target& target) {
  const auto mark = target.mark();
  if (!mark) return;
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

Result<Finish> CommitCoordinator::retried(const std::string& name, const bool& ends,
                                          const std::function<Result<void>()>& step) {
  Retry retry(parts_.pipeline->retry, *parts_.log, name);
  for (;;) {
    Result<void> done = step();
    if (done) break;
    if (!done.failure().retryable()) return done.failure();
    const auto wait = retry.failed(done.failure());
    if (!wait) return done.failure();
    std::unique_lock lock(mutex_);
    retrying_ = name;
    wake_.wait_for(lock, *wait, [&] { return ends; });
    retrying_.clear();
    if (ends) return Finish::given_up;
  }
  retry.succeeded();
  return Finish::committed;
}

// A drain still waits here: the targets hold the batch already, and giving up would repeat it.
Result<Finish> CommitCoordinator::commit_position(const Batch& batch) {
  if (auto f = reach(Point::commit_position_before)) return *f;
  auto done = retried("commit the position", cancelled_,
                      [&] { return parts_.positions->commit(still_owned(batch.spans), marks()); });
  if (!done || *done == Finish::given_up) return done;
  if (auto f = reach(Point::commit_position_after)) return *f;
  return done;
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
