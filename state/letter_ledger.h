#pragma once
// Claims, outcomes and story of dead letters, the same for those in the state's own table and for
// those in a topic.
#include <string>
#include <vector>

#include "state/session.h"

namespace flow {

// Shape: works on one table with columns id, state and replays. store: empty for the
// state's own letters, else the topic. All but dead_replays() inside a transaction of the caller.
class LetterLedger {
 public:
  LetterLedger(std::string table, std::string store)
      : table_(std::move(table)), store_(std::move(store)) {}

  // Replays other than this one that hold letters and whose lock is free.
  Result<std::vector<std::string>> dead_replays(Session& session, Locks& locks,
                                                const std::string& replay) const;
  // Makes claims take turns until the transaction ends, and sets free what the dead held.
  Result<void> begin_claim(Statements& s, const std::vector<std::string>& dead) const;
  Result<void> take(Statements& s, const std::vector<std::int64_t>& ids,
                    const std::string& replay) const;
  // Settles those that are free or held by this replay; gives how many another replay holds.
  Result<std::size_t> settle(Statements& s, std::span<const LetterOutcome> outcomes,
                             const std::string& replay, const std::string& who) const;
  Result<std::vector<LetterAudit>> audit(Statements& s, std::int64_t letter) const;

 private:
  struct Entry {
    std::string replay, who, what, outcome;
  };
  std::string store_literal() const;
  std::string own_rows() const;  // " AND store = '...'"
  Result<void> count_attempt(Statements& s, const std::vector<std::int64_t>& ids) const;
  Result<void> note(Statements& s, const std::vector<std::int64_t>& ids, const Entry& entry) const;

  std::string table_;
  std::string store_;
};

// A new id of a snapshot, sortable by time.
std::string make_snapshot_id();
Failure fenced_letters(std::size_t count, const std::string& where);

}  // namespace flow
