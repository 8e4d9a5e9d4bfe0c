// Bad records among good ones, from the pipeline file to the letters, killed wherever it hurts.
#include <csignal>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <set>

#include "core/failure_point.h"
#include "tests/e2e/letters_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"

using namespace flow;
using namespace flow::test;

namespace {

constexpr int records = 400;

// Of every twenty records one does not parse, one does not fit its column, one breaks a constraint.
bool is_bad(int id) { return id % 20 == 3 || id % 20 == 7 || id % 20 == 11; }

std::string line_of(int id) {
  const std::string n = std::to_string(id);
  if (id % 20 == 3) return "not json " + n;
  if (id % 20 == 7) return R"({"id":"x)" + n + R"(","v":"v"})";
  if (id % 20 == 11) return R"({"id":)" + n + R"(,"v":"bad"})";
  return json_line(id);
}

std::string input() {
  std::string out;
  for (int id = 0; id < records; ++id) out += line_of(id) + "\n";
  return out;
}

// Where the rows and the letters go, and how a test counts the rows.
struct Place {
  std::string targets;
  std::string state;
  std::function<void(const FlowProgram&)> prepare;
  std::function<Tally(const FlowProgram&)> tally;
  bool together = false;  // letters of refused rows are in the target's own transaction
  std::shared_ptr<void> owned = nullptr;
};

Place sqlite_place(const std::string& state, bool together) {
  Place p;
  p.targets = "[{kind: sqlite, url: 'sqlite:out.db', table: t, mode: merge, key: [id]}]";
  p.state = "sqlite:" + state;
  p.together = together;
  p.prepare = [](const FlowProgram& flow) {
    // The state's own file must be the state's first.
    const Finished made = flow.run({"--limit", "1"});
    if (made.ended != Ended{0, 0} && made.ended != Ended{78, 0}) FAIL(made.err);
    sqlite_query(flow.dir() / "out.db",
                 "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT CHECK (v <> 'bad'))");
  };
  p.tally = [](const FlowProgram& flow) {
    Tally tally;
    for (const auto& row : sqlite_query(flow.dir() / "out.db", "SELECT id FROM t"))
      ++tally[std::stoi(*row[0])];
    return tally;
  };
  return p;
}

Place postgres_place(bool together) {
  auto schema = std::make_shared<PgSchema>(services().postgres, "bad");
  Place p;
  p.targets = "[{kind: postgres, url: '" + services().postgres + "', table: " + schema->table("t") +
              ", mode: append}]";
  p.state = together ? services().postgres : "sqlite:flow.db";
  p.together = together;
  p.prepare = [schema](const FlowProgram&) {
    schema->query("CREATE TABLE t (id bigint, v text CHECK (v <> 'bad'))");
  };
  p.tally = [schema](const FlowProgram&) {
    Tally tally;
    for (const auto& row : schema->query("SELECT DISTINCT id FROM t")) ++tally[std::stoi(*row[0])];
    return tally;
  };
  p.owned = schema;
  return p;
}

std::string pipeline(const Place& place, const std::string& extra = "") {
  return "name: " + unique_name("bad") + "\n" +
         "source: {kind: file, path: in.jsonl, batch: {records: 100}}\n"
         "columns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n"
         "targets: " +
         place.targets + "\ntransform_on_error: dlq\nstate: " + place.state + "\n" + extra;
}

// Every good record is a row, every bad one a letter, nothing is both or twice.
void check_whole(const FlowProgram& flow, const Place& place) {
  const Tally rows = place.tally(flow);
  auto letters = letter_values(flow);
  std::vector<int> missing, doubled, both;
  for (int id = 0; id < records; ++id) {
    const int row = rows.contains(id) ? rows.at(id) : 0;
    const int letter = letters[line_of(id)];
    if (row + letter == 0) missing.push_back(id);
    if (row > 1 || letter > 1) doubled.push_back(id);
    if (row > 0 && letter > 0) both.push_back(id);
    if (is_bad(id) ? row > 0 : letter > 0) both.push_back(id);
  }
  CHECK(missing == std::vector<int>{});
  CHECK(doubled == std::vector<int>{});
  CHECK(both == std::vector<int>{});
  CHECK(letters_of(flow).size() == 60);
}

std::vector<Point> points_of(const Place& place) {
  std::vector<Point> points = {Point::store_dead_letters_before, Point::store_dead_letters_after,
                               Point::apply_to_targets_before,   Point::target_write_before,
                               Point::target_write_torn,         Point::target_commit_before,
                               Point::target_commit_applied,     Point::target_commit_after,
                               Point::apply_to_targets_after,    Point::commit_position_before,
                               Point::commit_position_applied,   Point::commit_position_after};
  if (!place.together) {
    points.push_back(Point::store_dead_letters_applied);
    points.push_back(Point::store_refused_before);
    points.push_back(Point::store_refused_applied);
    points.push_back(Point::store_refused_after);
  }
  return points;
}

// Killed at each point, killed there again in the recovery, then run to the end.
void crash_everywhere(const std::function<Place()>& make) {
  const Place probe = make();
  for (const Point point : points_of(probe)) {
    CAPTURE(name_of(point));
    const Place place = make();
    const FlowProgram flow(pipeline(place));
    place.prepare(flow);
    flow.dir().write("in.jsonl", input());
    for (const char* which : {"@2=kill", "@1=kill"}) {
      const Finished killed = flow.run({"--failure-point", std::string(name_of(point)) + which});
      CAPTURE(killed.err);
      REQUIRE(killed.ended == Ended{-1, SIGKILL});
    }
    const Finished again = flow.run({});
    CAPTURE(again.err);
    REQUIRE(again.ended == Ended{0, 0});
    check_whole(flow, place);
  }
}

}  // namespace

