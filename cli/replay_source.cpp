#include "cli/replay_source.h"

#include <algorithm>
#include <thread>

namespace flow {

ReplaySource::ReplaySource(DeadLetterStore& store, ReplaySpec spec)
    : store_(store), spec_(std::move(spec)) {}

Result<bool> ReplaySource::claim_more(std::size_t room) {
  if (exhausted_) return false;
  LetterFilter filter = spec_.filter;
  filter.limit = room;
  if (spec_.filter.limit != 0)
    filter.limit = std::min(room, spec_.filter.limit - static_cast<std::size_t>(taken_));
  if (filter.limit == 0) {
    exhausted_ = true;
    return false;
  }
  auto letters = store_.claim(filter, spec_.id);
  if (!letters) return std::move(letters).failure();
  exhausted_ = letters->empty();
  taken_ += letters->size();
  for (DeadLetter& l : *letters) claimed_.push_back(std::move(l));
  return !exhausted_;
}

// Lowers `room` to what the rate allows now; false: nothing yet.
bool ReplaySource::wait_for_rate(ReadControl& control, std::size_t& room) {
  if (spec_.per_second <= 0) return true;
  constexpr auto slice = std::chrono::milliseconds(100);
  const auto allowed = [&] {
    const double seconds = std::chrono::duration<double>(Monotonic::now() - started_).count();
    return static_cast<std::uint64_t>(seconds * spec_.per_second);
  };
  const auto until = Monotonic::now() + slice;
  while (allowed() <= read_ && Monotonic::now() < until && !control.stopping()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (allowed() <= read_) return false;
  room = std::min(room, static_cast<std::size_t>(allowed() - read_));
  return true;
}

bool ReplaySource::held_back(const DeadLetter& letter, const std::set<std::string>& keys) const {
  return spec_.on_poison == OnPoison::park_key && letter.key && keys.contains(*letter.key);
}

Result<ReadOutcome> ReplaySource::read(Batch& batch, const BatchLimits& limits,
                                       ReadControl& control) {
  std::size_t room = limits.records;
  if (!wait_for_rate(control, room)) return ReadOutcome::more;
  if (spec_.on_poison == OnPoison::park_key) {
    // What a letter does to its key must be known before the next one of the key is sent.
    const std::scoped_lock lock(mutex_);
    if (!batches_.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return ReadOutcome::more;
    }
  }
  if (claimed_.empty()) {
    auto more = claim_more(room);
    if (!more) return std::move(more).failure();
    if (!*more) return ReadOutcome::end;
  }
  std::vector<Sent> sent;
  std::set<std::string> keys;
  std::map<PartitionId, std::uint32_t> spans;
  while (!claimed_.empty() && sent.size() < room && batch.bytes < limits.bytes &&
         !control.stopping()) {
    DeadLetter letter = std::move(claimed_.front());
    claimed_.pop_front();
    Sent s{letter.id, {letter.origin, letter.offset}, letter.key, letter.replays, {}};
    if (letter.key) {
      const auto blocker = blocked_.find(*letter.key);
      if (blocker != blocked_.end()) {
        if (auto r = park_behind(s, blocker->second); !r) return std::move(r).failure();
        continue;
      }
    }
    if (held_back(letter, keys)) {
      claimed_.push_front(std::move(letter));
      break;
    }
    if (letter.key) keys.insert(*letter.key);
    if (spec_.edit) {
      auto edited = spec_.edit(letter);
      if (!edited) return std::move(edited).failure();
      s.edited = std::move(edited).value();
    }
    add_record(batch, letter, spans);
    sent.push_back(std::move(s));
  }
  if (sent.empty()) return ReadOutcome::more;
  read_ += sent.size();
  const std::scoped_lock lock(mutex_);
  batches_.push_back(std::move(sent));
  return ReadOutcome::more;
}

void ReplaySource::add_record(Batch& batch, const DeadLetter& letter,
                              std::map<PartitionId, std::uint32_t>& spans) {
  const auto [at, fresh] = spans.try_emplace(letter.origin, 0);
  if (fresh) at->second = batch.span_of(letter.origin, position_at(letter.offset));
  Span& span = batch.spans[at->second];
  span.next = std::max(span.next, position_after(letter.offset));
  Record r;
  if (letter.value) r.value = batch.arena.copy(*letter.value);
  if (letter.key) r.key = batch.arena.copy(*letter.key);
  r.offset = letter.offset;
  r.timestamp_ms = letter.timestamp_ms;
  r.span = at->second;
  r.header_first = static_cast<std::uint32_t>(batch.headers.size());
  r.header_count = static_cast<std::uint32_t>(letter.headers.size());
  for (const LetterHeader& h : letter.headers) {
    Header header;
    header.name = batch.arena.copy(h.name);
    if (h.value) header.value = batch.arena.copy(*h.value);
    batch.headers.push_back(header);
  }
  batch.bytes += r.value.size() + r.key.size();
  batch.records.push_back(r);
}

Result<void> ReplaySource::park_behind(const Sent& letter, std::int64_t blocker) {
  const LetterOutcome outcome{
      letter.id, LetterState::parked,
      "parked: behind letter " + std::to_string(blocker) + " of the same key", false};
  if (auto r = store_.settle({&outcome, 1}, spec_.id, spec_.who); !r) return r;
  const std::scoped_lock lock(mutex_);
  ++counts_.parked;
  return {};
}

Result<void> ReplaySource::put(std::span<const DeadLetter> letters) {
  if (auto r = store_.put(letters); !r)
    return r;  // brings attempts and the last failure up to date
  const std::scoped_lock lock(mutex_);
  for (const DeadLetter& l : letters) failed_[{l.origin, l.offset}] = l.error;
  return {};
}

LetterOutcome ReplaySource::outcome_of(const Sent& letter) {
  const std::string edited = letter.edited.empty() ? "" : " (changed: " + letter.edited + ")";
  const auto failure = failed_.find(letter.origin);
  if (failure == failed_.end()) {
    ++counts_.replayed;
    return {letter.id, LetterState::replayed, "replayed" + edited};
  }
  const bool spent =
      spec_.on_poison == OnPoison::park_key || letter.replays + 1 >= spec_.attempts_max;
  if (spec_.on_poison == OnPoison::park_key && letter.key)
    blocked_.try_emplace(*letter.key, letter.id);
  ++(spent ? counts_.parked : counts_.failed);
  return {letter.id, spent ? LetterState::parked : LetterState::pending,
          (spent ? "parked: " : "failed: ") + failure->second + edited};
}

// The loop calls this once for each batch, in the order they were read, when every target has it.
Result<void> ReplaySource::commit(const Spans&, const std::vector<TargetMark>&) {
  std::vector<LetterOutcome> outcomes;
  std::vector<Sent> batch;
  ReplayCounts before;
  {
    const std::scoped_lock lock(mutex_);
    FLOW_CHECK(!batches_.empty(), "a batch of letters is committed that was not read");
    batch = batches_.front();
    before = counts_;
    for (const Sent& s : batch) outcomes.push_back(outcome_of(s));
  }
  const auto settled = store_.settle(outcomes, spec_.id, spec_.who);
  const std::scoped_lock lock(mutex_);
  if (!settled) {
    counts_ = before;
    return settled;
  }
  bool poisoned = false;
  for (const Sent& s : batch) poisoned = failed_.erase(s.origin) > 0 || poisoned;
  batches_.pop_front();
  if (!poisoned || spec_.on_poison != OnPoison::stop) return {};
  return Failure{.cls = FailureClass::invalid,
                 .where = "replay " + spec_.id,
                 .what = "a letter failed again",
                 .hint = "flow dlq list --each shows it; --on-poison park goes on without it",
                 .exit = ExitCode::data};
}

Result<void> ReplaySource::release() {
  std::vector<LetterOutcome> outcomes;
  const std::scoped_lock lock(mutex_);
  for (const DeadLetter& l : claimed_)
    outcomes.push_back({l.id, LetterState::pending, "released: not sent", false});
  for (const auto& batch : batches_) {
    for (const Sent& s : batch)
      outcomes.push_back({s.id, LetterState::pending, "released: not finished", false});
  }
  claimed_.clear();
  batches_.clear();
  if (outcomes.empty()) return {};
  return store_.settle(outcomes, spec_.id, spec_.who);
}

SourceProgress ReplaySource::progress() const { return {}; }

ReplayCounts ReplaySource::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

}  // namespace flow
