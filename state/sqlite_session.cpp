#include "state/sqlite_session.h"

#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <chrono>
#include <sqlite3.h>
#include <thread>
#include <utility>

#include "core/classify.h"
#include "core/sqlite_path.h"

namespace flow {
namespace {

constexpr int busy_timeout_ms = 10'000;
constexpr const char* schema_name = "flow";  // as in Postgres, so that statements are the same

class SqliteStatements final : public Statements {
 public:
  SqliteStatements(SQLite::Database& database, const std::string& path)
      : database_(database), path_(path) {}

  Result<Table> run(const std::string& sql, const Cells& parameters) override {
    try {
      return rows_of(sql, parameters);
    } catch (const SQLite::Exception& e) {
      return sqlite_state_failure(e.getExtendedErrorCode(), e.what(), path_);
    }
  }

  SqlDialect dialect() const override { return SqlDialect::sqlite; }

  Result<void> store_letters(std::span<const DeadLetter* const> letters) override {
    try {
      const SqliteLetterStatements text = sqlite_letter_statements(schema_name);
      SQLite::Statement put_letter(database_, text.letter);
      SQLite::Statement put_record(database_, text.record);
      LetterValues values;
      for (const DeadLetter* letter : letters) {
        values.fill(*letter);
        bind_all(put_letter, 1, values.letter());
        put_letter.executeStep();
        put_record.bind(1, put_letter.getColumn(0).getInt64());
        put_letter.reset();
        bind_all(put_record, 2, values.record());
        put_record.exec();
        put_record.reset();
      }
      return {};
    } catch (const SQLite::Exception& e) {
      return sqlite_state_failure(e.getExtendedErrorCode(), e.what(), path_);
    }
  }

 private:
  static void bind_all(SQLite::Statement& statement, int index, std::span<const SqlValue> values) {
    for (const SqlValue& value : values) {
      const int length = static_cast<int>(value.text.size());
      switch (value.kind) {
        case SqlValue::Kind::null: statement.bind(index); break;
        case SqlValue::Kind::number: statement.bind(index, value.number); break;
        case SqlValue::Kind::text: statement.bind(index, std::string(value.text)); break;
        case SqlValue::Kind::bytes: statement.bind(index, value.text.data(), length); break;
      }
      ++index;
    }
  }

  Table rows_of(std::string sql, const Cells& parameters) {
    for (char& c : sql) {
      if (c == '$') c = '?';
    }
    SQLite::Statement statement(database_, sql);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const int index = static_cast<int>(i) + 1;
      if (parameters[i]) {
        statement.bind(index, *parameters[i]);
      } else {
        statement.bind(index);
      }
    }
    Table table;
    while (statement.executeStep()) {
      Cells& row = table.emplace_back();
      for (int c = 0; c < statement.getColumnCount(); ++c) {
        const SQLite::Column column = statement.getColumn(c);
        row.push_back(column.isNull() ? Cell() : Cell(column.getString()));
      }
    }
    return table;
  }

  SQLite::Database& database_;
  const std::string& path_;
};

bool is_busy(const Failure& failure) {
  return failure.code.starts_with("SQLITE_BUSY") || failure.code.starts_with("SQLITE_LOCKED");
}

void name_schema(SQLite::Database& database) {
  sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_MAINDBNAME, schema_name);
}

Failure moved_failure(const std::string& path) {
  return sqlite_state_failure(SQLITE_READONLY_DBMOVED, "the file was moved or deleted while in use",
                              path);
}

}  // namespace

Failure sqlite_state_failure(int extended_code, const std::string& message,
                             const std::string& path) {
  const FailureRow* row = find_sqlite(extended_code);
  Failure failure{.cls = classify_sqlite(extended_code),
                  .code = row != nullptr ? std::string(row->code) : std::to_string(extended_code),
                  .where = "state " + path,
                  .what = message};
  switch (extended_code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      failure.hint = "another process has been writing to the state for long: see which by lsof";
      break;
    case SQLITE_CORRUPT:
      failure.exit = ExitCode::io;
      failure.hint =
          "restore the file from a copy, or salvage it with: sqlite3 FILE .recover; a new state "
          "would"
          " read everything again, so none is made";
      break;
    case SQLITE_NOTADB:
      failure.hint = "name another file in state:, this one is not a state of flow";
      break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
      failure.exit = ExitCode::io;
      failure.hint = "look at the disk of the state: free space and kernel log";
      break;
    case SQLITE_CANTOPEN:
      failure.exit = ExitCode::io;
      failure.hint = "check the path and the rights on it and its directory";
      break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
      failure.hint = extended_code == SQLITE_READONLY_DBMOVED
                         ? "stop, put the file back, and start again"
                         : "give this user the right to write the file and its directory";
      break;
    default: break;
  }
  return failure;
}

