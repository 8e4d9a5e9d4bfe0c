#pragma once
// SQLite as a state's database.
#include <SQLiteCpp/Database.h>
#include <memory>
#include <string>

#include "state/session.h"

namespace flow {

// "flow" in the header of every state file.
inline constexpr int state_application_id = 0x666c6f77;

// A code and message of SQLite as a failure of the state at `path`.
Failure sqlite_state_failure(int extended_code, const std::string& message,
                             const std::string& path);

// Writing: BEGIN IMMEDIATE, synchronous=FULL; a transaction that meets a lock is started again for
// up to ten seconds. Errors: a file moved or deleted while open is class setup, nothing is written
// to it.
class SqliteSession final : public Session {
 public:
  static Result<std::unique_ptr<SqliteSession>> open(const std::string& path);

  Result<void> read(const Work& work) override;
  Result<void> write(const Work& work) override;

  // For the checks at opening: statements outside a transaction.
  Result<Table> run(const std::string& sql);

 private:
  SqliteSession(SQLite::Database database, std::string path);
  Result<void> write_once(const Work& work);

  SQLite::Database database_;
  std::string path_;
};

// Reading only, without a trace: opens the file for each read as its neighbours (-wal, -shm) demand
// and changes none of them. A file that does not exist reads as empty.
class SqliteViewSession final : public Session {
 public:
  explicit SqliteViewSession(std::string path) : path_(std::move(path)) {}

  Result<void> read(const Work& work) override;
  Result<void> write(const Work& work) override;

 private:
  Result<void> read_once(const Work& work, const std::string& uri, bool private_index);
  std::string path_;
};

}  // namespace flow
