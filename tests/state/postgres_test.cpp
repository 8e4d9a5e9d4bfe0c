// What only a state in Postgres can meet: lost connections, refused logins, other tenants of the
// database.
#include <doctest/doctest.h>

#include "tests/state/state_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;

namespace {

Failure refused(const std::string& url, StateAccess access = StateAccess::read_write) {
  MemoryLog log;
  auto opened = open_state(url, access, log);
  REQUIRE_FALSE(opened.ok());
  return opened.failure();
}

void end_all_connections(const PostgresWorld& world) {
  pg_query(world.url(),
           "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
           " WHERE datname = current_database() AND pid <> pg_backend_pid()");
}

Spans at(std::int64_t next) { return {{{"t", 0}, {0}, {next}, ""}}; }

}  // namespace

TEST_CASE(
    "a lost connection is one transient failure at most, then work goes on with the locks held") {
  const PostgresWorld world;
  const auto state = world.open();
  const auto lock = state->lock("pipeline/orders", Millis{0}).value();
  REQUIRE(lock != nullptr);
  REQUIRE(state->open_run(a_run("r")).ok());
  end_all_connections(world);
  int failures = 0;
  REQUIRE(wait_for(std::chrono::seconds(30), [&] {
    const auto done = state->commit_positions("orders", "r", at(5), {});
    if (!done) {
      ++failures;
      CHECK(done.failure().cls == FailureClass::transient);
    }
    return done.ok();
  }));
  CHECK(failures <= 2);
  const auto other = world.open();
  CHECK(other->lock("pipeline/orders", Millis{0}).value() == nullptr);
  CHECK((*other->runs("", 1))[0].status == RunStatus::running);
}

TEST_CASE("a lock that somebody else took while the connection was lost is not committed over") {
  const PostgresWorld world;
  const auto state = world.open();
  const auto lock = state->lock("pipeline/orders", Millis{0}).value();
  REQUIRE(lock != nullptr);
  const auto other = world.open();
  end_all_connections(world);
  std::unique_ptr<Lock> theirs;
  REQUIRE(wait_for(std::chrono::seconds(20), [&] {
    auto taken = other->lock("pipeline/orders", Millis{0});
    if (taken) theirs = std::move(taken).value();
    return theirs != nullptr && other->positions("orders").ok();
  }));
  const auto done = state->commit_positions("orders", "r", at(5), {});
  REQUIRE_FALSE(done.ok());
  CHECK(other->positions("orders").value().empty());
  CHECK(done.failure().what.find("pipeline/orders") != std::string::npos);
}

TEST_CASE("a wrong password, a role without rights and a missing database are told apart by code") {
  const PostgresWorld world;
  std::string guarded = services().postgres_guarded;
  guarded.replace(guarded.find("guarded-secret"), 14, "wrong%2Dcanary");
  const Failure login = refused(guarded);
  CHECK(login.exit_code() == ExitCode::unauthorized);
  CHECK(login.code == "28P01");
  for (const std::string& text : {login.text(), login.where}) {
    CHECK(text.find("canary") == std::string::npos);
  }
  std::string limited = services().postgres_limited;
  limited = limited.substr(0, limited.rfind('/')) + world.url().substr(world.url().rfind('/'));
  CHECK(refused(limited).exit_code() == ExitCode::unauthorized);
  const Failure missing = refused(world.url() + "_absent");
  CHECK(missing.exit_code() == ExitCode::configuration);
  CHECK(missing.code == "3D000");
  const Failure down = refused("postgres://flow@127.0.0.1:1/flow");
  CHECK(down.cls == FailureClass::transient);
}

TEST_CASE("a URL that libpq does not understand is refused without showing its password") {
  for (const char* url :
       {"postgres://u:canary@host:port/db", "postgres://u:canary@host/db?nonsense=1"}) {
    const Failure failure = refused(url);
    CHECK(failure.exit_code() == ExitCode::configuration);
    CHECK(failure.text().find("canary") == std::string::npos);
  }
}

TEST_CASE("a schema named flow of somebody else is refused and not changed") {
  const PostgresWorld world;
  pg_query(world.url(), "CREATE SCHEMA flow");
  pg_query(world.url(), "CREATE TABLE flow.rivers(name text)");
  for (const StateAccess access : {StateAccess::read_write, StateAccess::read_only}) {
    CHECK(refused(world.url(), access).exit_code() == ExitCode::configuration);
  }
  CHECK(pg_query(world.url(),
                 "SELECT relname FROM pg_class WHERE relnamespace = 'flow'::regnamespace")
            .size() == 1);
}

TEST_CASE("a state of a newer program in Postgres is refused") {
  const PostgresWorld world;
  world.open();
  pg_query(world.url(), "UPDATE flow.meta SET schema_version = 999");
  for (const StateAccess access : {StateAccess::read_write, StateAccess::read_only}) {
    CHECK(refused(world.url(), access).what.find("schema 999") != std::string::npos);
  }
}

TEST_CASE("reading a database without a state creates no schema") {
  const PostgresWorld world;
  world.open(StateAccess::read_only);
  CHECK(pg_query(world.url(), "SELECT to_regnamespace('flow')")[0][0] == std::nullopt);
}

TEST_CASE("the location of a state shows no password") {
  PostgresWorld world;
  std::string url = world.url();
  url.insert(url.find('@'), ":canary");
  const auto state = must_open(url, StateAccess::read_write);
  CHECK(state->location().find("canary") == std::string::npos);
  CHECK(state->location().find("127.0.0.1") != std::string::npos);
}
