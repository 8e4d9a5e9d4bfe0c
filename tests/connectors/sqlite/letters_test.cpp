// When a SQLite target may write dead letters in its own transaction.
#include <doctest/doctest.h>
#include <filesystem>

#include "connectors/sqlite_client.h"
#include "connectors/sqlite_letters.h"
#include "state/state.h"
#include "tests/support/letters_suite.h"
#include "tests/support/memory_parts.h"
#include "tests/support/temp_dir.h"

using namespace flow;
using namespace flow::test;

namespace {

std::unique_ptr<StateStore> state_at(const std::string& path) {
  MemoryLog log;
  return must_have(open_state("sqlite:" + path, StateAccess::read_write, log));
}

}  // namespace

TEST_CASE("the state's file is told by whatever path, another file and a copy are not") {
  const TempDir dir;
  const std::string path = (dir / "flow.db").string();
  const auto state = state_at(path);
  std::filesystem::create_symlink(path, dir / "link.db");
  std::filesystem::create_directory_symlink(dir.path(), dir / "here");
  std::filesystem::copy_file(path, dir / "copy.db");
  CHECK(same_sqlite_database("sqlite:" + path, state->location()));
  CHECK(same_sqlite_database("sqlite:" + (dir / "link.db").string(), state->location()));
  CHECK(same_sqlite_database("sqlite:" + (dir / "here/flow.db").string(), state->location()));
  CHECK_FALSE(same_sqlite_database("sqlite:" + (dir / "copy.db").string(), state->location()));
  CHECK_FALSE(same_sqlite_database("sqlite:" + (dir / "none.db").string(), state->location()));
  CHECK_FALSE(same_sqlite_database("sqlite:" + path, "postgres://host/flow"));
  CHECK_FALSE(same_sqlite_database("sqlite:" + path, ""));
}

TEST_CASE("letters of a target's transaction are there when it commits, and only then") {
  const TempDir dir;
  const std::string path = (dir / "flow.db").string();
  const auto state = state_at(path);
  const auto letters = must_have(state->dead_letters());
  auto db = must_have(open_sqlite(path, SQLITE_OPEN_READWRITE, "test"));
  must_do(sqlite_run(db.get(), "BEGIN IMMEDIATE", "test"));
  must_do(insert_letters(db.get(), letters_from(0, 10), "test"));
  CHECK(must_have(letters->count({})) == 0);
  must_do(sqlite_run(db.get(), "ROLLBACK", "test"));
  CHECK(must_have(letters->count({})) == 0);
  auto some = letters_from(0, 3);
  some[1].key = "";
  some[2].key = std::nullopt;
  some[2].value = std::string("\0\xff", 2);
  some.push_back(some[1]);
  must_do(sqlite_run(db.get(), "BEGIN IMMEDIATE", "test"));
  must_do(insert_letters(db.get(), some, "test"));
  must_do(sqlite_run(db.get(), "COMMIT", "test"));
  some.pop_back();
  CHECK(flow::test::shown(must_have(letters->list({}))) == flow::test::shown(some));
}
