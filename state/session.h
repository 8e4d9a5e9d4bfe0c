#pragma once
// What a database must offer to be a state: statements in a transaction, and locks. Two of each:
// SQLite with file locks, Postgres with advisory locks. The tables are the same in both, in a
// schema named `flow`.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dead_letter_sql.h"
#include "core/state.h"

namespace flow {

// Rows as text, null as nullopt: history and positions are few.
using Cell = std::optional<std::string>;
using Cells = std::vector<Cell>;
using Table = std::vector<Cells>;

// Runs one statement; parameters are $1, $2, ... and always bound.
class Statements {
 public:
  virtual ~Statements() = default;
  virtual Result<Table> run(const std::string& sql, const Cells& parameters = {}) = 0;
  virtual SqlDialect dialect() const = 0;
  // Writes the letters, each of which must be there once only (distinct_letters).
  virtual Result<void> store_letters(std::span<const DeadLetter* const> letters) = 0;
};

// Threads: one at a time. Durable: write() returns ok when a crash cannot undo it. Errors: a
// failure of `work` rolls back and is returned; a lost connection or a busy file is transient, and
// `work` may then have run more than once, committed at most once.
class Session {
 public:
  using Work = std::function<Result<void>(Statements&)>;
  virtual ~Session() = default;
  // One snapshot. A read-only session on a state that does not exist leaves `work` out.
  virtual Result<void> read(const Work& work) = 0;
  virtual Result<void> write(const Work& work) = 0;
};

// Named locks that die with their holder. Threads: any.
class Locks {
 public:
  virtual ~Locks() = default;
  virtual Result<std::unique_ptr<Lock>> take(const std::string& name, Millis wait) = 0;
  virtual Result<bool> held(const std::string& name) = 0;  // by anybody; takes nothing
  virtual Result<void> confirm() = 0;  // every lock taken here is still ours, else class fenced
};

// What an opened state consists of.
struct StateParts {
  std::string id;  // empty: does not exist
  std::string location;
  StateAccess access = StateAccess::read_write;
  std::unique_ptr<Session> session;
  std::unique_ptr<Locks> locks;
};

Result<StateParts> open_sqlite_state(const std::string& url, StateAccess access, Log& log);
Result<StateParts> open_postgres_state(const std::string& url, StateAccess access);

}  // namespace flow
