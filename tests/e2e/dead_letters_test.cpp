// Rows and dead letters of a batch are one transaction where the target's database holds the state:
// SIGKILL at each step of the write, then a plain run; compared by identity.
#include <csignal>
#include <doctest/doctest.h>
#include <memory>
#include <set>

#include "core/failure_point.h"
#include "tests/e2e/flow_program.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"

using namespace flow;
using namespace flow::test;

namespace {

constexpr int records = 450;
constexpr int batch = 100;

using Ids = std::set<int>;

bool is_bad(int id) { return id % 10 == 3; }

std::string pipeline(const std::string& target, const std::string& state) {
  return "name: letters\n"
         "source: {kind: file, path: in.jsonl, batch: {records: " +
         std::to_string(batch) +
         "}}\n"
         "columns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n"
         "transform_on_error: dlq\n"
         "targets: [{" +
         target + ", mode: merge, key: [id]}]\nstate: '" + state + "'\n";
}

int id_in(const std::string& value) { return std::stoi(value.substr(value.find(':') + 1)); }

// A database that is both the state and the home of a table that refuses the bad ids.
class SqliteHome {
 public:
  SqliteHome()
      : flow_(pipeline("kind: sqlite, url: 'sqlite:flow.db', table: t", "sqlite:flow.db")) {
    // The state is made first: a database that is none yet is not taken for one.
    flow_.dir().write("in.jsonl", "");
    REQUIRE(flow_.flow({"run", "--until-end", flow_.file()}).ended.code != 0);
    sqlite_query(path(),
                 "CREATE TABLE t (id INTEGER PRIMARY KEY CHECK (id % 10 <> 3), v TEXT) STRICT");
  }
  const FlowProgram& flow() const { return flow_; }
  Ids rows() const { return ids("SELECT 'x:' || id FROM t"); }
  Ids letters() const { return ids("SELECT CAST(value AS TEXT) FROM dead_letter_records"); }
  std::size_t letter_count() const {
    return sqlite_query(path(), "SELECT id FROM dead_letters").size();
  }

 private:
  std::filesystem::path path() const { return flow_.dir() / "flow.db"; }
  Ids ids(const std::string& sql) const {
    Ids all;
    for (const auto& row : sqlite_query(path(), sql)) all.insert(id_in(*row[0]));
    return all;
  }
  FlowProgram flow_;
};

class PostgresHome {
 public:
  PostgresHome() : name_(unique_name("letters")) {
    pg_query(services().postgres, "CREATE DATABASE " + name_);
    const std::string server = services().postgres;
    url_ = server.substr(0, server.rfind('/') + 1) + name_;
    pg_query(url_, "CREATE TABLE t (id bigint PRIMARY KEY CHECK (id % 10 <> 3), v text)");
    flow_ = std::make_unique<FlowProgram>(
        pipeline("kind: postgres, url: '" + url_ + "', table: public.t", url_));
  }
  ~PostgresHome() {
    try {
      pg_query(services().postgres, "DROP DATABASE " + name_ + " WITH (FORCE)");
    } catch (const std::exception& e) {
      MESSAGE(e.what());
    }
  }
  PostgresHome(const PostgresHome&) = delete;
  PostgresHome& operator=(const PostgresHome&) = delete;

  const FlowProgram& flow() const { return *flow_; }
  Ids rows() const { return ids("SELECT 'x:' || id FROM t"); }
  Ids letters() const {
    if (!pg_query(url_, "SELECT to_regclass('flow.dead_letters')")[0][0]) return {};
    return ids("SELECT convert_from(value, 'UTF8') FROM flow.dead_letter_records");
  }
  std::size_t letter_count() const {
    return pg_query(url_, "SELECT id FROM flow.dead_letters").size();
  }

 private:
  Ids ids(const std::string& sql) const {
    Ids all;
    for (const auto& row : pg_query(url_, sql)) all.insert(id_in(*row[0]));
    return all;
  }
  std::string name_, url_;
  std::unique_ptr<FlowProgram> flow_;
};

// Of each batch both rows and letters are there, whole, or neither is.
void check_together(const Ids& rows, const Ids& letters) {
  for (int first = 0; first < records; first += batch) {
    const int end = std::min(records, first + batch);
    int rows_there = 0, letters_there = 0, good = 0;
    for (int id = first; id < end; ++id) {
      rows_there += rows.contains(id) ? 1 : 0;
      letters_there += letters.contains(id) ? 1 : 0;
      good += is_bad(id) ? 0 : 1;
    }
    CAPTURE(first);
    const bool written = rows_there > 0 || letters_there > 0;
    CHECK(rows_there == (written ? good : 0));
    CHECK(letters_there == (written ? end - first - good : 0));
  }
}

}  // namespace

TYPE_TO_STRING(SqliteHome);
TYPE_TO_STRING(PostgresHome);

TEST_CASE_TEMPLATE("a kill never parts the rows of a batch from its dead letters", Home, SqliteHome,
                   PostgresHome) {
  for (const Point point :
       {Point::target_write_before, Point::target_write_torn, Point::target_commit_before,
        Point::target_commit_applied, Point::target_commit_after, Point::apply_to_targets_after,
        Point::commit_position_before, Point::commit_position_after}) {
    CAPTURE(name_of(point));
    const Home home;
    home.flow().dir().write("in.jsonl", json_lines(0, records));
    const auto killed = home.flow().run(
        {"--until-end", "--failure-point", std::string(name_of(point)) + "@3=kill"});
    REQUIRE(killed.ended.signal == SIGKILL);
    check_together(home.rows(), home.letters());
    const auto plain = home.flow().run({"--until-end"});
    CHECK_MESSAGE(plain.ended.code == 0, plain.err);
    Ids good, bad;
    for (int id = 0; id < records; ++id) (is_bad(id) ? bad : good).insert(id);
    CHECK(home.rows() == good);
    CHECK(home.letters() == bad);
    CHECK(home.letter_count() == bad.size());
  }
}
