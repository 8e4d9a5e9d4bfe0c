#include "core/loop.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "core/clock.h"
#include "core/crash_loop.h"
#include "core/failure_point.h"

namespace flow {

namespace {

std::vector<std::string> labels(const std::vector<Target*>& targets) {
  std::vector<std::string> out;
  for (const Target* t : targets) out.push_back(t->spec().label);
  return out;
}

// Three batches go round: one being read, one waiting, one being written. That bounds the memory.
constexpr std::size_t batches_in_turn = 3;

class Loop final : public PartitionListener, public ReadControl {
 public:
  explicit Loop(const LoopParts& parts)
      : parts_(parts),
        account_(labels(parts.targets), parts.pipeline->on_error),
        coordinator_({parts.pipeline, parts.targets, parts.positions, parts.mapper, &account_,
                      parts.log, parts.letters, parts.state, parts.run_id}),
        crash_loop_(*parts.pipeline, parts.state, parts.run_id) {
    coordinator_.set_marks(parts.marks);
    for (Batch& b : batches_) free_.push_back(&b);
  }

  LoopEnd run();

  // ReadControl
  bool stopping() const override { return stop_reading_.load(std::memory_order_relaxed); }
  bool writer_idle() const override { return writer_idle_.load(std::memory_order_relaxed); }

  // PartitionListener
  void assigned(const std::vector<PartitionId>& partitions) override;
  void released(const std::vector<PartitionId>& partitions, Release how) override;

 private:
  void read_all();  // the reading thread
  Result<void> patiently(const std::string& step, const std::function<Result<void>()>& attempt);
  Result<void> map(Batch& batch);
  Result<bool> read_one();  // false: the source has ended
  Batch* free_batch();
  BatchLimits limits_left() const;
  void write_all();  // the writing thread (the caller's)
  Batch* next_batch();
  bool write_one(Batch& batch);  // false: no more batches are to be written
  void supervise();              // ticks, drain deadline, --max-time
  void fail(Failure failure);
  void note_positions(const Batch& batch);
  LoopProgress progress();

  const LoopParts& parts_;
  Account account_;
  CommitCoordinator coordinator_;
  CrashLoop crash_loop_;
  std::array<Batch, batches_in_turn> batches_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Batch*> free_;
  std::deque<Batch*> ready_;
  Batch* in_flight_ = nullptr;
  bool reading_done_ = false;
  bool writing_done_ = false;
  bool ended_ = false;  // all threads may go
  std::optional<Failure> failure_;
  std::map<PartitionId, Span> committed_;
  std::map<Batch*, std::size_t> taken_;  // records of a batch when it was handed over
  bool drained_ = false;

  std::atomic<bool> stop_reading_{false};
  std::atomic<bool> writer_idle_{true};
};

LoopEnd Loop::run() {
  std::thread reader([this] { read_all(); });
  std::thread supervisor([this] { supervise(); });
  write_all();
  {
    const std::scoped_lock lock(mutex_);
    stop_reading_ = true;
  }
  changed_.notify_all();
  reader.join();
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  supervisor.join();
  LoopEnd end;
  end.failure = failure_;
  end.status = failure_ ? RunStatus::failed : drained_ ? RunStatus::drained : RunStatus::done;
  end.progress = progress();
  return end;
}

// ---- reading
// ---------------------------------------------------------------------------------------

void Loop::read_all() {
  auto opened = patiently("read the state", [this] { return crash_loop_.begin(); });
  if (opened) opened = patiently("open the source", [this] { return parts_.source->open(*this); });
  if (!opened) {
    fail(std::move(opened).failure());
  } else {
    for (;;) {
      auto more = read_one();
      if (!more) fail(std::move(more).failure());
      if (!more || !*more) break;
    }
  }
  {
    std::unique_lock lock(mutex_);
    reading_done_ = true;
    changed_.notify_all();
    // The group membership is kept until the last batch is committed.
    while (!writing_done_ && (!ready_.empty() || in_flight_ != nullptr)) {
      changed_.wait_for(lock, Millis{50});
      lock.unlock();
      const auto alive = parts_.source->keep_alive();
      if (!alive)
        parts_.log->event(Level::warn, "source.lost", {{"error", alive.failure().text()}});
      lock.lock();
    }
  }
  parts_.source->close();
}

// On the reading thread: until it is ok, fails for good, or the run is to stop.
Result<void> Loop::patiently(const std::string& step,
                             const std::function<Result<void>()>& attempt) {
  Retry retry(parts_.pipeline->retry, *parts_.log, step);
  for (;;) {
    auto done = attempt();
    if (done) retry.succeeded();
    if (done || !done.failure().retryable()) return done;
    const auto wait = retry.failed(done.failure());
    if (!wait) return done;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, *wait, [&] { return stopping(); })) return {};
  }
}

