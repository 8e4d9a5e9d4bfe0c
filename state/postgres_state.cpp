// Opens a state in Postgres: schema `flow` of the database that the URL names, shared by any number
// of hosts.
#include <utility>

#include "core/mask.h"
#include "state/postgres_connection.h"
#include "state/postgres_locks.h"
#include "state/schema.h"
#include "state/session.h"

namespace flow {
namespace {

// Makes two processes that open a new state at once take turns; any number that nobody else uses.
constexpr const char* migration_lock = "SELECT pg_advisory_xact_lock(7381237310019461227)";

// Connects when needed, and again after a connection was lost: the call that meets the loss fails
// as transient.
class PostgresSession final : public Session {
 public:
  PostgresSession(std::string url, StateAccess access) : url_(std::move(url)), access_(access) {}

  Result<void> read(const Work& work) override {
    if (empty_) return {};
    return transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work);
  }

  Result<void> write(const Work& work) override {
    if (access_ == StateAccess::read_only) {
      return postgres_state_failure("25006", "the state was opened for reading only", url_);
    }
    return transaction("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", work);
  }

  void set_empty() { empty_ = true; }

 private:
  Result<void> transaction(const char* begin, const Work& work) {
    if (connection_ == nullptr) {
      auto connected = PostgresConnection::connect(url_);
      if (!connected) return connected.failure();
      connection_ = std::move(connected).value();
    }
    auto done = in_transaction(begin, work);
    if (!done && connection_ != nullptr && connection_->broken()) connection_.reset();
    return done;
  }

  Result<void> in_transaction(const char* begin, const Work& work) {
    if (auto begun = connection_->run(begin); !begun) return begun.failure();
    if (auto done = work(*connection_); !done) {
      // A connection that cannot even roll back is not used again.
      if (!connection_->run("ROLLBACK")) connection_.reset();
      return done;
    }
    auto committed = connection_->run("COMMIT");
    if (committed) return {};
    Failure failure = committed.failure();
    if (connection_->broken()) failure.effect = Effect::unknown;
    return failure;
  }

  std::string url_;
  StateAccess access_;
  bool empty_ = false;
  std::unique_ptr<PostgresConnection> connection_;
};

struct Found {
  bool schema = false;
  bool meta = false;
  bool others = false;  // the schema holds something, but not ours
};

Result<Found> look(Statements& s) {
  auto rows = s.run(
      "SELECT to_regnamespace('flow') IS NOT NULL, to_regclass('flow.meta') IS NOT NULL,"
      " EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('flow'))");
  if (!rows) return rows.failure();
  const Cell yes("t");
  const Cells& row = (*rows)[0];
  return Found{row[0] == yes, row[1] == yes, row[1] != yes && row[2] == yes};
}

Failure foreign(const std::string& where) {
  return {.cls = FailureClass::setup,
          .where = where,
          .what = "the schema flow of this database holds tables, but no state of flow",
          .hint = "name another database in state:"};
}

Result<Meta> open_or_migrate(Statements& s, const std::string& where) {
  if (auto turn = s.run(migration_lock); !turn) return turn.failure();
  auto found = look(s);
  if (!found) return found.failure();
  if (found->others) return foreign(where);
  if (!found->schema) {
    if (auto made = s.run("CREATE SCHEMA flow"); !made) return made.failure();
  }
  int version = 0;
  if (found->meta) {
    auto meta = read_meta(s, where);
    if (!meta || meta->version == schema_version()) return meta;
    version = meta->version;
  }
  if (auto done = migrate(s, version); !done) return done.failure();
  return read_meta(s, where);
}

// An empty id: there is no state yet.
Result<Meta> look_only(Statements& s, const std::string& where) {
  auto found = look(s);
  if (!found) return found.failure();
  if (found->others) return foreign(where);
  if (!found->meta) return Meta{};
  return read_meta(s, where);
}

}  // namespace

Result<StateParts> open_postgres_state(const std::string& url, StateAccess access) {
  const std::string where = "state " + mask_url(url);
  auto session = std::make_unique<PostgresSession>(url, access);
  Meta meta;
  const auto take = [&](Result<Meta> found) -> Result<void> {
    if (!found) return found.failure();
    meta = std::move(found).value();
    return {};
  };
  auto opened = session->read([&](Statements& s) { return take(look_only(s, where)); });
  if (opened && access == StateAccess::read_write && meta.version < schema_version()) {
    opened = session->write([&](Statements& s) { return take(open_or_migrate(s, where)); });
  }
  if (!opened) return opened.failure();
  if (meta.id.empty()) session->set_empty();
  return StateParts{.id = meta.id,
                    .location = mask_url(url),
                    .access = access,
                    .session = std::move(session),
                    .locks = std::make_unique<PostgresLocks>(url, meta.id)};
}

}  // namespace flow