TEST_CASE("killed at every point: rows and letters in one SQLite file are whole") {
  crash_everywhere([] { return sqlite_place("out.db", true); });
}

TEST_CASE("killed at every point: rows in SQLite and letters in a state elsewhere are whole") {
  crash_everywhere([] { return sqlite_place("flow.db", false); });
}

TEST_CASE("killed at every point: rows and letters in one Postgres database are whole") {
  crash_everywhere([] { return postgres_place(true); });
}

TEST_CASE("killed at every point: rows in Postgres and letters in a state elsewhere are whole") {
  crash_everywhere([] { return postgres_place(false); });
}

TEST_CASE("where the target's database holds the letters no refused row waits for another store") {
  for (const Place& place : {sqlite_place("out.db", true), postgres_place(true)}) {
    const FlowProgram flow(pipeline(place));
    place.prepare(flow);
    flow.dir().write("in.jsonl", input());
    const Finished done = flow.run({"--failure-point", "store_refused.before=kill"});
    CHECK(done.ended == Ended{0, 0});
    check_whole(flow, place);
  }
}

TEST_CASE("a bad record of each stage becomes a letter that names stage, class and code") {
  struct Case {
    std::string line, stage, code;
  };
  const std::vector<Case> cases = {
      {"not json", "decode", "decode.json"},
      {"5", "decode", "decode.json"},
      {R"({"id":1})", "decode", "decode.missing"},
      {R"({"id":-7,"v":"v"})", "transform", "transform.error"},
      {R"({"id":"abc","v":"v"})", "cast", "cast.type"},
      {R"({"id":99999999999999999999,"v":"v"})", "cast", "cast.range"},
      {R"({"id":null,"v":"v"})", "cast", "cast.null"},
      {R"({"id":2,"v":"too long for it"})", "cast", "cast.range"},
      {R"({"id":3,"v":"bad"})", "target", "23514"},
  };
  const PgSchema schema(services().postgres, "stages");
  schema.query("CREATE TABLE t (id bigint NOT NULL, v varchar(8) CHECK (v <> 'bad'))");
  const FlowProgram flow(
      "name: stages\nsource: {kind: file, path: in.jsonl}\n"
      "columns: {id: $.id, v: {from: $.v, required: true}}\n"
      "transform:\n  - sql: SELECT CASE WHEN id = -7 THEN abs(-9223372036854775807 - 1) ELSE id "
      "END AS id, v FROM source\n"
      "targets: [{kind: postgres, url: '" +
      services().postgres + "', table: " + schema.table("t") +
      "}]\ntransform_on_error: dlq\ndlq_limit: {of_batch: 100%}\nstate: sqlite:flow.db\n");
  std::string in = json_line(100) + "\n";
  for (const Case& c : cases) in += c.line + "\n" + json_line(101) + "\n";
  flow.dir().write("in.jsonl", in);
  const Finished done = flow.run({});
  CAPTURE(done.err);
  CHECK(done.ended == Ended{0, 0});
  const auto letters = letters_of(flow);
  REQUIRE(letters.size() == cases.size());
  std::map<std::string, std::pair<std::string, std::string>> found;
  for (const auto& l : letters)
    found[l["value"]] = {l["stage"].get<std::string>(), l["code"].get<std::string>()};
  for (const Case& c : cases) {
    CAPTURE(c.line);
    CHECK(found[c.line].first == c.stage);
    CHECK(found[c.line].second == c.code);
  }
  CHECK(schema.query("SELECT count(*) FROM t")[0][0] == "10");
}

