// What became of the letters that a topic keeps.
#include <map>
#include <utility>

#include "state/letter_query.h"
#include "state/letters.h"
#include "state/run_rows.h"

namespace flow {
namespace {

constexpr const char* progress_table = "flow.dead_letter_topic_progress";

Cells row_of(const std::string& topic, const LetterProgress& p) {
  return {topic,          cell(p.id), p.origin, cell(p.through), std::string(name_of(p.state)),
          cell(p.replays)};
}

// A snapshot of a topic's letters carries the topic in its id, so that it is never read for
// another's.
std::string snapshot_key(const std::string& topic, const std::string& snapshot) {
  return topic + "\n" + snapshot;
}

// Threads: any, one call at a time inside.
class TopicProgress final : public LetterProgressStore {
 public:
  TopicProgress(LetterHome home, std::string topic)
      : home_(std::move(home)), topic_(std::move(topic)), ledger_(progress_table, topic_) {}

  Result<std::vector<LetterProgress>> load() override {
    const std::lock_guard guard(*home_.mutex);
    std::vector<LetterProgress> all;
    auto read =
        read_letters(*home_.session, [&](Statements& s) { return load_in(s, "", {}, all); });
    if (!read) return read.failure();
    return all;
  }

  Result<std::vector<std::int64_t>> claim(std::span<const LetterProgress> letters,
                                          const std::string& replay) override;
  Result<void> settle(std::span<const LetterOutcome> outcomes,
                      std::span<const LetterProgress> letters, const std::string& replay,
                      const std::string& who) override;
  Result<std::vector<LetterAudit>> audit(std::int64_t letter) override;
  Result<std::string> snapshot(std::span<const std::int64_t> letters) override;
  Result<std::vector<std::int64_t>> snapshot_letters(const std::string& snapshot) override;

 private:
  Result<void> load_in(Statements& s, const std::string& narrowed, const Cells& parameters,
                       std::vector<LetterProgress>& all) const;
  Result<void> keep(Statements& s, const std::vector<Cells>& rows, const std::string& when) const;