Result<bool> Loop::read_one() {
  Batch* batch = free_batch();
  if (batch == nullptr) return false;
  batch->clear();
  const BatchLimits limits = limits_left();
  if (limits.records == 0) return false;
  auto outcome = parts_.source->read(*batch, limits, *this);
  if (!outcome) return std::move(outcome).failure();
  if (auto f = reach(Point::read_after)) return *f;
  const bool last = *outcome == ReadOutcome::end || stopping();
  if (batch->spans.empty()) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(batch);
    return !last;
  }
  account_.read(batch->records.size());
  const std::size_t taken = batch->records.size();
  if (auto mapped = map(*batch); !mapped) {
    account_.abandoned(taken);
    return std::move(mapped).failure();
  }
  if (auto f = reach(Point::decode_after)) return *f;
  if (auto f = reach(Point::transform_after)) return *f;
  const bool stops = batch->stop.has_value();
  {
    const std::scoped_lock lock(mutex_);
    if (writing_done_) {
      account_.abandoned(taken);
      return false;
    }
    taken_[batch] = taken;
    ready_.push_back(batch);
    writer_idle_ = false;
  }
  changed_.notify_all();
  return !last && !stops;
}

Result<void> Loop::map(Batch& batch) {
  std::optional<Failure> killer;
  auto taken = patiently("mark the batch in hand", [&]() -> Result<void> {
    auto known = crash_loop_.take(batch);
    if (!known) return std::move(known).failure();
    killer = std::move(*known);
    return {};
  });
  if (!taken) return taken;
  if (killer) {
    parts_.mapper->refuse(batch, *killer, crash_loop_.deaths());
  } else {
    parts_.mapper->map(batch);
  }
  return {};
}

// Waits for a batch to come back, keeping the source alive meanwhile; nullptr: stop.
Batch* Loop::free_batch() {
  std::unique_lock lock(mutex_);
  const auto ready = [&] {
    return crash_loop_.one_at_a_time() ? free_.size() == batches_in_turn : !free_.empty();
  };
  for (;;) {
    if (stopping()) return nullptr;
    if (ready()) {
      Batch* batch = free_.back();
      free_.pop_back();
      return batch;
    }
    changed_.wait_for(lock, Millis{50}, [&] { return ready() || stopping(); });
    if (ready()) continue;
    lock.unlock();
    const auto alive = parts_.source->keep_alive();
    lock.lock();
    if (!alive && !failure_) {
      failure_ = alive.failure();
      stop_reading_ = true;
      coordinator_.give_up(false);
    }
  }
}

BatchLimits Loop::limits_left() const {
  BatchLimits limits = parts_.pipeline->source.batch;
  limits.records = crash_loop_.records_max(limits.records);
  if (!parts_.limits.records) return limits;
  const std::uint64_t read = account_.read_total();
  const std::uint64_t left = *parts_.limits.records > read ? *parts_.limits.records - read : 0;
  limits.records = static_cast<std::size_t>(std::min<std::uint64_t>(limits.records, left));
  return limits;
}

void Loop::assigned(const std::vector<PartitionId>& partitions) {
  std::string text;
  for (const PartitionId& p : partitions) text += (text.empty() ? "" : ",") + p.text();
  parts_.log->event(Level::info, "partitions.assigned", {{"partitions", text}});
}

// On the reading thread. Batches that wait forget these partitions at once; the one being written
// is waited for when it was revoked and goes well, and given up for these partitions when it is
// being tried again, takes too long, or they were lost: nothing of a released partition is written
// after this returns.
void Loop::released(const std::vector<PartitionId>& partitions, Release how) {
  std::string text;
  for (const PartitionId& p : partitions) text += (text.empty() ? "" : ",") + p.text();
  parts_.log->event(Level::info, how == Release::lost ? "partitions.lost" : "partitions.revoked",
                    {{"partitions", text}});
  std::unique_lock lock(mutex_);
  for (Batch* batch : ready_) {
    std::vector<char> gone(batch->spans.size(), 0);
    for (std::size_t i = 0; i < batch->spans.size(); ++i) {
      gone[i] = std::find(partitions.begin(), partitions.end(), batch->spans[i].partition) !=
                partitions.end();
    }
    batch->abandon(gone);
    parts_.mapper->order(*batch);
  }
  if (in_flight_ == nullptr) return;
  const auto in_flight = in_flight_;
  lock.unlock();
  coordinator_.release(partitions, how, how == Release::lost);
  lock.lock();
  constexpr auto patience = std::chrono::seconds(20);
  const auto done = [&] { return in_flight_ != in_flight; };
  if (!changed_.wait_for(lock, patience, done)) {
    do {
      lock.unlock();
      coordinator_.release(partitions, how, true);
      lock.lock();
    } while (!changed_.wait_for(lock, std::chrono::seconds(1), done));
  }
  coordinator_.released_done();
}