SqliteSession::SqliteSession(SQLite::Database database, std::string path)
    : database_(std::move(database)), path_(std::move(path)) {}

Result<std::unique_ptr<SqliteSession>> SqliteSession::open(const std::string& path) {
  try {
    SQLite::Database database(path, SQLite::OPEN_READWRITE, busy_timeout_ms);
    name_schema(database);
    return std::unique_ptr<SqliteSession>(new SqliteSession(std::move(database), path));
  } catch (const SQLite::Exception& e) {
    return sqlite_state_failure(e.getExtendedErrorCode(), e.what(), path);
  }
}

Result<Table> SqliteSession::run(const std::string& sql) {
  return SqliteStatements(database_, path_).run(sql, {});
}

Result<void> SqliteSession::read(const Work& work) {
  try {
    SQLite::Transaction transaction(database_, SQLite::TransactionBehavior::DEFERRED);
    SqliteStatements statements(database_, path_);
    return work(statements);
  } catch (const SQLite::Exception& e) {
    return sqlite_state_failure(e.getExtendedErrorCode(), e.what(), path_);
  }
}

Result<void> SqliteSession::write(const Work& work) {
  const auto end = std::chrono::steady_clock::now() + Millis{busy_timeout_ms};
  for (;;) {
    auto done = write_once(work);
    if (done || !is_busy(done.failure()) || std::chrono::steady_clock::now() >= end) return done;
    std::this_thread::sleep_for(Millis{10});
  }
}

Result<void> SqliteSession::write_once(const Work& work) {
  try {
    SQLite::Transaction transaction(database_, SQLite::TransactionBehavior::IMMEDIATE);
    SqliteStatements statements(database_, path_);
    if (auto done = work(statements); !done) return done;
    int moved = 0;
    sqlite3_file_control(database_.getHandle(), schema_name, SQLITE_FCNTL_HAS_MOVED, &moved);
    if (moved != 0) return moved_failure(path_);
    transaction.commit();
    return {};
  } catch (const SQLite::Exception& e) {
    return sqlite_state_failure(e.getExtendedErrorCode(), e.what(), path_);
  }
}

Result<void> SqliteViewSession::read(const Work& work) {
  const auto end = std::chrono::steady_clock::now() + Millis{busy_timeout_ms};
  Index index = Index::untouched;
  for (;;) {
    const SqliteView view = sqlite_view(path_, index);
    if (is_missing(view)) return {};
    auto done = read_once(work, view.uri, view.private_index);
    // A living writer's index may have no mark yet that a reader could share: then one must be set.
    const bool unmarked = !done && done.failure().code.starts_with("SQLITE_READONLY");
    const auto how = done ? Reading::succeeded : Reading::failed;
    const bool last = std::chrono::steady_clock::now() >= end;
    if (last || (counts(view, path_, how) && !(unmarked && index == Index::untouched))) return done;
    if (unmarked) index = Index::shared;
    std::this_thread::sleep_for(Millis{1});
  }
}

Result<void> SqliteViewSession::read_once(const Work& work, const std::string& uri,
                                          bool private_index) {
  try {
    SQLite::Database database(uri, SQLite::OPEN_READONLY | SQLite::OPEN_URI, busy_timeout_ms);
    name_schema(database);
    if (private_index) {
      sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
      database.exec("PRAGMA locking_mode=EXCLUSIVE");
    }
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::DEFERRED);
    SqliteStatements statements(database, path_);
    return work(statements);
  } catch (const SQLite::Exception& e) {
    return sqlite_state_failure(e.getExtendedErrorCode(), e.what(), path_);
  }
}

Result<void> SqliteViewSession::write(const Work&) {
  return sqlite_state_failure(SQLITE_READONLY, "the state was opened for reading only", path_);
}

}  // namespace flow
