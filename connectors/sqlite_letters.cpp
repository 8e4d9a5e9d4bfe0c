#include "connectors/sqlite_letters.h"

#include <sys/stat.h>

#include "connectors/sqlite_client.h"
#include "core/dead_letter_sql.h"
#include "core/sqlite_path.h"

namespace flow {
namespace {

// The texts outlive the step that they are bound for.
void bind_all(sqlite3_stmt* statement, int index, std::span<const SqlValue> values) {
  for (const SqlValue& value : values) {
    const auto size = static_cast<sqlite3_uint64>(value.text.size());
    switch (value.kind) {
      case SqlValue::Kind::null: sqlite3_bind_null(statement, index); break;
      case SqlValue::Kind::number: sqlite3_bind_int64(statement, index, value.number); break;
      case SqlValue::Kind::text:
        sqlite3_bind_text64(statement, index, value.text.data(), size, SQLITE_STATIC, SQLITE_UTF8);
        break;
      case SqlValue::Kind::bytes:
        sqlite3_bind_blob64(statement, index, value.text.data(), size, SQLITE_STATIC);
        break;
    }
    ++index;
  }
}

}  // namespace

bool same_sqlite_database(const std::string& target_url, const std::string& state_url) {
  if (!state_url.starts_with("sqlite:")) return false;
  struct stat target {};
  struct stat state {};
  if (::stat(sqlite_path(target_url).c_str(), &target) != 0) return false;
  if (::stat(sqlite_path(state_url).c_str(), &state) != 0) return false;
  return target.st_dev == state.st_dev && target.st_ino == state.st_ino;
}

Result<void> insert_letters(sqlite3* db, std::span<const DeadLetter> letters,
                            const std::string& where) {
  if (letters.empty()) return {};
  const SqliteLetterStatements text = sqlite_letter_statements("main");
  auto letter = sqlite_prepare(db, text.letter, where);
  if (!letter) return letter.failure();
  auto record = sqlite_prepare(db, text.record, where);
  if (!record) return record.failure();
  LetterValues values;
  for (const DeadLetter& one : letters) {
    values.fill(one);
    bind_all(letter->get(), 1, values.letter());
    if (sqlite3_step(letter->get()) != SQLITE_ROW) return sqlite_failure(db, where);
    sqlite3_bind_int64(record->get(), 1, sqlite3_column_int64(letter->get(), 0));
    sqlite3_reset(letter->get());
    bind_all(record->get(), 2, values.record());
    if (sqlite3_step(record->get()) != SQLITE_DONE) return sqlite_failure(db, where);
    sqlite3_reset(record->get());
  }
  return {};
}

}  // namespace flow
