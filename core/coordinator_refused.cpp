// What becomes of records that fail: another attempt, left out, or a dead letter.
#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/coordinator.h"

namespace flow {

// ---- before the targets ------------------------------------------------------------------------

// Every record that is known not to reach a target is accounted for before anything moves. A target
// that keeps the letters in its own database gets them with its rows.
Result<Finish> CommitCoordinator::store_dead_letters(Batch& batch) {
  if (auto f = reach(Point::store_dead_letters_before)) return *f;
  drop_released(batch);
  FLOW_CHECK(batch.failures.empty() || parts_.pipeline->on_error != OnError::fail,
             "a failed record is neither kept out nor set aside");
  if (sets_aside() && !batch.failures.empty()) {
    if (auto past = breaker_.begin(batch)) return *past;
    std::vector<DeadLetter> letters;
    for (std::size_t t = 0; t < parts_.targets.size(); ++t) {
      if (parts_.targets[t]->keeps_letters()) continue;
      for (DeadLetter& letter : letters_for(batch, t)) letters.push_back(std::move(letter));
    }
    auto put = put_letters(letters, Point::store_dead_letters_applied);
    if (!put || *put == Finish::given_up) return put;
  }
  report(batch.failures);
  if (auto f = reach(Point::store_dead_letters_after)) return *f;
  return Finish::committed;
}

std::vector<DeadLetter> CommitCoordinator::letters_for(const Batch& batch, std::size_t t) const {
  std::vector<DeadLetter> letters;
  if (!sets_aside()) return letters;
  for (const RecordFailure& f : batch.failures) {
    if (f.target != t) continue;
    letters.push_back(make_letter(*parts_.pipeline, parts_.run_id, batch, f, {f.attempts, 0}));
  }
  return letters;
}

// A letter that cannot be written is never a reason to move on.
Result<Finish> CommitCoordinator::put_letters(const std::vector<DeadLetter>& letters,
                                              Point applied) {
  if (letters.empty()) return Finish::committed;
  return retried("store dead letters", give_up_, [&]() -> Result<void> {
    if (auto put = parts_.letters->put(letters); !put) return put;
    if (auto f = reach(applied)) return *f;
    return {};
  });
}

void CommitCoordinator::report(std::span<const RecordFailure> failures) const {
  const std::size_t shown = sets_aside() ? 3 : 10;  // the store has them all
  const std::string_view event = sets_aside() ? "record.set_aside" : "record.dropped";
  for (std::size_t i = 0; i < std::min(shown, failures.size()); ++i) {
    const RecordFailure& f = failures[i];
    parts_.log->event(Level::warn, event,
                      {{"target", parts_.targets[f.target]->spec().label},
                       {"stage", std::string(name_of(f.stage))},
                       {"class", std::string(name_of(f.failure.cls))},
                       {"error", f.failure.text()}});
  }
  if (failures.size() > shown) {
    parts_.log->event(Level::warn, event,
                      {{"more_in_this_batch", std::to_string(failures.size() - shown)}});
  }
}

// ---- rows that a target refuses ----------------------------------------------------------------

// While the target's transaction is open: nothing is written here.
Result<CommitCoordinator::Verdict> CommitCoordinator::judge(const Batch& batch,
                                                            const RecordFailure& failure) {
  Verdict verdict;
  if (failure.failure.cls == FailureClass::poison) {
    auto before = tried_before(key_of(batch, failure));
    if (!before) return std::move(before).failure();
    verdict.tried = {before->attempts + 1, before->first_failed_ms};
    verdict.again = verdict.tried.attempts < parts_.pipeline->dlq.max_attempts;
    if (verdict.again) return verdict;
  }
  if (!sets_aside()) return verdict;
  if (auto past = breaker_.dead(failure.record)) return *past;
  verdict.letter = make_letter(*parts_.pipeline, parts_.run_id, batch, failure, verdict.tried);
  return verdict;
}

// The rest of the rows is durable. What is set aside leaves the batch, so that an earlier version
// of its key is written in the next pass; what is tried again stays in it.
Result<Finish> CommitCoordinator::settle_refused(Batch& batch, std::size_t t,
                                                 std::vector<RecordFailure> refused,
                                                 Verdicts& verdicts) {
  RowSet& rows = batch.rows[t];
  rows.done.resize(rows.rows(), 0);
  for (const std::uint32_t r : rows.order) {
    if (!verdicts.contains(rows.record[r])) rows.done[r] = 1;
  }
  std::vector<RecordFailure> out;
  std::vector<DeadLetter> letters;
  std::vector<Attempts> again;
  for (RecordFailure& f : refused) {
    Verdict& verdict = verdicts[f.record];
    if (verdict.again) {
      const Record& record = batch.records[f.record];
      const std::int64_t first = verdict.tried.first_failed_ms;
      again.push_back({batch.spans[record.span].partition, record.offset,
                       parts_.targets[t]->spec().label, verdict.tried.attempts,
                       first > 0 ? first : wall_ms()});
      continue;
    }
    if (verdict.letter) letters.push_back(std::move(*verdict.letter));
    out.push_back(std::move(f));
  }
  if (!letters.empty()) {
    if (auto f = reach(Point::store_refused_before)) return *f;
    auto put = put_letters(letters, Point::store_refused_applied);
    if (!put || *put == Finish::given_up) return put;
    if (auto f = reach(Point::store_refused_after)) return *f;
  }
  report(out);
  batch.set_aside(std::move(out));
  parts_.mapper->order(batch);
  if (again.empty()) return Finish::committed;
  auto kept = keep_attempts(again);
  if (!kept || *kept == Finish::given_up) return kept;
  const auto most = std::max_element(again.begin(), again.end(),
                                     [](const auto& a, const auto& b) { return a.made < b.made; });
  return wait_between_attempts(most->made);
}

// fail: what stands before the record is written and committed, and the run ends there.
void CommitCoordinator::end_before(Batch& batch, const Failure& failure) {
  batch.stop = failure;
  batch.stop->exit = ExitCode::data;
  batch.truncate(*failure.record);
  parts_.mapper->order(batch);
}

// ---- attempts ----------------------------------------------------------------------------------

CommitCoordinator::RecordKey CommitCoordinator::key_of(const Batch& batch,
                                                       const RecordFailure& failure) const {
  const Record& record = batch.records[failure.record];
  return {batch.spans[record.span].partition, record.offset,
          parts_.targets[failure.target]->spec().label};
}

Result<void> CommitCoordinator::load_attempts() {
  std::map<RecordKey, Tried> known;
  if (parts_.state != nullptr) {
    auto kept = parts_.state->attempts(parts_.pipeline->name);
    if (!kept) return kept.failure();
    for (const Attempts& a : *kept)
      known[{a.origin, a.offset, a.target}] = {a.made, a.first_failed_ms};
  } else if (attempts_) {
    return {};
  }
  attempts_ = std::move(known);
  return {};
}

// Those of an earlier run, so that success clears them too.
Result<Finish> CommitCoordinator::load_attempts_once() {
  attempts_fresh_ = false;
  if (attempts_ || parts_.pipeline->on_error == OnError::fail) return Finish::committed;
  return retried("read the state", give_up_, [&] { return load_attempts(); });
}

Result<Tried> CommitCoordinator::tried_before(const RecordKey& key) {
  if (!attempts_fresh_) {
    if (auto loaded = load_attempts(); !loaded) return std::move(loaded).failure();
    attempts_fresh_ = true;
  }
  const auto at = attempts_->find(key);
  return at == attempts_->end() ? Tried{0, 0} : at->second;
}

Result<Finish> CommitCoordinator::keep_attempts(const std::vector<Attempts>& attempts) {
  for (const Attempts& a : attempts)
    (*attempts_)[{a.origin, a.offset, a.target}] = {a.made, a.first_failed_ms};
  if (parts_.state == nullptr) return Finish::committed;
  return retried("count attempts in the state", give_up_,
                 [&] { return parts_.state->keep_attempts(parts_.pipeline->name, attempts); });
}

// What the position has passed needs no count. A count that stays behind does no harm: it is
// cleared with the next.
void CommitCoordinator::forget_attempts(const Batch& batch) {
  if (!attempts_ || attempts_->empty()) return;
  std::vector<Attempts> passed;
  for (const auto& [key, tried] : *attempts_) {
    const auto& [origin, offset, target] = key;
    const bool over = std::any_of(batch.spans.begin(), batch.spans.end(),
                                  [&origin = origin, &offset = offset](const Span& s) {
                                    return s.partition == origin && offset.value < s.next.next;
                                  });
    if (over) passed.push_back({origin, offset, target, 0, 0});
  }
  if (passed.empty()) return;
  if (parts_.state != nullptr) {
    if (auto r = parts_.state->keep_attempts(parts_.pipeline->name, passed); !r) {
      parts_.log->event(Level::warn, "attempts.kept", {{"error", r.failure().text()}});
      return;
    }
  }
  for (const Attempts& a : passed) attempts_->erase({a.origin, a.offset, a.target});
}

// A drain does not end the attempts, only the waits between them: the other rows are there already.
Result<Finish> CommitCoordinator::wait_between_attempts(std::int64_t made) {
  const RetrySpec& retry = parts_.pipeline->retry;
  const double grown = static_cast<double>(retry.initial.count()) *
                       std::pow(retry.multiplier, static_cast<double>(made - 1));
  const Millis wait{
      static_cast<std::int64_t>(std::min(grown, static_cast<double>(retry.max.count())))};
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, wait, [&] { return give_up_ || releases_ != releases_seen_; });
  return cancelled_ ? Finish::given_up : Finish::committed;
}

}  // namespace flow