// ---- writing
// ---------------------------------------------------------------------------------------

void Loop::write_all() {
  while (Batch* batch = next_batch()) {
    const bool go_on = write_one(*batch);
    {
      const std::scoped_lock lock(mutex_);
      in_flight_ = nullptr;
      free_.push_back(batch);
      writer_idle_ = ready_.empty();
      if (!go_on) {
        stop_reading_ = true;
        writing_done_ = true;
        for (Batch* b : ready_) account_.abandoned(taken_[b]);
        ready_.clear();
      }
    }
    changed_.notify_all();
    if (!go_on) return;
  }
}

Batch* Loop::next_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || reading_done_; });
  if (ready_.empty()) return nullptr;
  in_flight_ = ready_.front();
  ready_.pop_front();
  return in_flight_;
}

bool Loop::write_one(Batch& batch) {
  std::size_t taken = 0;
  {
    const std::scoped_lock lock(mutex_);
    taken = taken_[&batch];
  }
  auto finished = coordinator_.finish(batch);
  if (!finished) {
    account_.abandoned(taken);
    fail(std::move(finished).failure());
    return false;
  }
  if (*finished == Finish::given_up) {
    account_.abandoned(taken);
    parts_.log->event(
        Level::warn, "batch.given_up",
        {{"records", std::to_string(taken)}, {"means", "read again by the next run"}});
    return false;
  }
  account_.finished(batch, taken);
  if (auto r = crash_loop_.done(batch); !r)
    parts_.log->event(Level::warn, "mark.kept", {{"error", r.failure().text()}});
  note_positions(batch);
  if (batch.stop) {
    fail(*batch.stop);
    return false;
  }
  return true;
}

void Loop::note_positions(const Batch& batch) {
  const std::scoped_lock lock(mutex_);
  for (const Span& s : batch.spans) {
    auto [at, fresh] = committed_.try_emplace(s.partition, s);
    if (!fresh) {
      at->second.next = s.next;
      at->second.identity = s.identity;
    }
  }
}

void Loop::fail(Failure failure) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    stop_reading_ = true;
  }
  changed_.notify_all();
}

// ---- the third thread: ticks and deadlines
// -----------------------------------------------------------

void Loop::supervise() {
  const auto start = Monotonic::now();
  std::optional<Monotonic::time_point> drain_deadline;
  bool cancelled = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, Millis{100}, [&] { return ended_; })) {
    const auto now = Monotonic::now();
    const bool time_up = parts_.limits.time && now - start >= *parts_.limits.time;
    if (!drain_deadline && (parts_.stop->requested() || time_up)) {
      drain_deadline = now + parts_.pipeline->drain_timeout;
      drained_ = !failure_;
      stop_reading_ = true;
      lock.unlock();
      changed_.notify_all();
      parts_.log->event(Level::info, "run.draining",
                        {{"reason", time_up ? "--max-time" : "signal"}});
      if (auto f = reach(Point::drain_before)) fail(*f);
      coordinator_.give_up(false);
      lock.lock();
    }
    if (drain_deadline && now >= *drain_deadline && !cancelled) {
      cancelled = true;
      lock.unlock();
      fail({.cls = FailureClass::transient,
            .where = "drain",
            .what = "the batch in hand was not finished within drain_timeout",
            .hint = "its position has not moved: the next run writes it again",
            .exit = ExitCode::temporary});
      coordinator_.give_up(true);
      lock.lock();
    }
    if (parts_.on_tick && !ended_) {
      lock.unlock();
      parts_.on_tick(progress());
      lock.lock();
    }
  }
}

LoopProgress Loop::progress() {
  LoopProgress p;
  p.counts = account_.counts();
  p.read = account_.read_total();
  p.dead = account_.dead();
  p.source = parts_.source->progress();
  p.retrying = coordinator_.retrying_target();
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, span] : committed_) p.positions.push_back(span);
  return p;
}

}  // namespace

LoopEnd run_loop(const LoopParts& parts) { return Loop(parts).run(); }

}  // namespace flow
