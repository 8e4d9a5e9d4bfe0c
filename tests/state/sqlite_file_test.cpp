// The state as a file: who may read it, what damage is recognised, and what reading leaves behind.
#include <atomic>
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "state/file_lock.h"
#include "tests/state/child.h"
#include "tests/state/state_help.h"
#include "tests/support/sqlite_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;

namespace {

unsigned mode_of(const std::filesystem::path& path) {
  struct stat s {};
  REQUIRE(::stat(path.c_str(), &s) == 0);
  return s.st_mode & 07777U;
}

// Every file below a directory with its bytes, and every directory.
std::map<std::string, std::string> bytes_below(const std::filesystem::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    files[entry.path().string()] = entry.is_directory() ? "directory" : read_file(entry.path());
  }
  return files;
}

Failure refused(const std::filesystem::path& path, StateAccess access = StateAccess::read_write) {
  MemoryLog log;
  auto opened = open_state("sqlite:" + path.string(), access, log);
  REQUIRE_FALSE(opened.ok());
  return opened.failure();
}

std::filesystem::path file(const TempDir& dir) { return dir / "flow.db"; }

std::unique_ptr<StateStore> open(const TempDir& dir, StateAccess access = StateAccess::read_write) {
  return must_open("sqlite:" + file(dir).string(), access);
}

void must(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.failure().text());
}

// A state with one position, closed cleanly.
void make_state(const TempDir& dir, std::int64_t next = 7) {
  must(open(dir)->commit_positions("orders", "r", {{{"t", 0}, {0}, {next}, ""}}, {}));
}

// A state whose last position stands in the write-ahead log alone, because its process was killed.
void make_killed_state(const TempDir& dir) {
  make_state(dir);
  Child child([&] {
    const auto state = open(dir);
    must(state->open_run(a_run("killed")));
    must(state->commit_positions("orders", "killed", {{{"t", 0}, {7}, {8}, ""}}, {}));
    std::ofstream((dir / "ready").string()) << "x";
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(
      wait_for(std::chrono::seconds(20), [&] { return std::filesystem::exists(dir / "ready"); }));
  child.kill();
  REQUIRE(std::filesystem::file_size(file(dir).string() + "-wal") > 0);
}

void overwrite(const std::filesystem::path& path, std::int64_t at, const std::string& bytes) {
  std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
  f.seekp(at);
  f << bytes;
}

}  // namespace

TEST_CASE("a new state, its directories, its log and its locks are for this user alone") {
  const TempDir dir;
  const auto path = dir / "a/b c/flow.db";
  const ::mode_t old = ::umask(0);
  const auto state = must_open("sqlite:" + path.string(), StateAccess::read_write);
  const auto lock = state->lock("pipeline/orders", Millis{0}).value();
  must(state->commit_positions("orders", "r", {{{"t", 0}, {0}, {7}, ""}}, {}));
  ::umask(old);
  CHECK(mode_of(dir / "a") == 0700);
  CHECK(mode_of(dir / "a/b c") == 0700);
  CHECK(mode_of(path) == 0600);
  CHECK(mode_of(path.string() + "-wal") == 0600);
  CHECK(mode_of(path.string() + "-shm") == 0600);
  CHECK(mode_of(path.string() + ".locks") == 0700);
  for (const auto& entry : std::filesystem::directory_iterator(path.string() + ".locks")) {
    CHECK(mode_of(entry.path()) == 0600);
  }
}

TEST_CASE("looser modes of a state that is there are reported and left alone") {
  const TempDir dir;
  make_state(dir);
  const std::string url = "sqlite:" + file(dir).string();
  MemoryLog quiet;
  CHECK(open_state(url, StateAccess::read_write, quiet).ok());
  CHECK_FALSE(quiet.has("state.permissions"));
  ::chmod(file(dir).c_str(), 0644);
  ::chmod(dir.path().c_str(), 0777);
  MemoryLog log;
  CHECK(open_state(url, StateAccess::read_write, log).ok());
  CHECK(log.has("state.permissions path=" + file(dir).string() + " mode=0644"));
  CHECK(log.has("state.permissions path=" + dir.path().string() + " mode=0777"));
  CHECK(mode_of(file(dir)) == 0644);
}

TEST_CASE("a state that cannot be created says so with exit 73") {
  const TempDir dir;
  dir.write("plain", "a file, no directory");
  CHECK(refused(dir / "plain/flow.db").exit_code() == ExitCode::cannot_create);
}

TEST_CASE("creating leaves no draft behind") {
  const TempDir dir;
  make_state(dir);
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    CHECK(entry.path().filename() == "flow.db");
  }
}