  LetterHome home_;
  std::string topic_;
  LetterLedger ledger_;
};

// narrowed: a further condition, whose parameters begin at $2.
Result<void> TopicProgress::load_in(Statements& s, const std::string& narrowed,
                                    const Cells& parameters,
                                    std::vector<LetterProgress>& all) const {
  Cells all_parameters{topic_};
  all_parameters.insert(all_parameters.end(), parameters.begin(), parameters.end());
  auto rows = s.run(
      "SELECT p.origin, p.id, p.through,"
      " CASE WHEN c.letter IS NULL THEN p.state ELSE 'replaying' END, p.replays"
      " FROM flow.dead_letter_topic_progress p"
      " LEFT JOIN flow.dead_letter_claims c ON c.store = p.store AND c.letter = p.id"
      " WHERE p.store = $1" +
          narrowed + " ORDER BY p.id",
      all_parameters);
  if (!rows) return rows.failure();
  all.clear();
  for (const Cells& row : *rows) {
    all.push_back({row[0].value_or(""), number_in(row[1]), number_in(row[2]),
                   letter_state_named(row[3].value_or("")).value_or(LetterState::pending),
                   number_in(row[4])});
  }
  return {};
}

Result<void> TopicProgress::keep(Statements& s, const std::vector<Cells>& rows,
                                 const std::string& when) const {
  return insert_rows(s,
                     "INSERT INTO flow.dead_letter_topic_progress AS kept"
                     " (store, id, origin, through, state, replays)",
                     " ON CONFLICT (store, id) DO " + when, rows);
}

Result<std::vector<std::int64_t>> TopicProgress::claim(std::span<const LetterProgress> letters,
                                                       const std::string& replay) {
  const std::lock_guard guard(*home_.mutex);
  std::vector<std::int64_t> taken;
  std::vector<std::int64_t> wanted_ids;
  for (const LetterProgress& wanted : letters) wanted_ids.push_back(wanted.id);
  if (auto ours = home_.locks->confirm(); !ours) return ours.failure();
  auto dead = ledger_.dead_replays(*home_.session, *home_.locks, replay);
  if (!dead) return dead.failure();
  auto claimed = home_.session->write([&](Statements& s) -> Result<void> {
    taken.clear();
    if (auto begun = ledger_.begin_claim(s, *dead); !begun) return begun;
    std::vector<LetterProgress> all;
    auto loaded = load_in(s, " AND " + ids_in("p.id", "$2", s.dialect()),
                          {ids_cell(wanted_ids, s.dialect())}, all);
    if (!loaded) return loaded;
    std::map<std::int64_t, LetterProgress> now;
    for (const LetterProgress& p : all) now[p.id] = p;
    std::vector<Cells> rows;
    for (const LetterProgress& wanted : letters) {
      const auto found = now.find(wanted.id);
      const bool again = found != now.end() && found->second.through < wanted.through &&
                         (found->second.state == LetterState::replayed ||
                          found->second.state == LetterState::discarded);
      if (found != now.end() && found->second.state != LetterState::pending && !again) continue;
      LetterProgress as_pending = wanted;
      as_pending.state = LetterState::pending;
      as_pending.replays = found == now.end() ? 0 : found->second.replays;
      rows.push_back(row_of(topic_, as_pending));
      taken.push_back(wanted.id);
    }
    auto kept = keep(s, rows, "UPDATE SET through = excluded.through, state = excluded.state");
    if (!kept) return kept;
    return ledger_.take(s, taken, replay);
  });
  if (!claimed) return claimed.failure();
  return taken;
}

Result<void> TopicProgress::settle(std::span<const LetterOutcome> outcomes,
                                   std::span<const LetterProgress> letters,
                                   const std::string& replay, const std::string& who) {
  if (outcomes.empty()) return {};
  const std::lock_guard guard(*home_.mutex);
  if (auto ours = home_.locks->confirm(); !ours) return ours;
  std::size_t held = 0;
  auto settled = home_.session->write([&](Statements& s) -> Result<void> {
    std::vector<Cells> rows;
    for (const LetterProgress& letter : letters) rows.push_back(row_of(topic_, letter));
    if (auto kept = keep(s, rows, "NOTHING"); !kept) return kept;
    auto done = ledger_.settle(s, outcomes, replay, who);
    if (!done) return done.failure();
    held = *done;
    return {};
  });
  if (!settled || held == 0) return settled;
  return fenced_letters(held, home_.location);
}

Result<std::vector<LetterAudit>> TopicProgress::audit(std::int64_t letter) {
  const std::lock_guard guard(*home_.mutex);
  std::vector<LetterAudit> story;
  auto read = read_letters(*home_.session, [&](Statements& s) -> Result<void> {
    auto found = ledger_.audit(s, letter);
    if (!found) return found.failure();
    story = std::move(found).value();
    return {};
  });
  if (!read) return read.failure();
  return story;
}

Result<std::string> TopicProgress::snapshot(std::span<const std::int64_t> letters) {
  const std::lock_guard guard(*home_.mutex);
  const std::string id = make_snapshot_id();
  auto made = home_.session->write([&](Statements& s) -> Result<void> {
    auto done = s.run(
        "INSERT INTO flow.dead_letter_snapshots (snapshot, letter) SELECT $1, letter"
        " FROM " +
            ids_from("$2", s.dialect()),
        {snapshot_key(topic_, id), ids_cell({letters.begin(), letters.end()}, s.dialect())});
    if (!done) return done.failure();
    return {};
  });
  if (!made) return made.failure();
  return id;
}

Result<std::vector<std::int64_t>> TopicProgress::snapshot_letters(const std::string& snapshot) {
  const std::lock_guard guard(*home_.mutex);
  std::vector<std::int64_t> ids;
  auto read = read_letters(*home_.session, [&](Statements& s) -> Result<void> {
    auto rows = s.run(
        "SELECT letter FROM flow.dead_letter_snapshots WHERE snapshot = $1"
        " ORDER BY letter",
        {snapshot_key(topic_, snapshot)});
    if (!rows) return rows.failure();
    ids = ids_of(*rows);
    return {};
  });
  if (!read) return read.failure();
  return ids;
}

}  // namespace

std::unique_ptr<LetterProgressStore> make_letter_progress(LetterHome home,
                                                          const std::string& topic) {
  return std::make_unique<TopicProgress>(std::move(home), topic);
}

}  // namespace flow
