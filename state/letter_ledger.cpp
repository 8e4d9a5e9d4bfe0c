#include "state/letter_ledger.h"

#include <map>
#include <set>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "core/clock.h"
#include "state/letter_query.h"
#include "state/run_rows.h"

namespace flow {
namespace {

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

// What was done, from the state that the letter went to.
std::string_view deed_of(LetterState state) {
  switch (state) {
    case LetterState::replayed: return "replay";
    case LetterState::pending: return "release";
    case LetterState::parked: return "park";
    case LetterState::discarded: return "discard";
    case LetterState::replaying: return "claim";
  }
  return "replay";
}

}  // namespace

std::string LetterLedger::store_literal() const {
  std::string quoted = "'";
  for (const char c : store_) quoted.append(c == '\'' ? 2 : 1, c);
  return quoted + "'";
}

// The table of a topic's letters holds those of other topics too.
std::string LetterLedger::own_rows() const {
  return store_.empty() ? "" : " AND store = " + store_literal();
}

Result<std::vector<std::string>> LetterLedger::dead_replays(Session& session, Locks& locks,
                                                            const std::string& replay) const {
  std::vector<std::string> holders;
  auto read = session.read([&](Statements& s) -> Result<void> {
    auto rows = s.run(
        "SELECT DISTINCT replay FROM flow.dead_letter_claims WHERE store = $1 AND replay <> $2",
        {store_, replay});
    if (!rows) return rows.failure();
    holders.clear();
    for (const Cells& row : *rows) holders.push_back(row[0].value_or(""));
    return {};
  });
  if (!read) return read.failure();
  std::vector<std::string> dead;
  for (const std::string& holder : holders) {
    auto alive = locks.held(replay_lock_name(holder));
    if (!alive) return alive.failure();
    if (!*alive) dead.push_back(holder);
  }
  return dead;
}

Result<void> LetterLedger::begin_claim(Statements& s, const std::vector<std::string>& dead) const {
  // The one row of the state is the turnstile of all who claim.
  if (auto turn = s.run("UPDATE flow.meta SET one = one"); !turn) return turn.failure();
  for (const std::string& holder : dead) {
    auto freed = s.run(
        "DELETE FROM flow.dead_letter_claims WHERE store = $1 AND replay = $2 RETURNING letter",
        {store_, holder});
    if (!freed) return freed.failure();
    const auto ids = ids_of(*freed);
    if (auto counted = count_attempt(s, ids); !counted) return counted;
    auto noted = note(s, ids, {holder, "", "release", "its replay was interrupted"});
    if (!noted) return noted;
  }
  return {};
}

Result<void> LetterLedger::count_attempt(Statements& s,
                                         const std::vector<std::int64_t>& ids) const {
  auto counted = s.run("UPDATE " + table_ + " SET replays = replays + 1 WHERE " +
                           ids_in("id", "$1", s.dialect()) + own_rows(),
                       {ids_cell(ids, s.dialect())});
  if (!counted) return counted.failure();
  return {};
}

Result<void> LetterLedger::take(Statements& s, const std::vector<std::int64_t>& ids,
                                const std::string& replay) const {
  auto taken = s.run(
      "INSERT INTO flow.dead_letter_claims (store, letter, replay) SELECT $1, letter, $2 FROM " +
          ids_from("$3", s.dialect()),
      {store_, replay, ids_cell(ids, s.dialect())});
  if (!taken) return taken.failure();
  return {};
}

Result<std::size_t> LetterLedger::settle(Statements& s, std::span<const LetterOutcome> outcomes,
                                         const std::string& replay, const std::string& who) const {
  using Alike = std::tuple<LetterState, bool, std::string>;
  std::map<Alike, std::vector<std::int64_t>> alike;
  for (const LetterOutcome& o : outcomes) {
    alike[{o.state, o.tried && !replay.empty(), o.outcome}].push_back(o.id);
  }
  std::size_t held = 0;
  for (const auto& [what, ids] : alike) {
    const auto& [state, tried, outcome] = what;
    const Cell list = ids_cell(ids, s.dialect());
    const std::string others =
        "FROM flow.dead_letter_claims c WHERE c.store = " + store_literal() + " AND c.replay <> $1";
    auto done = s.run("UPDATE " + table_ + " SET state = '" + std::string(name_of(state)) + "'" +
                          (tried ? ", replays = replays + 1" : "") + " WHERE " +
                          ids_in("id", "$2", s.dialect()) + own_rows() +
                          " AND NOT EXISTS (SELECT 1 " + others +
                          " AND c.letter = id)"
                          " RETURNING id",
                      {replay, list});
    if (!done) return done.failure();
    const auto settled = ids_of(*done);
    auto given = s.run("DELETE FROM flow.dead_letter_claims WHERE store = $1 AND " +
                           ids_in("letter", "$2", s.dialect()) + " AND replay = $3",
                       {store_, list, replay});
    if (!given) return given.failure();
    auto noted = note(s, settled, {replay, who, std::string(deed_of(state)), outcome});
    if (!noted) return noted.failure();
    if (settled.size() == std::set(ids.begin(), ids.end()).size()) continue;
    auto counted =
        s.run("SELECT count(*) " + others + " AND " + ids_in("c.letter", "$2", s.dialect()),
              {replay, list});
    if (!counted) return counted.failure();
    held += static_cast<std::size_t>(number_in((*counted)[0][0]));
  }
  return held;
}

Result<void> LetterLedger::note(Statements& s, const std::vector<std::int64_t>& ids,
                                const Entry& entry) const {
  if (ids.empty()) return {};
  auto noted = s.run(
      "INSERT INTO flow.dead_letter_audit (store, letter, at_ms, replay, who, host, what, outcome)"
      " SELECT $1, letter, " +
          std::to_string(wall_ms()) + ", $2, $3, $4, $5, $6 FROM " + ids_from("$7", s.dialect()),
      {store_, entry.replay, storable_text(entry.who), host_name(), entry.what,
       storable_text(entry.outcome), ids_cell(ids, s.dialect())});
  if (!noted) return noted.failure();
  return {};
}

Result<std::vector<LetterAudit>> LetterLedger::audit(Statements& s, std::int64_t letter) const {
  auto rows = s.run(
      "SELECT replay, who, host, what, outcome, at_ms FROM flow.dead_letter_audit"
      " WHERE letter = $1 AND store = $2 ORDER BY id",
      {cell(letter), store_});
  if (!rows) return rows.failure();
  std::vector<LetterAudit> story;
  for (const Cells& row : *rows) {
    const auto text = [&](std::size_t at) { return row[at].value_or(""); };
    story.push_back({letter, text(0), text(1), text(2), text(3), text(4), number_in(row[5])});
  }
  return story;
}

std::string make_snapshot_id() { return "s-" + make_run_id(wall_ms()); }

Failure fenced_letters(std::size_t count, const std::string& where) {
  return {.cls = FailureClass::fenced,
          .where = where,
          .what = std::to_string(count) + " of the dead letters are held by another replay",
          .hint = "wait until it has ended, or stop it: flow dlq list --status replaying"};
}

}  // namespace flow
