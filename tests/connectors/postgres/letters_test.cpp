// When a Postgres target may write dead letters in its own transaction.
#include <doctest/doctest.h>

#include "connectors/postgres_letters.h"
#include "state/state.h"
#include "tests/connectors/postgres/writer.h"
#include "tests/support/letters_suite.h"
#include "tests/support/memory_parts.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/temp_dir.h"

using namespace flow;
using namespace flow::test;

namespace {

// A database of its own, dropped with all that is in it.
class Database {
 public:
  explicit Database(const std::string& like = "") : name_(unique_name("letters")) {
    pg_query(server(), "CREATE DATABASE " + name_ + (like.empty() ? "" : " TEMPLATE " + like));
  }
  ~Database() {
    try {
      pg_query(server(), "DROP DATABASE " + name_ + " WITH (FORCE)");
    } catch (const std::exception& e) {
      MESSAGE(e.what());
    }
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& name() const { return name_; }
  std::string url() const { return server().substr(0, server().rfind('/') + 1) + name_; }

 private:
  std::string name_;
};

std::unique_ptr<StateStore> state_at(const std::string& url) {
  MemoryLog log;
  return must_have(open_state(url, StateAccess::read_write, log));
}

bool same(const std::string& target_url, StateStore& state) {
  PostgresClient client(target_url, "test");
  must_do(client.connect());
  return must_have(same_postgres_database(client, state));
}

}  // namespace

TEST_CASE("a target in the state's database is told by whatever name it goes") {
  const Database database;
  const auto state = state_at(database.url());
  CHECK(same(database.url(), *state));
  CHECK(same(database.url() + "?application_name=other&connect_timeout=5", *state));
  const std::string socket = services().postgres_socket;
  CHECK(same("postgres:///" + database.name() + socket.substr(socket.find('?')), *state));
}

TEST_CASE("another database, and even a copy of the state's own, is not taken for it") {
  const Database database;
  { const auto made = state_at(database.url()); }
  const Database copy(database.name());
  const Database other;
  const auto elsewhere = state_at(other.url());
  const auto state = state_at(database.url());
  const auto copied = state_at(copy.url());
  REQUIRE(state->id() == copied->id());
  CHECK_FALSE(same(copy.url(), *state));
  CHECK_FALSE(same(database.url(), *copied));
  CHECK_FALSE(same(other.url(), *state));
  CHECK(same(copy.url(), *copied));
}

TEST_CASE("a role that may not write letters leaves them to the state's own connection") {
  const Database database;
  const auto state = state_at(database.url());
  const std::string role = unique_name("writer");
  pg_query(database.url(), "CREATE ROLE " + role + " LOGIN");
  std::string url = database.url();
  url.replace(url.find("flow@"), 5, role + "@");
  CHECK_FALSE(same(url, *state));
  pg_query(database.url(), "GRANT USAGE ON SCHEMA flow TO " + role);
  CHECK_FALSE(same(url, *state));
  pg_query(database.url(), "GRANT SELECT, INSERT, UPDATE ON flow.dead_letters TO " + role);
  CHECK_FALSE(same(url, *state));
  pg_query(database.url(), "GRANT SELECT, INSERT, UPDATE ON flow.dead_letter_records TO " + role);
  CHECK(same(url, *state));
  {
    PostgresClient client(url, "test");
    must_do(client.connect());
    must_do(client.run("BEGIN"));
    must_do(insert_letters(client, letters_from(0, 3)));
    must_do(client.commit());
  }
  CHECK(offsets_of(must_have(must_have(state->dead_letters())->list({}))) ==
        flow::test::Offsets{0, 1, 2});
  pg_query(database.url(), "DROP OWNED BY " + role);
  pg_query(database.url(), "DROP ROLE " + role);
}

TEST_CASE("letters of a target's transaction are there when it commits, and only then") {
  const Database database;
  const auto state = state_at(database.url());
  const auto letters = must_have(state->dead_letters());
  PostgresClient client(database.url(), "test");
  must_do(client.connect());
  must_do(client.run("BEGIN"));
  must_do(insert_letters(client, letters_from(0, 6'000)));
  CHECK(must_have(letters->count({})) == 0);
  client.rollback();
  CHECK(must_have(letters->count({})) == 0);
  must_do(client.run("BEGIN; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"));
  auto twice = letters_from(0, 3);
  twice.push_back(a_letter(1));
  must_do(insert_letters(client, twice));
  must_do(client.commit());
  CHECK(offsets_of(must_have(letters->list({}))) == flow::test::Offsets{0, 1, 2});
}

TEST_CASE("a state in SQLite is never the database of a Postgres target") {
  const TempDir dir;
  const auto state = state_at("sqlite:" + (dir / "flow.db").string());
  CHECK_FALSE(same(server(), *state));
}
