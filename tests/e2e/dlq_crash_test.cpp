// SIGKILL of a replay at each durable boundary, then a plain replay; compared by identity.
#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <functional>
#include <set>

#include "core/failure_point.h"
#include "tests/e2e/dlq_help.h"
#include "tests/support/services.h"

using namespace flow;
using namespace flow::test;

namespace {

constexpr int letters = 350;
constexpr int batch = 100;

// Boundaries that a replay passes.
std::vector<std::string> replay_points() {
  std::vector<std::string> out;
  for (const Point p : all_points()) {
    const std::string name(name_of(p));
    const bool of_run =
        name.starts_with("open_run") || name.starts_with("close_run") || name.starts_with("drain");
    if (!of_run) out.push_back(name);
  }
  return out;
}

// Where a replay into SQLite must have died, or the test proves nothing.
const std::set<std::string> must_fire{"read.after",
                                      "decode.after",
                                      "transform.after",
                                      "store_dead_letters.before",
                                      "store_dead_letters.applied",
                                      "store_dead_letters.after",
                                      "apply_to_targets.before",
                                      "target_commit.before",
                                      "target_commit.applied",
                                      "target_commit.after",
                                      "apply_to_targets.after",
                                      "commit_position.before",
                                      "commit_position.after"};

void check_crashes(const LetterPlace& place, const std::string& target, bool exact) {
  std::set<std::string> left = must_fire;
  for (const std::string& point : replay_points()) {
    for (const char* time : {"@1", "@2"}) {
      CAPTURE(point);
      CAPTURE(time);
      const DlqProgram p(place, target);
      auto all = good_letters(0, letters, 5);
      all[150] = letter(150, R"({"id":"x"})", "k0");
      p.import(all);
      Command c = p.command({"replay", "--yes", "--failure-point", point + time + "=kill"});
      const Finished killed = run(c);
      const bool fired = killed.ended == Ended{-1, SIGKILL};
      if (fired) left.erase(point);
      if (!fired) CHECK(killed.ended == Ended{65, 0});  // 150 fails again
      const Finished next = p.dlq({"replay", "--yes"});
      CHECK(next.ended == Ended{65, 0});
      CHECK(p.offsets("replaying").empty());
      CHECK(p.offsets("replayed").size() == letters - 1);
      CHECK(p.letters().size() == letters);
      Tally tally;
      for (const std::string& id : p.rows()) ++tally[std::stoi(id)];
      const Differences d = differences(tally, letters);
      CHECK(d.missing == std::vector<int>{150});
      CHECK(d.strangers.empty());
      CHECK(d.repeated.size() <= (exact ? 0U : static_cast<std::size_t>(batch)));
      for (const auto& [id, times] : tally) CHECK(times <= (exact ? 1 : 2));
      for (const Json& l : p.letters({"--status", "replayed"})) CHECK(l.at("replays") <= 2);
    }
  }
  CHECK(left == std::set<std::string>{});
}

void check_second_batch(const std::function<LetterPlace()>& place,
                        const std::vector<std::string>& points) {
  for (const std::string& point : points) {
    CAPTURE(point);
    const DlqProgram p(place());
    p.import(good_letters(0, letters));
    const Finished killed =
        run(p.command({"replay", "--yes", "--failure-point", point + "@2=kill"}));
    CHECK(killed.ended == Ended{-1, SIGKILL});
    CHECK(p.dlq({"replay", "--yes"}).ended == Ended{0, 0});
    CHECK(p.offsets("replayed") == numbers(0, letters));
    std::set<int> rows;
    for (const std::string& id : p.rows()) rows.insert(std::stoi(id));
    CHECK(rows.size() == letters);
    CHECK(p.rows().size() <= letters + batch);
  }
}

}  // namespace

TEST_CASE("a replay killed at any boundary loses no letter and repeats at most one batch: SQLite") {
  check_crashes(in_sqlite(), DlqProgram::sqlite_append(), false);
}

TEST_CASE("a replay killed at any boundary loses no letter and doubles no row of a merge: SQLite") {
  check_crashes(in_sqlite(), DlqProgram::sqlite_merge(), true);
}

TEST_CASE("a replay killed in its second batch loses no letter: letters in Postgres") {
  check_second_batch(in_postgres,
                     {"read.after", "transform.after", "apply_to_targets.before",
                      "target_commit.before", "target_commit.applied", "target_commit.after",
                      "apply_to_targets.after", "commit_position.before", "commit_position.after"});
}

TEST_CASE("a replay killed in its second batch loses no letter: letters in a topic") {
  check_second_batch(in_topic, {"read.after", "target_commit.applied", "commit_position.before",
                                "commit_position.after"});
}

TEST_CASE("a replay killed again and again ends with every letter replayed") {
  const DlqProgram p(in_sqlite());
  p.import(good_letters(0, letters));
  for (const char* point : {"target_commit.applied@1", "commit_position.before@1",
                            "apply_to_targets.after@2", "read.after@3"}) {
    run(p.command({"replay", "--yes", "--failure-point", std::string(point) + "=kill"}));
  }
  CHECK(p.dlq({"replay", "--yes"}).ended == Ended{0, 0});
  CHECK(p.offsets("replayed") == numbers(0, letters));
  std::set<int> rows;
  for (const std::string& id : p.rows()) rows.insert(std::stoi(id));
  CHECK(rows.size() == letters);
}
