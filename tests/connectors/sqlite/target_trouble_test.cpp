// The SQLite target beside other users of the database, and when things go wrong.
#include <atomic>
#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "connectors/sqlite_client.h"
#include "core/failure_point.h"
#include "tests/connectors/sqlite/target_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using Lines = std::vector<std::string>;

namespace {

constexpr const char* table_ddl = "CREATE TABLE orders(id INTEGER PRIMARY KEY, v TEXT)";

// Somebody else with the same database.
class Other {
 public:
  explicit Other(const std::filesystem::path& path)
      : db_(open_sqlite(path.string(), SQLITE_OPEN_READWRITE, "other").value()) {
    sqlite3_busy_timeout(db_.get(), 20'000);
  }
  void run(const std::string& sql) {
    auto done = sqlite_run(db_.get(), sql, "other");
    REQUIRE_MESSAGE(done.ok(), done.failure().text());
  }
  void read_something() {
    REQUIRE(sqlite_query(db_.get(), "SELECT count(*) FROM orders", {}, "").ok());
  }

 private:
  SqliteHandle db_;
};

void add_rows(SqliteBench& bench, int first, int count, const std::string& text) {
  for (int i = 0; i < count; ++i)
    bench.add({num(first + i), Value::text(bench.batch.arena.copy(text))});
}

std::int64_t wal_bytes(const SqliteBench& bench) {
  std::error_code error;
  const auto size = std::filesystem::file_size(bench.path().string() + "-wal", error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

// Arms one failure point for as long as it lives.
class Armed {
 public:
  explicit Armed(const std::string& text) { REQUIRE(failure_point::arm(text).ok()); }
  ~Armed() { failure_point::armed.store(0); }
};

}  // namespace

TEST_CASE("a lock that another process holds for a while is waited for") {
  SqliteBench bench(table_ddl, Mode::merge, {"id"});
  bench.start();
  Other other(bench.path());
  other.run("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1, 'theirs')");
  std::atomic<bool> begun{false};
  std::jthread release([&] {
    wait_for(std::chrono::seconds(10), [&] { return begun.load(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    other.run("COMMIT");
  });
  bench.add({num(1), str("ours")});
  begun = true;
  bench.must_write();
  CHECK(bench.table() == Lines{"1|ours"});
}

TEST_CASE(
    "a lock that is never given up is a transient failure without effect, and the batch can "
    "follow") {
  SqliteBench bench(table_ddl);
  bench.start();
  Other other(bench.path());
  other.run("BEGIN IMMEDIATE");
  bench.add({num(1), str("a")});
  const auto done = bench.write();
  REQUIRE_FALSE(done.ok());
  CHECK(done.failure().cls == FailureClass::transient);
  CHECK(done.failure().effect == Effect::none);
  CHECK(done.failure().code == "SQLITE_BUSY");
  other.run("ROLLBACK");
  bench.add({num(1), str("a")});
  bench.must_write();
  CHECK(bench.table() == Lines{"1|a"});
}

TEST_CASE("backups and long readers beside the target neither stop it nor see half a batch") {
  SqliteBench bench(table_ddl, Mode::merge, {"id"});
  bench.start();
  constexpr int rows = 200;
  std::atomic<bool> stop{false};
  std::atomic<int> backups{0}, odd{0};
  std::jthread reader([&] {
    for (; !stop; ++backups) {
      auto db = open_sqlite(bench.path().string(), SQLITE_OPEN_READONLY, "reader").value();
      auto copy =
          open_sqlite(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "copy").value();
      sqlite3_backup* backup = sqlite3_backup_init(copy.get(), "main", db.get(), "main");
      sqlite3_backup_step(backup, -1);
      sqlite3_backup_finish(backup);
      auto seen =
          sqlite_query(copy.get(), "SELECT count(*), count(DISTINCT v) FROM orders", {}, "");
      if (!seen.ok()) continue;
      const auto& row = (*seen)[0];
      if (row[0] != "0" && (row[0] != std::to_string(rows) || row[1] != "1")) ++odd;
    }
  });
  for (int round = 0; round < 60 || backups < 5; ++round) {
    add_rows(bench, 0, rows, "round " + std::to_string(round));
    bench.must_write();
  }
  stop = true;
  reader.join();
  CHECK(odd == 0);
}

TEST_CASE("the log is emptied beside the writing and stays bounded") {
  SqliteBench bench(table_ddl, Mode::merge, {"id"}, {.soft = 64, .hard = 100'000});
  bench.start();
  const std::string big(3'000, 'x');
  std::int64_t most = 0;
  for (int round = 0; round < 150; ++round) {
    add_rows(bench, (round % 10) * 40, 40, big);
    bench.must_write();
    most = std::max(most, wal_bytes(bench));
  }
  // 150 rounds of some 40 pages would be 25 MB.
  CHECK(most < 8 << 20);
  CHECK(bench.table("SELECT count(*), min(length(v)), max(length(v)) FROM orders") ==
        Lines{"400|3000|3000"});
  CHECK(bench.query("PRAGMA integrity_check")[0][0] == "ok");
}

TEST_CASE("a reader that never ends stops the writing before the log grows past its limit") {
  SqliteBench bench(table_ddl, Mode::merge, {"id"}, {.soft = 16, .hard = 256});
  bench.start();
  Other reader(bench.path());
  reader.run("BEGIN");
  reader.read_something();
  const std::string big(3'000, 'x');
  std::optional<Failure> full;
  int written = 0;
  for (; written < 200 && !full; ++written) {
    add_rows(bench, 0, 40, big + std::to_string(written));
    if (auto done = bench.write(); !done) full = done.failure();
  }
  REQUIRE(full.has_value());
  CHECK(full->cls == FailureClass::transient);
  CHECK(full->what.find("write-ahead log") != std::string::npos);
  CHECK(wal_bytes(bench) < 400 * 4'200);
  reader.run("COMMIT");
  for (int round = 0; round < 20; ++round) {
    add_rows(bench, 0, 40, "after " + std::to_string(round));
    bench.must_write();
  }
  CHECK(bench.table("SELECT DISTINCT v FROM orders") == Lines{"after 19"});
}

TEST_CASE("cancel ends a write that waits for a lock, and the next write works") {
  SqliteBench bench(table_ddl);
  bench.start();
  Other other(bench.path());
  other.run("BEGIN IMMEDIATE");
  bench.add({num(1), str("a")});
  std::atomic<bool> over{false};
  std::jthread canceller([&] {
    // The write may not have begun at the first call.
    while (!over) {
      bench.target->cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const auto before = std::chrono::steady_clock::now();
  const auto done = bench.write();
  over = true;
  canceller.join();
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(4));
  REQUIRE_FALSE(done.ok());
  CHECK(done.failure().retryable());
  other.run("ROLLBACK");
  bench.add({num(1), str("a")});
  bench.must_write();
  CHECK(bench.table() == Lines{"1|a"});
}

TEST_CASE("cancel ends a write in the middle of a statement and leaves nothing of it") {
  SqliteBench bench(std::string(table_ddl) +
                    "; CREATE TABLE n(i); CREATE TRIGGER slow AFTER INSERT ON orders BEGIN"
                    " INSERT INTO n WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c"
                    " WHERE i < 1000000000) SELECT count(*) FROM c; END");
  bench.start();
  bench.add({num(1), str("a")});
  std::atomic<bool> over{false};
  std::jthread canceller([&] {
    while (!over) {
      bench.target->cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const auto done = bench.write();
  over = true;
  canceller.join();
  REQUIRE_FALSE(done.ok());
  CHECK(done.failure().cls == FailureClass::transient);
  CHECK(bench.table().empty());
}

TEST_CASE("a database that is moved or deleted while in use is noticed before the commit") {
  SqliteBench bench(table_ddl);
  bench.start();
  std::filesystem::rename(bench.path(), bench.path().string() + ".moved");
  bench.add({num(1), str("a")});
  const auto done = bench.write();
  REQUIRE_FALSE(done.ok());
  CHECK(done.failure().cls == FailureClass::setup);
  CHECK(done.failure().code == "SQLITE_READONLY_DBMOVED");
  CHECK_FALSE(std::filesystem::exists(bench.path()));
}

TEST_CASE("a table that changes under the writing is a failure by its code, not a crash") {
  SqliteBench bench(table_ddl);
  bench.start();
  Other other(bench.path());
  other.run("ALTER TABLE orders RENAME COLUMN v TO w");
  bench.add({num(1), str("a")});
  const auto done = bench.write();
  REQUIRE_FALSE(done.ok());
  CHECK(done.failure().cls == FailureClass::setup);
  CHECK(done.failure().effect == Effect::none);
}

TEST_CASE("a failure at each point before the commit leaves nothing, after it everything") {
  struct Case {
    std::string point;
    bool there;
    Effect effect;
  };
  for (const Case& c : {Case{"target_write.before", false, Effect::none},
                        Case{"target_write.torn", false, Effect::none},
                        Case{"target_commit.before", false, Effect::none},
                        Case{"target_commit.applied", true, Effect::unknown}}) {
    CAPTURE(c.point);
    SqliteBench bench(table_ddl, Mode::merge, {"id"});
    bench.start();
    add_rows(bench, 1, 4, "x");
    {
      const Armed armed(c.point + "=error:transient");
      const auto done = bench.write();
      REQUIRE_FALSE(done.ok());
      CHECK(done.failure().effect == c.effect);
    }
    CHECK(bench.table("SELECT count(*) FROM orders") == Lines{c.there ? "4" : "0"});
    add_rows(bench, 1, 4, "x");
    bench.must_write();
    CHECK(bench.table("SELECT group_concat(id), count(*) FROM orders") == Lines{"1,2,3,4|4"});
  }
}

TEST_CASE("a process that is killed at each point leaves a whole batch or none") {
  for (const auto& [point, there] : {std::pair{"target_write.torn", false},
                                     {"target_commit.before", false},
                                     {"target_commit.applied", true},
                                     {"target_commit.after", true}}) {
    CAPTURE(point);
    SqliteBench bench(table_ddl, Mode::merge, {"id"});
    const pid_t child = ::fork();
    if (child == 0) {
      if (!failure_point::arm(std::string(point) + "=kill").ok()) ::_exit(3);
      bench.start();
      add_rows(bench, 1, 4, "x");
      const auto done = bench.write();
      ::_exit(done.ok() ? 4 : 5);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK(bench.table("SELECT count(*) FROM orders") == Lines{there ? "4" : "0"});
    CHECK(bench.query("PRAGMA integrity_check")[0][0] == "ok");
  }
}

TEST_CASE("several workers that prepare, start and write to one database at once lose nothing") {
  for (int round = 0; round < 5; ++round) {
    SqliteBench bench(table_ddl, Mode::merge, {"id"});
    constexpr int workers = 4, batches = 10, rows = 20;
    std::atomic<int> failures{0};
    {
      std::vector<std::jthread> threads;
      for (int w = 0; w < workers; ++w) {
        threads.emplace_back([&, w] {
          SqliteBench own("", Mode::merge, {"id"});
          own.spec = bench.spec;
          auto schema = own.prepare();
          if (!schema || !own.target->start(own.plan = schema->columns, std::nullopt)) {
            ++failures;
            return;
          }
          for (int b = 0; b < batches; ++b) {
            add_rows(own, (w * batches + b) * rows, rows, "w" + std::to_string(w));
            if (!own.write()) ++failures;
          }
        });
      }
    }
    CHECK(failures == 0);
    for (int w = 0; w < workers; ++w) {
      CHECK(bench.table("SELECT count(*), min(id), max(id) FROM orders WHERE v = 'w" +
                        std::to_string(w) + "'") ==
            Lines{"200|" + std::to_string(w * 200) + "|" + std::to_string(w * 200 + 199)});
    }
  }
}
