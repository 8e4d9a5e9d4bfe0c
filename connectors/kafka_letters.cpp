#include "connectors/kafka_letters.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "connectors/kafka_letter_index.h"
#include "connectors/kafka_letter_writer.h"

namespace flow {
namespace kafka {
namespace {

// What is known of the topic at the start.
struct LetterTopic {
  std::optional<std::string> message_bytes_max;
};

Result<LetterTopic> look_at_topic(const DlqSpec& spec, Log& log) {
  auto shared = std::make_shared<Shared>();
  shared->log = &log;
  auto probe = Client::make(RD_KAFKA_CONSUMER, probe_settings(spec.brokers, spec.properties),
                            shared, letters_where(spec));
  if (!probe) return std::move(probe).failure();
  auto topics = list_topics(**probe);
  if (!topics) return std::move(topics).failure();
  if (std::none_of(topics->begin(), topics->end(),
                   [&](const TopicInfo& t) { return t.name == spec.topic; }))
    return absent_topic(**probe, spec.topic, *topics, "dead_letter_topic");
  const auto cleanup = topic_config(**probe, spec.topic, "cleanup.policy");
  if (cleanup && cleanup->find("compact") != std::string::npos) {
    return Failure{
        .cls = FailureClass::setup,
        .where = letters_where(spec),
        .what = "the topic is compacted: of two letters with one key only the last stays",
        .hint = "set cleanup.policy=delete on it, or name another topic"};
  }
  return LetterTopic{topic_config(**probe, spec.topic, "max.message.bytes")};
}

bool matches(const DeadLetter& l, const LetterFilter& f) {
  const auto is = [](const std::string& wanted, const std::string& text) {
    return wanted.empty() || wanted == text;
  };
  return l.id > f.after && is(f.pipeline, l.pipeline) && is(f.topic, l.origin.topic) &&
         is(f.target, l.target) && is(f.stage, l.stage) && (!f.cls || *f.cls == l.cls) &&
         (!f.key || f.key == l.key) && (!f.since_ms || l.last_failed_ms >= *f.since_ms) &&
         (!f.until_ms || l.last_failed_ms < *f.until_ms) && (!f.state || *f.state == l.state);
}

// A snapshot of both stores: "TABLE+TOPIC".
constexpr char both = '+';

class KafkaLetters final : public DeadLetterStore {
 public:
  KafkaLetters(const DlqSpec& spec, const LetterTopic& topic, Log& log,
               std::unique_ptr<DeadLetterStore> table,
               std::unique_ptr<LetterProgressStore> progress)
      : spec_(spec),
        writer_(spec_, topic.message_bytes_max, log),
        index_(spec_, log),
        table_(std::move(table)),
        progress_(std::move(progress)) {}

  Result<void> put(std::span<const DeadLetter> letters) override;
  Result<std::vector<DeadLetter>> list(const LetterFilter& filter) override;
  Result<std::vector<LetterGroup>> groups(const LetterFilter& filter) override;
  Result<std::uint64_t> count(const LetterFilter& filter) override;
  Result<std::vector<LetterAudit>> audit(std::int64_t letter) override;
  Result<std::string> snapshot(const LetterFilter& filter) override;
  Result<std::vector<DeadLetter>> claim(const LetterFilter& filter,
                                        const std::string& replay) override;
  Result<void> settle(std::span<const LetterOutcome> outcomes, const std::string& replay,
                      const std::string& who) override;
  Result<std::uint64_t> purge(const LetterFilter& filter) override;

 private:
  // The filter for the table's own letters; nullopt: it can hold none of those wanted.
  static std::optional<LetterFilter> for_table(const LetterFilter& filter);
  // Those of the topic, as the state knows them now, up to `limit` (0: all).
  Result<std::vector<const IndexedLetter*>> chosen(const LetterFilter& filter, std::size_t limit);
  Result<void> learn_states();
  Result<void> put_oversize(std::span<const DeadLetter> letters,
                            const std::vector<std::size_t>& places);

