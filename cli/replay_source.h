#pragma once
// Dead letters as the source of the loop: read by claims, settled when their batch is durable.
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/clock.h"
#include "core/dead_letter.h"
#include "core/ports.h"

namespace flow {

// stop: the first letter that fails again ends the replay. park: it waits for the next replay, and
// is parked when its attempts are used up. park_key: it is parked at once, and so is what comes
// later with its key.
enum class OnPoison : std::uint8_t { stop, park, park_key };

struct ReplaySpec {
  std::string id;       // of this replay; its lock is held by the caller
  std::string who;      // user@host, for the audit
  LetterFilter filter;  // limit: of the whole replay, 0 none
  OnPoison on_poison = OnPoison::park;
  std::int64_t attempts_max = 3;  // replays of one letter before it is parked
  double per_second = 0;          // 0: as fast as it goes
  // Changes a letter before it is sent; gives words for the audit, empty when it left it as it was.
  std::function<Result<std::string>(DeadLetter&)> edit;
};

struct ReplayCounts {
  std::uint64_t replayed = 0;
  std::uint64_t failed = 0;  // pending again
  std::uint64_t parked = 0;
};

// Source, position store and dead-letter store of one replay. Records keep the origin, offset, key,
// headers and timestamp of their letters. The letters of a batch are settled in one step when the
// loop commits the batch: after the targets, so a crash between the two repeats that batch and no
// more. Threads: as the ports say.
class ReplaySource final : public Source, public PositionStore, public DeadLetterStore {
 public:
  ReplaySource(DeadLetterStore& store, ReplaySpec spec);

  // Source
  Result<void> open(PartitionListener&) override { return {}; }
  Result<ReadOutcome> read(Batch& batch, const BatchLimits& limits, ReadControl& control) override;
  Result<void> keep_alive() override { return {}; }
  SourceProgress progress() const override;
  void close() override {}

  // PositionStore
  Result<Spans> load() override { return Spans{}; }
  Result<std::vector<TargetMark>> load_marks() override { return std::vector<TargetMark>{}; }
  Result<void> commit(const Spans& spans, const std::vector<TargetMark>& marks) override;

  // DeadLetterStore: a letter that fails again is no new letter.
  Result<void> put(std::span<const DeadLetter> letters) override;
  Result<std::vector<DeadLetter>> list(const LetterFilter& filter) override {
    return store_.list(filter);
  }
  Result<std::vector<LetterGroup>> groups(const LetterFilter& filter) override {
    return store_.groups(filter);
  }
  Result<std::uint64_t> count(const LetterFilter& filter) override { return store_.count(filter); }
  Result<std::vector<LetterAudit>> audit(std::int64_t letter) override {
    return store_.audit(letter);
  }
  Result<std::string> snapshot(const LetterFilter& filter) override {
    return store_.snapshot(filter);
  }
  Result<std::vector<DeadLetter>> claim(const LetterFilter& f, const std::string& r) override {
    return store_.claim(f, r);
  }
  Result<void> settle(std::span<const LetterOutcome> o, const std::string& r,
                      const std::string& w) override {
    return store_.settle(o, r, w);
  }
  Result<std::uint64_t> purge(const LetterFilter& filter) override { return store_.purge(filter); }

  // Gives back what was claimed and not sent. Call after the loop.
  Result<void> release();
  ReplayCounts counts() const;

 private:
  using Origin = std::tuple<PartitionId, Offset>;
  // What is remembered of a letter from its reading to its settling.
  struct Sent {
    std::int64_t id = 0;
    Origin origin;
    std::optional<std::string> key;
    std::int64_t replays = 0;
    std::string edited;
  };
  Result<bool> claim_more(std::size_t room);
  bool wait_for_rate(ReadControl& control, std::size_t& room);
  Result<void> park_behind(const Sent& letter, std::int64_t blocker);
  void add_record(Batch& batch, const DeadLetter& letter,
                  std::map<PartitionId, std::uint32_t>& spans);
  LetterOutcome outcome_of(const Sent& letter);
  bool held_back(const DeadLetter& letter, const std::set<std::string>& keys) const;

  DeadLetterStore& store_;
  ReplaySpec spec_;
  std::deque<DeadLetter> claimed_;  // of the reading thread
  std::uint64_t taken_ = 0;
  bool exhausted_ = false;
  Monotonic::time_point started_ = Monotonic::now();
  std::uint64_t read_ = 0;

  mutable std::mutex mutex_;
  std::deque<std::vector<Sent>> batches_;        // read, not settled
  std::map<Origin, std::string> failed_;         // of these, with the error
  std::map<std::string, std::int64_t> blocked_;  // keys behind a parked letter
  ReplayCounts counts_;
};

}  // namespace flow
