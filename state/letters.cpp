#include "state/letters.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "state/letter_query.h"
#include "state/run_rows.h"
#include "state/schema.h"

namespace flow {
namespace {

constexpr const char* letters_table = "flow.dead_letters";

// Threads: any, one call at a time inside.
class LetterTable final : public DeadLetterStore {
 public:
  explicit LetterTable(LetterHome home) : home_(std::move(home)), ledger_(letters_table, "") {}

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
  Result<std::vector<LetterGroup>> groups_in(Statements& s, const LetterFilter& filter) const;

  LetterHome home_;
  LetterLedger ledger_;
};

bool alike(const LetterGroup& a, const LetterGroup& b) {
  const auto all = [](const LetterGroup& g) {
    return std::tie(g.pipeline, g.topic, g.target, g.stage, g.code, g.cls, g.state);
  };
  return all(a) == all(b);
}

// Ids of the letters of `filter`, the first ones up to its limit.
std::string select_ids(const LetterFilter& filter, const LetterWhere& where,
                       std::string_view index = "") {
  return "SELECT l.id FROM flow.dead_letters l" + std::string(index) + where.text +
         " ORDER BY l.id" + limit_of(filter);
}

Result<void> LetterTable::put(std::span<const DeadLetter> letters) {
  if (letters.empty()) return {};
  const std::lock_guard guard(*home_.mutex);
  if (auto ours = home_.locks->confirm(); !ours) return ours;
  const auto distinct = distinct_letters(letters);
  return home_.session->write([&](Statements& s) { return s.store_letters(distinct); });
}

Result<std::vector<DeadLetter>> LetterTable::list(const LetterFilter& filter) {
  const std::lock_guard guard(*home_.mutex);
  std::vector<DeadLetter> letters;
  auto read = read_letters(*home_.session, [&](Statements& s) -> Result<void> {
    const LetterWhere where = where_of(filter, s.dialect());
    // The bytes of those that are given are read, and no others.
    const std::string which =
        filter.limit == 0 ? where.text : " WHERE l.id IN (" + select_ids(filter, where) + ")";
    auto rows = s.run(select_letters(s.dialect(), LettersAre::any) + which + " ORDER BY l.id",
                      where.parameters);
    if (!rows) return rows.failure();
    letters = letters_of(*rows, s.dialect());
    return {};
  });
  if (!read) return read.failure();
  return letters;
}

Result<std::vector<LetterGroup>> LetterTable::groups(const LetterFilter& filter) {
  const std::lock_guard guard(*home_.mutex);
  std::vector<LetterGroup> groups;
  auto read = read_letters(*home_.session, [&](Statements& s) -> Result<void> {
    auto found = groups_in(s, filter);
    if (!found) return found.failure();
    groups = std::move(found).value();
    return {};
  });
  if (!read) return read.failure();
  return groups;
}

// Counted by state as the table has it, off an index alone; then what replays hold is told apart.
Result<std::vector<LetterGroup>> LetterTable::groups_in(Statements& s,
                                                        const LetterFilter& filter) const {
  const auto wanted = [&](LetterState state) { return !filter.state || *filter.state == state; };
  LetterFilter in_table = filter;
  const bool held_only = filter.state == LetterState::replaying;
  in_table.state.reset();
  LetterWhere where = where_of(in_table, s.dialect());
  auto held = s.run(select_groups(where, GroupsOf::claimed), where.parameters);
  if (!held) return held.failure();
  std::vector<LetterGroup> claimed = groups_of(*held);
  if (filter.state && !held_only) {
    where.text += (where.text.empty() ? " WHERE " : " AND ") + std::string("l.state = '") +
                  std::string(name_of(*filter.state)) + "'";
  }
  std::vector<LetterGroup> groups;
  if (!held_only) {
    auto rows = s.run(select_groups(where, GroupsOf::all), where.parameters);
    if (!rows) return rows.failure();
    groups = groups_of(*rows);
  }
  for (LetterGroup& part : claimed) {
    for (LetterGroup& whole : groups) {
      if (alike(whole, part)) whole.count -= part.count;
    }
    part.state = LetterState::replaying;
    if (wanted(LetterState::replaying)) groups.push_back(part);
  }
  std::erase_if(groups, [](const LetterGroup& g) { return g.count == 0; });
  return groups;
}

Result<std::uint64_t> LetterTable::count(const LetterFilter& filter) {
  const std::lock_guard guard(*home_.mutex);
  std::uint64_t count = 0;
  auto read = read_letters(*home_.session, [&](Statements& s) -> Result<void> {
    const LetterWhere where = where_of(filter, s.dialect());
    auto rows = s.run("SELECT count(*) FROM flow.dead_letters l" + where.text, where.parameters);
    if (!rows) return rows.failure();
    count = static_cast<std::uint64_t>(number_in((*rows)[0][0]));
    return {};
  });
  if (!read) return read.failure();
  return filter.limit == 0 ? count : std::min<std::uint64_t>(count, filter.limit);
}

Result<std::vector<LetterAudit>> LetterTable::audit(std::int64_t letter) {
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

Result<std::string> LetterTable::snapshot(const LetterFilter& filter) {
  const std::lock_guard guard(*home_.mutex);
  const std::string id = make_snapshot_id();
  auto made = home_.session->write([&](Statements& s) -> Result<void> {
    LetterWhere where = where_of(filter, s.dialect());
    const std::string mark = where.next_parameter();
    where.parameters.push_back(id);
    auto done = s.run("INSERT INTO flow.dead_letter_snapshots (snapshot, letter) SELECT " + mark +
                          ", chosen.id FROM (" + select_ids(filter, where) + ") AS chosen",
                      where.parameters);
    if (!done) return done.failure();
    return {};
  });
  if (!made) return made.failure();
  return id;
}

Result<std::vector<DeadLetter>> LetterTable::claim(const LetterFilter& filter,
                                                   const std::string& replay) {
  const std::lock_guard guard(*home_.mutex);
  std::vector<DeadLetter> letters;
  if (filter.state && *filter.state != LetterState::pending) return letters;
  LetterFilter pending = filter;
  pending.state = LetterState::pending;
  if (auto ours = home_.locks->confirm(); !ours) return ours.failure();
  auto dead = ledger_.dead_replays(*home_.session, *home_.locks, replay);
  if (!dead) return dead.failure();
  auto claimed = home_.session->write([&](Statements& s) -> Result<void> {
    if (auto begun = ledger_.begin_claim(s, *dead); !begun) return begun;
    const LetterWhere where = where_of(pending, s.dialect());
    // By the pending ones in their order: what was replayed before costs nothing again.
    const bool told = s.dialect() == SqlDialect::sqlite && pending.ids.empty();
    auto ids = s.run(select_ids(pending, where, told ? " INDEXED BY dead_letters_pending" : ""),
                     where.parameters);
    if (!ids) return ids.failure();
    const auto chosen = ids_of(*ids);
    if (auto taken = ledger_.take(s, chosen, replay); !taken) return taken;
    auto rows = s.run(select_letters(s.dialect(), LettersAre::claimed) + " WHERE " +
                          ids_in("l.id", "$1", s.dialect()) + " ORDER BY l.id",
                      {ids_cell(chosen, s.dialect())});
    if (!rows) return rows.failure();
    letters = letters_of(*rows, s.dialect());
    return {};
  });
  if (!claimed) return claimed.failure();
  return letters;
}

Result<void> LetterTable::settle(std::span<const LetterOutcome> outcomes, const std::string& replay,
                                 const std::string& who) {
  if (outcomes.empty()) return {};
  const std::lock_guard guard(*home_.mutex);
  if (auto ours = home_.locks->confirm(); !ours) return ours;
  std::size_t held = 0;
  auto settled = home_.session->write([&](Statements& s) -> Result<void> {
    auto done = ledger_.settle(s, outcomes, replay, who);
    if (!done) return done.failure();
    held = *done;
    return {};
  });
  if (!settled || held == 0) return settled;
  return fenced_letters(held, home_.location);
}

Result<std::uint64_t> LetterTable::purge(const LetterFilter& filter) {
  const std::lock_guard guard(*home_.mutex);
  std::uint64_t count = 0;
  auto purged = home_.session->write([&](Statements& s) -> Result<void> {
    if (auto turn = ledger_.begin_claim(s, {}); !turn) return turn;
    LetterWhere where = where_of(filter, s.dialect());
    where.text +=
        std::string(where.text.empty() ? " WHERE NOT " : " AND NOT ") + claimed("l.id", own_store);
    auto rows = s.run(select_ids(filter, where), where.parameters);
    if (!rows) return rows.failure();
    const auto ids = ids_of(*rows);
    count = ids.size();
    const Cell list = ids_cell(ids, s.dialect());
    for (const char* from :
         {"dead_letter_snapshots WHERE letter", "dead_letter_records WHERE letter",
          "dead_letter_audit WHERE store = '' AND letter", "dead_letters WHERE id"}) {
      auto gone = s.run("DELETE FROM flow." + ids_in(from, "$1", s.dialect()), {list});
      if (!gone) return gone.failure();
    }
    return {};
  });
  if (!purged) return purged.failure();
  return count;
}

}  // namespace

Result<void> read_letters(Session& session, const Session::Work& work) {
  return session.read([&](Statements& s) -> Result<void> {
    auto meta = s.run("SELECT schema_version FROM flow.meta");
    if (!meta) return meta.failure();
    const bool older = meta->empty() || number_in((*meta)[0][0]) < dead_letters_version;
    return older ? Result<void>() : work(s);
  });
}

std::unique_ptr<DeadLetterStore> make_letter_table(LetterHome home) {
  return std::make_unique<LetterTable>(std::move(home));
}

}  // namespace flow
