#pragma once
// One libpq connection: every error of the server becomes a Failure with the class of its SQLSTATE.
#include <atomic>
#include <cstdint>
#include <libpq-fe.h>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace flow {

// What a statement gave. Shape: rows of text. Owner: of libpq's result; views live as long as it
// does.
class PgResult {
 public:
  explicit PgResult(PGresult* result) : result_(result) {}
  int rows() const { return PQntuples(result_.get()); }
  bool null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::string_view text(int row, int column) const;
  std::string str(int row, int column) const { return std::string(text(row, column)); }
  bool yes(int row, int column) const { return text(row, column) == "t"; }
  std::uint64_t affected() const;
  PGresult* get() const { return result_.get(); }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

// What the server said of the last error, beside the Failure. copy_line: row of the COPY stream, 0
// = not said.
struct PgError {
  std::string code;
  std::string table;
  std::string column;
  std::string constraint;
  std::uint64_t copy_line = 0;
};

// Bound values of one statement. Shape: all in binary format, with their type OIDs.
struct PgParameters {
  std::vector<Oid> types;
  std::vector<std::string_view> values;
};

// Shape: connects when told and after a loss; no session state is kept beyond a transaction, so a
// pooler in transaction mode will do. Errors: class by SQLSTATE, transient when the connection is
// lost; after a loss the client is unconnected. commit() says effect unknown when the answer never
// came. Threads: one; cancel() by any while the object lives.
class PostgresClient {
 public:
  PostgresClient(std::string url, std::string application_name);
  ~PostgresClient() { close(); }
  PostgresClient(const PostgresClient&) = delete;
  PostgresClient& operator=(const PostgresClient&) = delete;

  // "host:port/database as user": for messages, without secrets.
  const std::string& place() const { return place_; }
  int server_version() const { return PQserverVersion(connection_); }
  const PgError& last_error() const { return error_; }

  Result<void> connect();  // nothing to do when connected
  void close();

  Result<PgResult> query(const std::string& sql, const std::vector<std::string>& parameters = {});
  Result<PgResult> query(const std::string& sql, const PgParameters& parameters);
  Result<void> run(const std::string& sql);  // one or more statements, results dropped
  // `sql` ends in COPY ... FROM STDIN; end_copy() gives the rows that the server stored.
  Result<void> begin_copy(const std::string& sql);
  Result<void> send(std::string_view bytes);
  Result<std::uint64_t> end_copy();
  // The server's failure that a statement of ours caught and handed on.
  Failure refused(const std::string& sqlstate, const std::string& message) const;
  Result<void> commit();
  // Undoes what was done since, and forgets the savepoint.
  Result<void> roll_back_to(const std::string& savepoint);
  void rollback();  // whatever state a failed step left; drops the connection when that fails

  // Between the two, cancel() cuts the connection, so that the call under way fails at once.
  void begin_work();
  void end_work();
  void cancel() noexcept;

 private:
  Result<void> connect_to(const std::string& host, const std::string& hostaddr,
                          const std::string& port);
  Result<void> finish_connecting();
  void end_active();  // a COPY that was broken off
  Failure connect_failure(std::string_view what);
  Failure failure(const PGresult* result);
  Result<PgResult> checked(PGresult* result);

  std::string url_;
  std::string application_name_;
  std::string place_;
  std::vector<std::string> hosts_, addresses_, ports_;  // of the URL, tried in turn
  bool url_valid_ = false;
  PGconn* connection_ = nullptr;
  PgError error_;

  std::mutex mutex_;  // guards the two below
  bool working_ = false;
  int socket_ = -1;  // a duplicate of libpq's, so that cancel() never meets a closed or reused one
  std::atomic<bool> cancelled_{false};
};

// For its lifetime the client works, so cancel() reaches it.
class PostgresWork {
 public:
  explicit PostgresWork(PostgresClient& client) : client_(client) { client_.begin_work(); }
  ~PostgresWork() { client_.end_work(); }
  PostgresWork(const PostgresWork&) = delete;
  PostgresWork& operator=(const PostgresWork&) = delete;

 private:
  PostgresClient& client_;
};

}  // namespace flow
