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
#include "core/state.h"

namespace flow {

// stop: the first letter that fails again ends the replay. park: it waits for the next replay, and
// is parked when its attempts are used up. park_key: it is parked at once, and a letter that comes
// after a parked one of its key is parked behind it, whichever replay parked that one.
enum class OnPoison : std::uint8_t { stop, park, park_key };

struct ReplaySpec {
  std::string id;       // of this replay; its lock is held by the caller
  std::string who;      // user@host, for the audit
  std::string marks;    // the pipeline whose output marks are kept up to date; empty: none
  LetterFilter filter;  // limit: how many letters this replay takes at most, 0 none
  OnPoison on_poison = OnPoison::park;
  std::int64_t attempts_max = 3;  // replays of one letter before it is parked
  double per_second = 0;          // 0: as fast as it goes
  bool once_a_record = false;     // letters of one record for several targets are sent once
  // Changes a letter before it is sent; gives words for the audit, empty when it left it as it was.
  // One that cannot be changed fails without being sent.
  std::function<Result<std::string>(DeadLetter&)> edit;
};

struct ReplayCounts {
  std::uint64_t taken = 0;
  std::uint64_t replayed = 0;
  std::uint64_t failed = 0;  // pending again
  std::uint64_t parked = 0;
};

// Source, position store and dead-letter store of one replay. Each letter is taken once, in the
// order of the ids, so a replay ends whatever fails in it. Records keep the origin, offset, key,
// headers and timestamp of their letters. The letters of a batch are settled in one step when the
// loop commits the batch: after the targets, so a crash between the two repeats that batch and no
// more. Memory: the letters of the batches that go round. Threads: as the ports say.
class ReplaySource final : public Source, public PositionStore, public DeadLetterStore {
 public:
  ReplaySource(DeadLetterStore& store, StateStore& state, ReplaySpec spec);

  // Source
  Result<void> open(PartitionListener&) override;
  Result<ReadOutcome> read(Batch& batch, const BatchLimits& limits, ReadControl& control) override;
  Result<void> keep_alive() override { return {}; }
  SourceProgress progress() const override;
  void close() override {}

  // PositionStore
  Result<Spans> load() override { return Spans{}; }
  Result<std::vector<TargetMark>> load_marks() override;
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
  // Whose order is kept: a key of one topic, for one target of one pipeline.
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  // What is remembered of a letter from its reading to its settling.
  struct Sent {
    std::int64_t id = 0;
    Origin origin;
    std::string pipeline, target;
    std::optional<Key> key;
    std::int64_t attempts = 1, replays = 0;
    std::string edited;                // what was changed, and
    std::optional<std::string> value;  // the value before it was
  };
  using Sending = std::vector<Sent>;

  bool waits_for_each_batch() const {
    return spec_.on_poison == OnPoison::park_key || spec_.once_a_record;
  }
  bool wait_for_rate(ReadControl& control, std::size_t& room);
  Result<void> claim_more(std::size_t room, std::size_t bytes);
  Result<bool> take(DeadLetter& letter, Batch& batch, Sending& sent);
  Result<void> park_behind(const Sent& letter, std::int64_t blocker);
  Result<void> edited(DeadLetter& letter, Sent& sent) const;
  bool sent_already(const Sent& sent, const Sending& batch) const;
  std::uint32_t span_for(Batch& batch, const DeadLetter& letter);
  static void add_record(Batch& batch, const DeadLetter& letter, std::uint32_t span);
  LetterOutcome outcome_of(const Sent& letter);
  void block(const Key& key, std::int64_t blocker);

  DeadLetterStore& store_;
  StateStore& state_;
  ReplaySpec spec_;

  // Of the reading thread.
  std::deque<DeadLetter> claimed_;
  std::size_t claimed_bytes_ = 0;  // of the last claim
  std::size_t claimed_count_ = 0;
  bool exhausted_ = false;
  std::optional<Monotonic::time_point> started_;
  std::uint64_t read_ = 0;  // since started_
  std::set<Key> keys_;      // of the batch being read
  std::map<PartitionId, std::uint32_t> spans_;

  mutable std::mutex mutex_;
  std::deque<Sending> batches_;           // read, not settled
  std::map<Origin, std::string> failed_;  // of these, with the error
  std::map<Key, std::int64_t> blocked_;   // keys, with the first letter that is parked
  std::set<Origin> done_;                 // records sent, when each is sent once
  ReplayCounts counts_;
};

}  // namespace flow
