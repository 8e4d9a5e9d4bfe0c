#include "cli/replay.h"

#include <algorithm>
#include <iostream>

#include "cli/assemble.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "core/clock.h"

namespace flow {

namespace {

constexpr std::uint64_t without_asking = 100;

StopSignal stop_signal;  // reached by the signal handler

// A target whose letters go to the replay, not into its own transaction.
class ReplayTarget final : public Target {
 public:
  explicit ReplayTarget(std::unique_ptr<Target> target) : target_(std::move(target)) {}
  const TargetSpec& spec() const override { return target_->spec(); }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& c) override {
    return target_->prepare(c);
  }
  Result<void> start(const Columns& p, const std::optional<TargetMark>& m) override {
    return target_->start(p, m);
  }
  Result<void> write(const Batch& b, const RowSet& r) override { return target_->write(b, r); }
  Result<std::vector<RecordFailure>> write_around(const Batch& b, const RowSet& r,
                                                  const Aside& a) override {
    return target_->write_around(b, r, a);
  }
  bool keeps_letters() const override { return false; }
  std::optional<std::string> mark() const override { return target_->mark(); }
  void cancel() noexcept override { target_->cancel(); }
  void close() override { target_->close(); }

 private:
  std::unique_ptr<Target> target_;
};

// The pipeline as a replay runs it. Each replay is one attempt at a letter; that many fail again is
// no news, and nothing is known of records in flight.
Pipeline replayed(Pipeline pipeline) {
  pipeline.on_error = OnError::dlq;
  pipeline.dlq.max_attempts = 1;
  pipeline.dlq.of_batch_percent = 0;
  pipeline.dlq.in_a_row = 0;
  pipeline.dlq.per_run = 0;
  pipeline.dlq.crash_loop_limit = 0;
  pipeline.source.batch.records = replay_batch(pipeline);
  return pipeline;
}

}  // namespace

int Replay::go() {
  auto parts = prepare();
  if (parts && options_.dry_run) {
    auto shown = dry_run(*parts);
    if (shown) return 0;
    parts = std::move(shown).failure();
  }
  if (parts) {
    if (auto ready = begin(); !ready) parts = std::move(ready).failure();
  }
  if (!parts)
    return report_failure(globals_, parts.failure(), letters_ ? letters_->masker : Masker());
  return finish(replay(*parts));
}

Result<void> Replay::begin() {
  if (auto ok = confirm(many_, without_asking, "replay", options_.yes); !ok) return ok;
  auto lock = letters_->state->lock(replay_lock_name(spec_.id), Millis{0});
  if (!lock) return std::move(lock).failure();
  lock_ = std::move(lock).value();
  install_signals(stop_signal);
  return {};
}

Result<void> Replay::replay(const std::vector<ReplayPart>& parts) {
  for (const ReplayPart& part : parts) {
    if (stop_signal.requested() || total_.taken >= many_) break;
    auto turn = wait_for_turn(part);
    if (!turn) return std::move(turn).failure();
    if (*turn == nullptr) break;
    if (auto r = replay_part(part); !r) return r;
  }
  return {};
}

// Letters of one target are replayed by one process at a time, or the order of a key would be
// lost. nullptr: told to stop while waiting.
Result<std::unique_ptr<Lock>> Replay::wait_for_turn(const ReplayPart& part) {
  const std::string& label = part.pipeline.targets.front().label;
  const std::string name = "replay-into/" + spec_.filter.pipeline + "/" + label;
  for (bool told = false;; told = true) {
    auto lock = letters_->state->lock(name, told ? Millis{200} : Millis{0});
    if (!lock || *lock != nullptr || stop_signal.requested()) return lock;
    if (told) continue;
    letters_->log->event(Level::info, "replay.waiting",
                         {{"target", label}, {"for", "another replay of its letters to end"}});
  }
}

Result<void> Replay::replay_part(const ReplayPart& part) {
  ReplaySpec spec = spec_;
  if (!part.target.empty()) spec.filter.target = part.target;
  // No more than were there when it was asked for: a replay ends though new letters arrive.
  spec.filter.limit = static_cast<std::size_t>(std::min(part.letters, many_ - total_.taken));
  const bool marked = part.pipeline.targets.front().kind == "file" && options_.to_topic.empty();
  if (marked) spec.marks = part.pipeline.name;
  auto owned = std::make_unique<ReplaySource>(*letters_->store, *letters_->state, std::move(spec));
  ReplaySource& source = *owned;
  const Pipeline pipeline = replayed(part.pipeline);
  Context context = letters_->context;
  context.pipeline = &pipeline;
  context.run_id = spec_.id;
  SourceParts given;
  given.positions = owned.get();
  given.source = std::move(owned);
  auto assembly = assemble(context, stop_signal, std::move(given));
  if (!assembly) return std::move(assembly).failure();
  for (auto& t : assembly->targets) t = std::make_unique<ReplayTarget>(std::move(t));
  ProgressLine line(!globals_.quiet);
  letters_->log->set_before_line([&] { line.wipe(); });
  LoopParts loop;
  loop.pipeline = &pipeline;
  loop.source = &source;
  loop.positions = &source;
  loop.targets = assembly->target_pointers();
  loop.mapper = &*assembly->mapper;
  loop.log = letters_->log.get();
  loop.stop = &stop_signal;
  loop.marks = assembly->marks;
  loop.letters = &source;
  loop.run_id = spec_.id;
  loop.on_tick = [&](const LoopProgress& p) { line.draw(p); };
  const LoopEnd end = run_loop(loop);
  line.wipe();
  letters_->log->set_before_line({});
  assembly->close();
  auto released = source.release();
  const ReplayCounts counts = source.counts();
  total_.taken += counts.taken;
  total_.replayed += counts.replayed;
  total_.failed += counts.failed;
  total_.parked += counts.parked;
  if (end.failure) return *end.failure;
  return released;
}

int Replay::finish(const Result<void>& done) {
  const Masker& masker = letters_->masker;
  if (!done) print_failure(done.failure(), masker);
  const std::uint64_t settled = total_.replayed + total_.failed + total_.parked;
  const std::uint64_t left = many_ > settled ? many_ - settled : 0;
  if (globals_.json()) {
    Json j;
    j["dry_run"] = false;
    j["replay"] = spec_.id;
    j["count"] = many_;
    j["replayed"] = total_.replayed;
    j["failed"] = total_.failed;
    j["parked"] = total_.parked;
    j["left"] = left;
    j["error"] = done ? Json(nullptr) : failure_json(done.failure());
    print_json("dlq.replay", std::move(j), masker);
  } else {
    std::cout << with_separators(total_.replayed) << " replayed, " << with_separators(total_.failed)
              << " failed again, " << with_separators(total_.parked) << " parked, "
              << with_separators(left) << " left (" << spec_.id << ")\n";
    if (total_.failed + total_.parked > 0)
      std::cout << masker.text("flow dlq list --each" + letters_->words + " shows why\n");
  }
  if (!done) return static_cast<int>(done.failure().exit_code());
  return total_.failed + total_.parked > 0 ? static_cast<int>(ExitCode::data) : 0;
}

}  // namespace flow
