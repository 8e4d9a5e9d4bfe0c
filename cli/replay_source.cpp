#include "cli/replay_source.h"

#include <algorithm>
#include <thread>

namespace flow {

namespace {

constexpr std::size_t claimed_at_first = 256;  // before the size of the letters is known

std::size_t bytes_of(const DeadLetter& l) {
  std::size_t bytes = (l.value ? l.value->size() : 0) + (l.key ? l.key->size() : 0);
  for (const LetterHeader& h : l.headers) bytes += h.name.size() + (h.value ? h.value->size() : 0);
  return bytes;
}

}  // namespace

ReplaySource::ReplaySource(DeadLetterStore& store, StateStore& state, ReplaySpec spec)
    : store_(store), state_(state), spec_(std::move(spec)) {}

// Parked letters block their keys, whoever parked them. Only their keys stay in memory.
Result<void> ReplaySource::open(PartitionListener&) {
  if (spec_.on_poison != OnPoison::park_key) return {};
  LetterFilter parked;
  parked.pipeline = spec_.filter.pipeline;
  parked.target = spec_.filter.target;
  parked.state = LetterState::parked;
  parked.limit = claimed_at_first;
  for (;;) {
    auto page = store_.list(parked);
    if (!page) return std::move(page).failure();
    for (const DeadLetter& l : *page) {
      if (l.key) block({l.pipeline, l.target, l.origin.topic, *l.key}, l.id);
    }
    if (page->size() < parked.limit) return {};
    parked.after = page->back().id;
  }
}

// Claims about what one batch holds. A letter is taken once: a replay goes up the ids.
Result<void> ReplaySource::claim_more(std::size_t room, std::size_t bytes) {
  std::size_t size = claimed_at_first;
  if (claimed_count_ > 0) {
    size = std::max<std::size_t>(1, bytes * claimed_count_ / (claimed_bytes_ + 1));
  }
  LetterFilter filter = spec_.filter;
  filter.limit = std::min(room, size);
  if (spec_.filter.limit != 0) {
    const std::scoped_lock lock(mutex_);
    filter.limit =
        std::min(filter.limit, static_cast<std::size_t>(spec_.filter.limit - counts_.taken));
  }
  if (filter.limit == 0) {
    exhausted_ = true;
    return {};
  }
  auto letters = store_.claim(filter, spec_.id);
  if (!letters) return std::move(letters).failure();
  exhausted_ = letters->empty();
  claimed_count_ = letters->size();
  claimed_bytes_ = 0;
  for (DeadLetter& l : *letters) {
    claimed_bytes_ += bytes_of(l);
    spec_.filter.after = std::max(spec_.filter.after, l.id);
    claimed_.push_back(std::move(l));
  }
  const std::scoped_lock lock(mutex_);
  counts_.taken += claimed_count_;
  return {};
}

// Lowers `room` to what the rate allows now; false: nothing yet. Batches of a twentieth of a second
// or more; what an outage held up is not made up for later.
bool ReplaySource::wait_for_rate(ReadControl& control, std::size_t& room) {
  if (spec_.per_second <= 0) return true;
  constexpr auto patience = Millis{100};
  constexpr double burst_seconds = 1.0;
  const auto now = Monotonic::now();
  if (!started_) started_ = now;
  const auto allowed = [&] {
    const std::chrono::duration<double> since = Monotonic::now() - *started_;
    return since.count() * spec_.per_second - static_cast<double>(read_);
  };
  const double wanted = std::max(1.0, spec_.per_second / 20);
  while (allowed() < wanted && Monotonic::now() < now + patience && !control.stopping()) {
    std::this_thread::sleep_for(Millis{2});
  }
  double most = allowed();
  if (most < wanted) return false;
  if (most > wanted + burst_seconds * spec_.per_second) {
    started_ = Monotonic::now();
    read_ = 0;
    most = wanted;
  }
  room = std::min(room, static_cast<std::size_t>(most));
  return true;
}

Result<ReadOutcome> ReplaySource::read(Batch& batch, const BatchLimits& limits,
                                       ReadControl& control) {
  if (waits_for_each_batch()) {
    // What a letter does to its key must be known before the next one of the key is sent.
    const std::scoped_lock lock(mutex_);
    if (!batches_.empty()) {
      std::this_thread::sleep_for(Millis{1});
      return ReadOutcome::more;
    }
  }
  std::size_t room = limits.records;
  if (!wait_for_rate(control, room)) return ReadOutcome::more;
  Sending sent;
  keys_.clear();
  spans_.clear();
  std::deque<DeadLetter> later;  // a key's next letter waits for the one before it
  while (sent.size() < room && batch.bytes < limits.bytes && !control.stopping()) {
    if (claimed_.empty() && later.empty() && !exhausted_) {
      const auto a_second = static_cast<std::size_t>(spec_.per_second);
      auto claimed = claim_more(std::max(room - sent.size(), a_second), limits.bytes - batch.bytes);
      if (!claimed) return std::move(claimed).failure();
    }
    if (claimed_.empty()) break;
    DeadLetter letter = std::move(claimed_.front());
    claimed_.pop_front();
    auto taken = take(letter, batch, sent);
    if (!taken) return std::move(taken).failure();
    if (!*taken) later.push_back(std::move(letter));
  }
  while (!later.empty()) {
    claimed_.push_front(std::move(later.back()));
    later.pop_back();
  }
  const bool last = exhausted_ && claimed_.empty();
  read_ += sent.size();
  if (!sent.empty()) {
    const std::scoped_lock lock(mutex_);
    batches_.push_back(std::move(sent));
  }
  return last ? ReadOutcome::end : ReadOutcome::more;
}

// Puts one letter into the batch; false: its turn is after this batch.
Result<bool> ReplaySource::take(DeadLetter& letter, Batch& batch, Sending& sent) {
  Sent s;
  s.id = letter.id;
  s.origin = {letter.origin, letter.offset};
  s.pipeline = letter.pipeline;
  s.target = letter.target;
  s.attempts = letter.attempts;
  s.replays = letter.replays;
  if (letter.key) s.key = {letter.pipeline, letter.target, letter.origin.topic, *letter.key};
  if (spec_.on_poison == OnPoison::park_key && s.key) {
    if (keys_.contains(*s.key)) return false;
    const auto blocker = blocked_.find(*s.key);
    if (blocker != blocked_.end() && blocker->second < letter.id) {
      if (auto r = park_behind(s, blocker->second); !r) return std::move(r).failure();
      return true;
    }
    keys_.insert(*s.key);
  }
  const std::uint32_t span = span_for(batch, letter);  // makes the batch one to be committed
  if (auto ready = edited(letter, s); !ready) {
    const std::scoped_lock lock(mutex_);
    failed_[s.origin] = ready.failure().text();
  } else if (!sent_already(s, sent)) {
    add_record(batch, letter, span);
  }
  sent.push_back(std::move(s));
  return true;
}

Result<void> ReplaySource::edited(DeadLetter& letter, Sent& sent) const {
  if (!spec_.edit) return {};
  sent.value = letter.value;
  auto done = spec_.edit(letter);
  if (!done) return std::move(done).failure();
  sent.edited = std::move(done).value();
  return {};
}

bool ReplaySource::sent_already(const Sent& s, const Sending& batch) const {
  if (!spec_.once_a_record) return false;
  const auto same = [&](const Sent& other) { return other.origin == s.origin; };
  return done_.contains(s.origin) || std::any_of(batch.begin(), batch.end(), same);
}

std::uint32_t ReplaySource::span_for(Batch& batch, const DeadLetter& letter) {
  const auto [at, fresh] = spans_.try_emplace(letter.origin, 0);
  if (fresh) at->second = batch.span_of(letter.origin, position_at(letter.offset));
  Span& span = batch.spans[at->second];
  span.next = std::max(span.next, position_after(letter.offset));
  return at->second;
}

void ReplaySource::add_record(Batch& batch, const DeadLetter& letter, std::uint32_t span) {
  Record r;
  if (letter.value) r.value = batch.arena.copy(*letter.value);
  if (letter.key) r.key = batch.arena.copy(*letter.key);
  r.offset = letter.offset;
  r.timestamp_ms = letter.timestamp_ms;
  r.span = span;
  r.header_first = static_cast<std::uint32_t>(batch.headers.size());
  r.header_count = static_cast<std::uint32_t>(letter.headers.size());
  for (const LetterHeader& h : letter.headers) {
    Header header;
    header.name = batch.arena.copy(h.name);
    if (h.value) header.value = batch.arena.copy(*h.value);
    batch.headers.push_back(header);
  }
  batch.bytes += bytes_of(letter);
  batch.records.push_back(r);
}

Result<void> ReplaySource::park_behind(const Sent& letter, std::int64_t blocker) {
  const LetterOutcome outcome{
      .id = letter.id,
      .state = LetterState::parked,
      .outcome = "parked: behind letter " + std::to_string(blocker) + " of the same key",
      .tried = false};
  if (auto r = store_.settle({&outcome, 1}, spec_.id, spec_.who); !r) return r;
  const std::scoped_lock lock(mutex_);
  ++counts_.parked;
  return {};
}

Result<std::vector<TargetMark>> ReplaySource::load_marks() {
  if (spec_.marks.empty()) return std::vector<TargetMark>{};
  return state_.marks(spec_.marks);
}

// Brings the last failure up to date, under the letter's own name and with its own value: the
// pipeline of a replay may be called otherwise and have another target. Batches are written in the
// order they were read, so the letters are of the first one.
Result<void> ReplaySource::put(std::span<const DeadLetter> letters) {
  std::vector<DeadLetter> named(letters.begin(), letters.end());
  {
    const std::scoped_lock lock(mutex_);
    FLOW_CHECK(!batches_.empty(), "a letter failed again that was not sent");
    std::map<Origin, const Sent*> sent;
    for (const Sent& s : batches_.front()) sent.try_emplace(s.origin, &s);
    for (DeadLetter& l : named) {
      const auto at = sent.find({l.origin, l.offset});
      FLOW_CHECK(at != sent.end(), "a letter failed again that was not sent");
      const Sent& s = *at->second;
      l.pipeline = s.pipeline;
      l.target = s.target;
      l.attempts = s.attempts;  // of the run; replays are counted apart
      if (!s.edited.empty()) l.value = s.value;
      failed_[s.origin] = l.error;
    }
  }
  return store_.put(named);
}

void ReplaySource::block(const Key& key, std::int64_t blocker) {
  const auto [at, fresh] = blocked_.try_emplace(key, blocker);
  if (!fresh) at->second = std::min(at->second, blocker);
}

LetterOutcome ReplaySource::outcome_of(const Sent& letter) {
  const std::string edited = letter.edited.empty() ? "" : " (changed: " + letter.edited + ")";
  const auto failure = failed_.find(letter.origin);
  if (failure == failed_.end()) {
    ++counts_.replayed;
    return {.id = letter.id, .state = LetterState::replayed, .outcome = "replayed" + edited};
  }
  const bool keeps_order = spec_.on_poison == OnPoison::park_key;
  const bool parked = keeps_order || letter.replays + 1 >= spec_.attempts_max;
  if (keeps_order && letter.key) block(*letter.key, letter.id);
  ++(parked ? counts_.parked : counts_.failed);
  return {.id = letter.id,
          .state = parked ? LetterState::parked : LetterState::pending,
          .outcome = (parked ? "parked: " : "failed: ") + failure->second + edited};
}

// The loop calls this once for each batch, in the order they were read, when every target has it.
// Called again for the same batch when the state was out of reach.
Result<void> ReplaySource::commit(const Spans&, const std::vector<TargetMark>& marks) {
  if (!spec_.marks.empty() && !marks.empty()) {
    if (auto r = state_.commit_positions(spec_.marks, spec_.id, {}, marks); !r) return r;
  }
  std::vector<LetterOutcome> outcomes;
  ReplayCounts before;
  {
    const std::scoped_lock lock(mutex_);
    FLOW_CHECK(!batches_.empty(), "a batch of letters is committed that was not read");
    before = counts_;
    for (const Sent& s : batches_.front()) outcomes.push_back(outcome_of(s));
  }
  const auto settled = store_.settle(outcomes, spec_.id, spec_.who);
  const std::scoped_lock lock(mutex_);
  if (!settled) {
    counts_ = before;
    return settled;
  }
  bool poisoned = false;
  for (const Sent& s : batches_.front()) {
    const bool failed = failed_.erase(s.origin) > 0;
    if (spec_.once_a_record && !failed) done_.insert(s.origin);
    poisoned = poisoned || failed;
  }
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
  const auto give_back = [&](std::int64_t id, std::string why) {
    outcomes.push_back({.id = id,
                        .state = LetterState::pending,
                        .outcome = "released: " + std::move(why),
                        .tried = false});
  };
  const std::scoped_lock lock(mutex_);
  for (const DeadLetter& l : claimed_) give_back(l.id, "not sent");
  for (const Sending& batch : batches_) {
    for (const Sent& s : batch) give_back(s.id, "not finished");
  }
  claimed_.clear();
  batches_.clear();
  if (outcomes.empty()) return {};
  return store_.settle(outcomes, spec_.id, spec_.who);
}

SourceProgress ReplaySource::progress() const {
  const std::scoped_lock lock(mutex_);
  SourceProgress progress;
  progress.unit = "letters";
  progress.done = counts_.replayed + counts_.failed + counts_.parked;
  if (spec_.filter.limit != 0) progress.total = spec_.filter.limit;
  return progress;
}

ReplayCounts ReplaySource::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

}  // namespace flow
