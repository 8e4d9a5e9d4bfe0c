#pragma once
// One connection to a Postgres that holds a state. libpq rather than libpqxx: it tells the SQLSTATE
// of a refused connection, and never connects again behind our back, which would lose locks unseen.
#include <libpq-fe.h>
#include <memory>
#include <string>

#include "state/session.h"

namespace flow {

// Errors: by SQLSTATE; without one the server did not answer: transient, and `broken()` from then
// on. Never shows a password. Threads: one at a time.
class PostgresConnection final : public Statements {
 public:
  static Result<std::unique_ptr<PostgresConnection>> connect(const std::string& url);

  Result<Table> run(const std::string& sql, const Cells& parameters = {}) override;
  SqlDialect dialect() const override { return SqlDialect::postgres; }
  Result<void> store_letters(std::span<const DeadLetter* const> letters) override;
  bool broken() const { return PQstatus(connection_.get()) != CONNECTION_OK; }

 private:
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  using Handle = std::unique_ptr<PGconn, Close>;
  PostgresConnection(Handle connection, std::string url)
      : connection_(std::move(connection)), url_(std::move(url)) {}
  static Result<Handle> start(const std::string& url);
  std::optional<Failure> failure_in(const PGresult* result) const;

  Handle connection_;
  std::string url_;
};

// Failure with this SQLSTATE (empty: none) and the server's words, passwords of `url` hidden.
Failure postgres_state_failure(const std::string& sqlstate, const std::string& words,
                               const std::string& url);

}  // namespace flow