TEST_CASE("an empty, cut or overwritten state is refused with exit 74, and stays as it is") {
  for (const StateAccess access : {StateAccess::read_write, StateAccess::read_only}) {
    for (const char* damage : {"empty", "cut to half", "cut to a page and a half", "page of zeros",
                               "page of noise", "root of positions"}) {
      CAPTURE(damage);
      const TempDir dir;
      make_state(dir);
      const auto path = file(dir);
      const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
      const std::string kind = damage;
      if (kind == "empty") std::filesystem::resize_file(path, 0);
      if (kind == "cut to half")
        std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size) / 2);
      if (kind == "cut to a page and a half") std::filesystem::resize_file(path, 6'000);
      if (kind == "page of zeros") overwrite(path, 4'096 * 2, std::string(4'096, '\0'));
      if (kind == "page of noise") overwrite(path, 4'096 * 2, std::string(4'096, '\xA5'));
      if (kind == "root of positions") {
        const auto page = std::stoll(*sqlite_query(
            path, "SELECT rootpage FROM sqlite_master WHERE name = 'positions'")[0][0]);
        overwrite(path, (page - 1) * 4'096, std::string(100, '\xFF'));
      }
      const auto before = bytes_below(dir.path());
      const Failure failure = refused(path, access);
      CHECK_MESSAGE(failure.exit_code() == ExitCode::io, failure.text());
      CHECK(failure.hint.find("restore") != std::string::npos);
      CHECK(failure.where.find(path.string()) != std::string::npos);
      if (access == StateAccess::read_only) CHECK(bytes_below(dir.path()) == before);
      CHECK(read_file(path) == before.at(path.string()));
    }
  }
}

TEST_CASE("a file of something else is refused with exit 78 and not touched") {
  for (const StateAccess access : {StateAccess::read_write, StateAccess::read_only}) {
    const TempDir dir;
    const auto text = dir.write("notes.txt", "these are notes, and no database at all\n");
    const auto foreign = dir / "warehouse.db";
    sqlite_query(foreign, "CREATE TABLE orders(id INTEGER); INSERT INTO orders VALUES (1)");
    std::filesystem::create_directory(dir / "folder");
    const auto before = bytes_below(dir.path());
    for (const auto& path : {text, foreign, dir / "folder"}) {
      CAPTURE(path.string());
      const Failure failure = refused(path, access);
      CHECK(failure.exit_code() == ExitCode::configuration);
      CHECK_FALSE(failure.hint.empty());
    }
    CHECK(bytes_below(dir.path()) == before);
  }
}

TEST_CASE("a state of a newer program is refused with exit 78 and not changed") {
  const TempDir dir;
  make_state(dir);
  sqlite_query(file(dir), "UPDATE meta SET schema_version = 999");
  for (const StateAccess access : {StateAccess::read_write, StateAccess::read_only}) {
    const Failure failure = refused(file(dir), access);
    CHECK(failure.exit_code() == ExitCode::configuration);
    CHECK(failure.what.find("schema 999") != std::string::npos);
  }
  CHECK(sqlite_query(file(dir), "SELECT schema_version FROM meta")[0][0] == "999");
}

TEST_CASE(
    "reading leaves every file as it was: closed cleanly, killed, and killed without its index") {
  for (const char* how : {"closed", "killed", "killed, -shm lost"}) {
    CAPTURE(how);
    const TempDir dir;
    const std::string kind = how;
    if (kind == "closed") {
      make_state(dir, 8);
    } else {
      make_killed_state(dir);
    }
    if (kind == "killed, -shm lost") std::filesystem::remove(file(dir).string() + "-shm");
    const auto before = bytes_below(dir.path());
    {
      const auto state = open(dir, StateAccess::read_only);
      CHECK(shown(*state->positions("orders")) == std::vector<std::string>{"t/0=8..8()"});
      CHECK(state->marks("orders")->empty());
      const auto runs = state->runs("", 10).value();
      CHECK(runs.size() == (kind == "closed" ? 0U : 1U));
      if (!runs.empty()) CHECK(runs[0].status == RunStatus::interrupted);
      CHECK(bytes_below(dir.path()) == before);
    }
    CHECK(bytes_below(dir.path()) == before);
  }
}

TEST_CASE("a reader beside a writer sees whole commits") {
  const TempDir dir;
  make_state(dir, 0);
  Child writer([&] {
    for (std::int64_t n = 1;;) {
      const auto state = open(dir);  // opened and closed, so that the log comes and goes
      for (int i = 0; i < 5; ++i, ++n) {
        must(state->commit_positions("orders", "r",
                                     {{{"t", 0}, {0}, {n}, ""}, {{"t", 1}, {0}, {n}, ""}}, {}));
      }
    }
    return 0;
  });
  std::int64_t last = 0;
  int reads = 0;
  REQUIRE(wait_for(
      std::chrono::seconds(60),
      [&] {
        const auto seen = open(dir, StateAccess::read_only)->positions("orders").value();
        ++reads;
        if (seen.size() == 1) return false;
        REQUIRE(seen.size() == 2);
        CHECK(seen[0].next == seen[1].next);
        CHECK(seen[0].next.next >= last);
        last = seen[0].next.next;
        return last > 200 && reads > 200;
      },
      std::chrono::milliseconds(0)));
}