  DlqSpec spec_;
  std::mutex mutex_;
  LetterWriter writer_;
  LetterIndex index_;
  std::unique_ptr<DeadLetterStore> table_;
  std::unique_ptr<LetterProgressStore> progress_;
};

// ---- writing
// ---------------------------------------------------------------------------------------

Result<void> KafkaLetters::put(std::span<const DeadLetter> letters) {
  if (letters.empty()) return {};
  const std::lock_guard guard(mutex_);
  std::vector<std::size_t> oversize;
  auto sent = writer_.send(letters, LetterBody::whole, oversize);
  if (!sent || oversize.empty()) return sent;
  return put_oversize(letters, oversize);
}

Result<void> KafkaLetters::put_oversize(std::span<const DeadLetter> letters,
                                        const std::vector<std::size_t>& places) {
  std::vector<DeadLetter> large;
  for (const std::size_t place : places) large.push_back(letters[place]);
  if (spec_.oversize == DlqSpec::Oversize::fail) {
    const DeadLetter& first = large.front();
    return Failure{.cls = FailureClass::setup,
                   .code = "MSG_SIZE_TOO_LARGE",
                   .where = first.origin.text() + "@" + std::to_string(first.offset.value) +
                            " to " + letters_where(spec_),
                   .what = "the dead letter is too large for the topic",
                   .hint =
                       "raise max.message.bytes of the topic, or write dlq_oversize: "
                       "truncate_to_table"};
  }
  if (auto kept = table_->put(large); !kept) return kept;
  std::vector<std::size_t> beyond;  // the key or the headers alone are too large: the table has all
  return writer_.send(large, LetterBody::notice, beyond);
}

// ---- reading
// ---------------------------------------------------------------------------------------

std::optional<LetterFilter> KafkaLetters::for_table(const LetterFilter& filter) {
  LetterFilter table = filter;
  std::erase_if(table.ids, [](std::int64_t id) { return id >= first_topic_letter; });
  if (table.ids.empty() && !filter.ids.empty()) return std::nullopt;
  table.snapshot = filter.snapshot.substr(0, filter.snapshot.find(both));
  return table;
}

// The state's word on each letter: its id, where it stands, how often it was tried.
Result<void> KafkaLetters::learn_states() {
  auto known = progress_->load();
  if (!known) return std::move(known).failure();
  std::map<std::string_view, const LetterProgress*> by_origin;
  for (const LetterProgress& p : *known) by_origin[p.origin] = &p;
  for (IndexedLetter& entry : index_.letters()) {
    DeadLetter& letter = entry.letter;
    const auto found = by_origin.find(origin_text(letter));
    letter.id = found == by_origin.end() ? entry.at : found->second->id;
    letter.state = LetterState::pending;
    letter.replays = 0;
    if (found == by_origin.end()) continue;
    const LetterProgress& p = *found->second;
    letter.replays = p.replays;
    const bool settled = p.state == LetterState::replayed || p.state == LetterState::discarded;
    letter.state = settled && entry.through > p.through ? LetterState::pending : p.state;
  }
  return {};
}

Result<std::vector<const IndexedLetter*>> KafkaLetters::chosen(const LetterFilter& filter,
                                                               std::size_t limit) {
  if (auto r = index_.refresh(); !r) return std::move(r).failure();
  if (auto r = learn_states(); !r) return std::move(r).failure();
  std::optional<std::set<std::int64_t>> among;
  if (!filter.ids.empty()) among.emplace(filter.ids.begin(), filter.ids.end());
  std::set<std::int64_t> frozen;
  if (!filter.snapshot.empty()) {
    const auto plus = filter.snapshot.find(both);
    auto ids = progress_->snapshot_letters(
        plus == std::string::npos ? filter.snapshot : filter.snapshot.substr(plus + 1));
    if (!ids) return std::move(ids).failure();
    frozen.insert(ids->begin(), ids->end());
  }
  std::vector<const IndexedLetter*> found;
  for (const IndexedLetter& entry : index_.letters()) {
    const DeadLetter& letter = entry.letter;
    if (!matches(letter, filter) || (among && !among->contains(letter.id))) continue;
    if (!filter.snapshot.empty() && !frozen.contains(letter.id)) continue;
    found.push_back(&entry);
  }
  std::sort(found.begin(), found.end(), [](const IndexedLetter* a, const IndexedLetter* b) {
    return a->letter.id < b->letter.id;
  });
  if (limit != 0 && found.size() > limit) found.resize(limit);
  return found;
}

// How many of `limit` are left after `taken`; nullopt: none.
std::optional<std::size_t> left_of(std::size_t limit, std::size_t taken) {
  if (limit == 0) return 0;
  return taken < limit ? std::optional(limit - taken) : std::nullopt;
}

Result<std::vector<DeadLetter>> KafkaLetters::list(const LetterFilter& filter) {
  const std::lock_guard guard(mutex_);
  std::vector<DeadLetter> letters;
  if (const auto table = for_table(filter)) {
    auto kept = table_->list(*table);
    if (!kept) return kept;
    letters = std::move(*kept);
  }
  const auto left = left_of(filter.limit, letters.size());
  if (!left) return letters;
  auto entries = chosen(filter, *left);
  if (!entries) return std::move(entries).failure();
  auto whole = index_.fetch(*entries);
  if (!whole) return whole;
  std::move(whole->begin(), whole->end(), std::back_inserter(letters));
  return letters;
}

Result<std::vector<LetterGroup>> KafkaLetters::groups(const LetterFilter& filter) {
  const std::lock_guard guard(mutex_);
  using Key = std::tuple<std::string, std::string, std::string, std::string, FailureClass,
                         std::string, LetterState>;
  std::map<Key, LetterGroup> groups;
  const auto add = [&](const LetterGroup& g) {
    const Key key{g.pipeline, g.topic, g.target, g.stage, g.cls, g.code, g.state};
    const auto [at, fresh] = groups.try_emplace(key, g);
    if (fresh) return;
    at->second.count += g.count;
    at->second.first_ms = std::min(at->second.first_ms, g.first_ms);
    at->second.last_ms = std::max(at->second.last_ms, g.last_ms);
  };
  if (const auto table = for_table(filter)) {
    auto kept = table_->groups(*table);
    if (!kept) return kept;
    std::for_each(kept->begin(), kept->end(), add);
  }
  auto entries = chosen(filter, 0);
  if (!entries) return std::move(entries).failure();
  for (const IndexedLetter* entry : *entries) {
    const DeadLetter& l = entry->letter;
    add({l.pipeline, l.origin.topic, l.target, l.stage, l.code, l.cls, l.state, 1,
         l.first_failed_ms, l.last_failed_ms});
  }
  std::vector<LetterGroup> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

Result<std::uint64_t> KafkaLetters::count(const LetterFilter& filter) {
  const std::lock_guard guard(mutex_);
  std::uint64_t count = 0;
  if (const auto table = for_table(filter)) {
    auto kept = table_->count(*table);
    if (!kept) return kept;
    count = *kept;
  }
  auto entries = chosen(filter, 0);
  if (!entries) return std::move(entries).failure();
  count += entries->size();
  return filter.limit == 0 ? count : std::min<std::uint64_t>(count, filter.limit);
}

Result<std::vector<LetterAudit>> KafkaLetters::audit(std::int64_t letter) {
  const std::lock_guard guard(mutex_);
  return letter < first_topic_letter ? table_->audit(letter) : progress_->audit(letter);
}

// ---- replay
// ----------------------------------------------------------------------------------------

Result<std::string> KafkaLetters::snapshot(const LetterFilter& filter) {
  const std::lock_guard guard(mutex_);
  LetterFilter none;
  none.ids = {0};
  const LetterFilter table = for_table(filter).value_or(none);
  auto kept = table_->snapshot(table);
  if (!kept) return kept;
  auto in_table = table_->count(table);
  if (!in_table) return std::move(in_table).failure();
  std::vector<std::int64_t> ids;
  if (const auto left = left_of(filter.limit, *in_table)) {
    auto entries = chosen(filter, *left);
    if (!entries) return std::move(entries).failure();
    for (const IndexedLetter* entry : *entries) ids.push_back(entry->letter.id);
  }
  auto in_topic = progress_->snapshot(ids);
  if (!in_topic) return in_topic;
  return *kept + both + *in_topic;
}

Result<std::vector<DeadLetter>> KafkaLetters::claim(const LetterFilter& filter,
                                                    const std::string& replay) {
  const std::lock_guard guard(mutex_);
  std::vector<DeadLetter> letters;
  if (filter.state && *filter.state != LetterState::pending) return letters;
  if (const auto table = for_table(filter)) {
    auto kept = table_->claim(*table, replay);
    if (!kept) return kept;
    letters = std::move(*kept);
  }
  const auto left = left_of(filter.limit, letters.size());
  if (!left) return letters;
  // What a dead replay held is free again once the state has looked; it looks at each claim.
  if (auto looked = progress_->claim({}, replay); !looked) return std::move(looked).failure();
  LetterFilter pending = filter;
  pending.state = LetterState::pending;
  auto entries = chosen(pending, *left);
  if (!entries) return std::move(entries).failure();
  std::vector<LetterProgress> wanted;
  for (const IndexedLetter* e : *entries) {
    wanted.push_back({origin_text(e->letter), e->letter.id, e->through});
  }
  auto taken = progress_->claim(wanted, replay);
  if (!taken) return std::move(taken).failure();
  const std::set<std::int64_t> ours(taken->begin(), taken->end());
  std::erase_if(*entries, [&](const IndexedLetter* e) { return !ours.contains(e->letter.id); });
  auto whole = index_.fetch(*entries);
  if (!whole) return whole;
  for (DeadLetter& letter : *whole) {
    letter.state = LetterState::replaying;
    letters.push_back(std::move(letter));
  }
  return letters;
}

Result<void> KafkaLetters::settle(std::span<const LetterOutcome> outcomes,
                                  const std::string& replay, const std::string& who) {
  const std::lock_guard guard(mutex_);
  std::vector<LetterOutcome> of_table, of_topic;
  std::set<std::int64_t> ids;
  for (const LetterOutcome& outcome : outcomes) {
    const bool in_topic = outcome.id >= first_topic_letter;
    (in_topic ? of_topic : of_table).push_back(outcome);
    if (in_topic) ids.insert(outcome.id);
  }
  if (auto settled = table_->settle(of_table, replay, who); !settled) return settled;
  if (of_topic.empty()) return {};
  if (index_.letters().empty()) {  // settled by hand: nothing was listed before
    if (auto r = chosen({}, 0); !r) return std::move(r).failure();
  }
  std::vector<LetterProgress> known;
  for (const IndexedLetter& e : index_.letters()) {
    if (ids.contains(e.letter.id)) known.push_back({origin_text(e.letter), e.letter.id, e.through});
  }
  return progress_->settle(of_topic, known, replay, who);
}

Result<std::uint64_t> KafkaLetters::purge(const LetterFilter& filter) {
  const std::lock_guard guard(mutex_);
  const auto table = for_table(filter);
  return table ? table_->purge(*table) : Result<std::uint64_t>(std::uint64_t{0});
}

}  // namespace
}  // namespace kafka

Result<void> check_letter_topic(const Context& context) {
  auto topic = kafka::look_at_topic(context.pipeline->dlq, *context.log);
  if (!topic) return std::move(topic).failure();
  return {};
}

Result<std::unique_ptr<DeadLetterStore>> make_kafka_letters(const Context& context,
                                                            StateStore& state) {
  const DlqSpec& spec = context.pipeline->dlq;
  auto topic = kafka::look_at_topic(spec, *context.log);
  if (!topic) return std::move(topic).failure();
  auto table = state.dead_letters();
  if (!table) return std::move(table).failure();
  auto progress = state.letter_progress(spec.topic);
  if (!progress) return std::move(progress).failure();
  return std::unique_ptr<DeadLetterStore>(std::make_unique<kafka::KafkaLetters>(
      spec, *topic, *context.log, std::move(*table), std::move(*progress)));
}

}  // namespace flow