TEST_CASE("a run with dead letters ends with their number by class and the command that works") {
  const Place place = sqlite_place("flow.db", false);
  const FlowProgram flow(pipeline(place));
  place.prepare(flow);
  flow.dir().write("in.jsonl", input());
  const Finished done = flow.run({});
  CHECK(done.err.find("60 dead letters stored in this run (60 invalid)") != std::string::npos);
  const auto at = done.err.find("flow dlq list ");
  REQUIRE(at != std::string::npos);
  std::istringstream words(done.err.substr(at + 5, done.err.find('\n', at) - at - 5));
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  const Finished listed = flow.flow(arguments);
  CHECK(listed.ended == Ended{0, 0});
  CHECK(listed.out.find("cast.type") != std::string::npos);
}

TEST_CASE("a wrong transform makes no flood of letters: exit 65, the position before it") {
  const Place place = sqlite_place("flow.db", false);
  const FlowProgram flow(pipeline(place));
  place.prepare(flow);
  std::string in = json_lines(0, 120);
  for (int i = 120; i < 10'000; ++i) in += R"({"ident":)" + std::to_string(i) + "}\n";
  flow.dir().write("in.jsonl", in);
  for (int again = 0; again < 2; ++again) {
    const Finished done = flow.run({});
    CAPTURE(done.err);
    CHECK(done.ended == Ended{65, 0});
    CHECK(done.err.find("dlq_limit.of_batch") != std::string::npos);
    CHECK(place.tally(flow).size() == 100);
    CHECK(letters_of(flow).size() == 0);
  }
}

TEST_CASE("a foreign key that is satisfied meanwhile makes no letter; attempts outlive the run") {
  const PgSchema schema(services().postgres, "parents");
  schema.query(
      "CREATE TABLE parents (k text PRIMARY KEY); INSERT INTO parents VALUES ('here'); "
      "CREATE TABLE t (id bigint, v text REFERENCES parents)");
  const FlowProgram flow(
      "name: parents\nsource: {kind: file, path: in.jsonl}\ntargets: [{kind: postgres, url: '" +
      services().postgres + "', table: " + schema.table("t") +
      "}]\ntransform_on_error: dlq\nretry: {initial: 10ms, max: 10ms}\nstate: sqlite:flow.db\n");
  flow.dir().write("in.jsonl", "{\"id\":1,\"v\":\"here\"}\n{\"id\":2,\"v\":\"late\"}\n");
  // The first attempt is counted, then the run dies before the second.
  const Finished killed = flow.run({"--failure-point", "target_write.before@2=kill"});
  REQUIRE(killed.ended == Ended{-1, SIGKILL});
  CHECK(sqlite_query(flow.dir() / "flow.db", "SELECT made FROM attempts")[0][0] == "1");
  SUBCASE("the parent comes") {
    schema.query("INSERT INTO parents VALUES ('late')");
    CHECK(flow.run({}).ended == Ended{0, 0});
    CHECK(letters_of(flow).empty());
    CHECK(schema.query("SELECT DISTINCT id FROM t ORDER BY 1") == std::vector<PgRow>{{"1"}, {"2"}});
  }
  SUBCASE("the parent does not come: two attempts more, not three") {
    CHECK(flow.run({}).ended == Ended{0, 0});
    const auto letters = letters_of(flow);
    REQUIRE(letters.size() == 1);
    CHECK(letters[0]["class"] == "poison");
    CHECK(letters[0]["attempts"] == 3);
    CHECK(letters[0]["run"] != "");
  }
  CHECK(sqlite_query(flow.dir() / "flow.db", "SELECT made FROM attempts").empty());
}

TEST_CASE("a record that kills each run is found and set aside when crash_loop_limit says so") {
  const Place place = sqlite_place("flow.db", false);
  const FlowProgram flow(pipeline(place, "crash_loop_limit: 2\n"));
  place.prepare(flow);
  flow.dir().write("in.jsonl", json_lines(0, 2));
  // Twice with both records in hand, then with the first alone: that one is blamed.
  for (int i = 0; i < 3; ++i) {
    CHECK(letters_of(flow).empty());
    const Finished killed = flow.run({"--failure-point", "target_write.before=kill"});
    CAPTURE(killed.err);
    REQUIRE(killed.ended == Ended{-1, SIGKILL});
  }
  const Finished done = flow.run({});
  CAPTURE(done.err);
  CHECK(done.ended == Ended{0, 0});
  const auto letters = letters_of(flow);
  REQUIRE(letters.size() == 1);
  CHECK(letters[0]["class"] == "poison");
  CHECK(letters[0]["code"] == "crash_loop");
  CHECK(letters[0]["value"] == json_line(0));
  CHECK(place.tally(flow) == Tally{{1, 1}});
}