TEST_CASE("a reader sees the one commit of a writer that then idles") {
  const TempDir dir;
  make_state(dir);
  Child writer([&] {
    const auto state = open(dir);
    must(state->commit_positions("orders", "r", {{{"t", 0}, {7}, {8}, ""}}, {}));
    dir.write("ready", "");
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(
      wait_for(std::chrono::seconds(20), [&] { return std::filesystem::exists(dir / "ready"); }));
  const auto wal = read_file(file(dir).string() + "-wal");
  const auto database = read_file(file(dir));
  const auto seen = open(dir, StateAccess::read_only)->positions("orders");
  REQUIRE(seen.ok());
  CHECK(shown(seen.value()) == std::vector<std::string>{"t/0=8..8()"});
  CHECK(read_file(file(dir).string() + "-wal") == wal);
  CHECK(read_file(file(dir)) == database);
}

TEST_CASE("what a killed process committed is there for the next one") {
  const TempDir dir;
  make_killed_state(dir);
  CHECK(shown(*open(dir)->positions("orders")) == std::vector<std::string>{"t/0=8..8()"});
}

TEST_CASE("a foreign write lock is waited for, and a backup in a loop disturbs nothing") {
  const TempDir dir;
  make_state(dir, 0);
  Child holder([&] {
    sqlite_query(file(dir),
                 "BEGIN IMMEDIATE; INSERT INTO marks VALUES ('p', 't', 'theirs', 'r', 0);"
                 "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000000)"
                 " SELECT count(*) FROM c; COMMIT");
    return 0;
  });
  Child backup([&] {
    for (int i = 0;; ++i) {
      sqlite_query(file(dir),
                   "VACUUM INTO '" + (dir / ("copy" + std::to_string(i))).string() + "'");
    }
    return 0;
  });
  const auto state = open(dir);
  for (std::int64_t n = 1; n <= 100; ++n) {
    must(state->commit_positions("orders", "r", {{{"t", 0}, {0}, {n}, ""}}, {}));
  }
  CHECK(holder.wait() == 0);
  CHECK(shown(*state->positions("orders")) == std::vector<std::string>{"t/0=100..100()"});
  CHECK((*state->marks("p"))[0].mark == "theirs");
}

TEST_CASE("a state deleted under its user is reported, and nothing more is written to it") {
  const TempDir dir;
  make_state(dir);
  const auto state = open(dir);
  std::filesystem::remove(file(dir));
  const auto done = state->commit_positions("orders", "r", {{{"t", 0}, {0}, {9}, ""}}, {});
  REQUIRE_FALSE(done.ok());
  CHECK(done.failure().exit_code() == ExitCode::configuration);
  CHECK_FALSE(std::filesystem::exists(file(dir)));
}

TEST_CASE("two paths to one state share its locks") {
  const TempDir dir;
  make_state(dir);
  std::filesystem::create_symlink(file(dir), dir / "link.db");
  const auto one = open(dir);
  const auto two = must_open("sqlite:" + (dir / "link.db").string(), StateAccess::read_write);
  const auto held = one->lock("pipeline/orders", Millis{0}).value();
  CHECK(two->lock("pipeline/orders", Millis{0}).value() == nullptr);
}

TEST_CASE("lock names of every kind are different files in the one directory") {
  std::map<std::string, std::string> files;
  const std::string longest(400, 'x');
  for (const std::string& name :
       {std::string("run/1"), std::string("run%2F1"), std::string("../up"), std::string("."),
        std::string(".."), std::string(""), std::string("a b"), std::string("A B"),
        std::string("na\xC3\xAFve"), longest, longest + "y"}) {
    const std::string file = lock_file_name(name);
    CHECK(file.find('/') == std::string::npos);
    CHECK(file.size() < 255);
    CHECK_FALSE(file.starts_with('.'));
    CHECK_MESSAGE(files.emplace(file, name).second, name, " and ", files[file]);
  }
}

TEST_CASE("a lock changes hands without a gap for a third, thousands of times") {
  const TempDir dir;
  FileLocks locks((dir / "locks").string());
  std::atomic<int> inside{0}, overlaps{0}, taken{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 2'000; ++i) {
          auto lock = locks.take("x", Millis{0}).value();
          if (lock == nullptr) continue;
          ++taken;
          if (++inside > 1) ++overlaps;
          --inside;
        }
      });
    }
  }
  CHECK(taken > 0);
  CHECK(overlaps == 0);
  CHECK_FALSE(locks.held("x").value());
  CHECK(std::filesystem::is_empty(dir / "locks"));
}
