// Replaying dead letters: which, how often, in which order, and what becomes of those that fail.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <doctest/doctest.h>
#include <map>

#include "tests/e2e/dlq_help.h"
#include "tests/support/kafka_help.h"
#include "tests/support/services.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Json bad_letter(std::int64_t offset, const std::optional<std::string>& key) {
  return letter(offset, R"({"id":"x","v":"bad"})", key);
}

std::string story_of(const DlqProgram& p, std::int64_t offset) {
  for (const Json& l : p.letters()) {
    if (l.at("offset") != offset) continue;
    const Finished f = p.flow().flow({"dlq", "show", l.at("id").dump(), p.flow().file()});
    return f.out.substr(std::min(f.out.find("\nstory"), f.out.size()));
  }
  return "no letter";
}

// The parts of `text` that come in this order; the first that does not.
std::string first_missing(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos) return part;
    at += part.size();
  }
  return "";
}

}  // namespace

TEST_CASE("a replay sends every letter once, in order, and a second one finds nothing to do") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import(good_letters(0, 50));
    const Json done = p.json({"replay"});
    CHECK(done.at("replayed") == 50);
    CHECK(done.at("left") == 0);
    CHECK(p.rows() == texts(0, 50));
    CHECK(p.offsets("replayed") == numbers(0, 50));
    CHECK(p.json({"replay"}).at("replayed") == 0);
    CHECK(p.rows() == texts(0, 50));
    CHECK(first_missing(story_of(p, 7), {"replay-", "replayed"}).empty());
  }
}

TEST_CASE("only the letters that the filters name are replayed") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import(good_letters(0, 9, 3));
    CHECK(p.json({"replay", "--key", "k1"}).at("replayed") == 3);
    CHECK(p.rows() == std::vector<std::string>{"1", "4", "7"});
    CHECK(p.json({"replay", "--limit", "2"}).at("replayed") == 2);
    CHECK(p.rows() == std::vector<std::string>{"1", "4", "7", "0", "2"});
    const std::string id = p.letters({"--status", "pending"}).back().at("id").dump();
    CHECK(p.json({"replay", "--id", id}).at("replayed") == 1);
    CHECK(p.rows() == std::vector<std::string>{"1", "4", "7", "0", "2", "8"});
    CHECK(p.offsets("pending") == std::vector<std::int64_t>{3, 5, 6});
  }
}

TEST_CASE("a dry run changes nothing and its snapshot is replayed though new letters arrive") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import(good_letters(0, 25));
    const Json plan = p.json({"replay", "--dry-run"});
    CHECK(plan.at("count") == 25);
    CHECK(plan.at("first").size() == 20);
    CHECK(p.rows().empty());
    CHECK(p.offsets("pending") == numbers(0, 25));
    p.import(good_letters(25, 30));
    const std::string snapshot = plan.at("snapshot");
    CHECK(p.letters({"--snapshot", snapshot}).size() == 25);
    CHECK(p.json({"replay", "--snapshot", snapshot}).at("replayed") == 25);
    CHECK(p.rows() == texts(0, 25));
    CHECK(p.offsets("pending") == numbers(25, 30));
  }
}

TEST_CASE("a letter that fails again is tried once a replay, keeps its history, and is parked") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import({good_letters(0, 1)[0], bad_letter(1, "k"), good_letters(2, 3)[0]});
    const Json first = p.json({"replay"}, 65);
    CHECK(first.at("replayed") == 2);
    CHECK(first.at("failed") == 1);
    CHECK(p.rows() == std::vector<std::string>{"0", "2"});
    CHECK(p.offsets("pending") == numbers(1, 2));
    CHECK(p.json({"replay"}, 65).at("failed") == 1);
    CHECK(p.json({"replay"}, 65).at("parked") == 1);
    CHECK(p.letters().size() == 3);
    CHECK(p.letters({"--status", "parked"}).at(0).at("replays") == 3);
    CHECK(p.json({"replay"}).at("replayed") == 0);
    CHECK(p.json({"retry-parked"}).at("changed") == 1);
    CHECK(p.json({"replay"}, 65).at("parked") == 1);
    CHECK(first_missing(story_of(p, 1),
                        {"failed: ", "failed: ", "parked: ", "pending again", "parked: "})
              .empty());
    CHECK(p.rows() == std::vector<std::string>{"0", "2"});
  }
}

TEST_CASE("stop ends the replay at the first letter that fails again") {
  const DlqProgram p(in_sqlite());
  auto letters = good_letters(0, 300);
  letters[10] = bad_letter(10, "k1");
  p.import(letters);
  const Json done = p.json({"replay", "--yes", "--on-poison", "stop"}, 65);
  CHECK(done.at("failed") == 1);
  CHECK(done.at("replayed") == 99);  // the rest of its batch
  CHECK(done.at("error").at("exit_code") == 65);
  CHECK(p.offsets("replaying").empty());
  CHECK(p.offsets("pending").size() == 201);
  CHECK(p.rows().size() == 99);
}

TEST_CASE(
    "park_key keeps what comes later for a key behind its parked letter, in later replays too") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    std::vector<Json> letters = good_letters(0, 12, 3);
    letters[4] = bad_letter(4, "k1");
    p.import(letters);
    const Json done = p.json({"replay", "--on-poison", "park_key"}, 65);
    CHECK(done.at("parked") == 3);  // 4 and, behind it, 7 and 10
    CHECK(p.offsets("parked") == std::vector<std::int64_t>{4, 7, 10});
    auto rows = p.rows();
    std::sort(rows.begin(), rows.end());
    CHECK(rows == std::vector<std::string>{"0", "1", "11", "2", "3", "5", "6", "8", "9"});
    p.import(good_letters(12, 15, 3));
    CHECK(p.json({"replay", "--on-poison", "park_key"}, 65).at("parked") == 1);
    CHECK(p.offsets("parked") == std::vector<std::int64_t>{4, 7, 10, 13});
    CHECK(first_missing(story_of(p, 13), {"behind letter"}).empty());
    // Mended and retried, the key's letters come in their order.
    p.target(DlqProgram::sqlite_append(), "");
    const std::string id = p.letters({"--key", "k1", "--limit", "2"}).at(1).at("id").dump();
    p.flow().dir().write(
        "edit.jsonl", "{\"id\": " + id + ", \"value\": \"{\\\"id\\\":4,\\\"v\\\":\\\"m\\\"}\"}\n");
    CHECK(p.json({"retry-parked"}).at("changed") == 4);
    CHECK(p.json({"replay", "--on-poison", "park_key", "--edit", "edit.jsonl"}).at("replayed") ==
          4);
    rows = p.rows();
    CHECK(std::vector<std::string>(rows.end() - 4, rows.end()) ==
          std::vector<std::string>{"4", "7", "10", "13"});
  }
}

TEST_CASE("the order of each key is kept, whatever the batches, the rate and the place") {
  for (const auto& place : letter_places()) {
    for (const char* how : {"park", "park_key"}) {
      const DlqProgram p(place());
      CAPTURE(p.place().name);
      CAPTURE(how);
      p.import(good_letters(0, 200, 7));
      REQUIRE(p.json({"replay", "--yes", "--on-poison", how, "--rate", "2000/s"}).at("replayed") ==
              200);
      std::map<int, std::vector<int>> by_key, wanted;
      for (const std::string& id : p.rows()) by_key[std::stoi(id) % 7].push_back(std::stoi(id));
      for (int i = 0; i < 200; ++i) wanted[i % 7].push_back(i);
      CHECK(by_key == wanted);
    }
  }
}

TEST_CASE("a rate is held within one part in twenty") {
  const DlqProgram p(in_sqlite());
  p.import(good_letters(0, 700));
  const auto timed = [&](std::vector<std::string> words) {
    const auto start = std::chrono::steady_clock::now();
    p.json(std::move(words));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double around = timed({"replay", "--limit", "1"});  // all but the letters
  const double took = timed({"replay", "--limit", "600", "--yes", "--rate", "200/s"});
  CHECK(took > 3.0 * 0.95);
  CHECK(took < 3.0 * 1.05 + around + 0.3);
}

TEST_CASE("two replays at once send each letter once") {
  for (const auto& place : {in_sqlite, in_postgres}) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import(good_letters(0, 2'000));
    Process a(p.command({"replay", "--yes", "--output", "json"}));
    Process b(p.command({"replay", "--yes", "--output", "json"}));
    CHECK(a.wait() == Ended{0, 0});
    CHECK(b.wait() == Ended{0, 0});
    const std::int64_t sum = Json::parse(a.out()).at("replayed").get<std::int64_t>() +
                             Json::parse(b.out()).at("replayed").get<std::int64_t>();
    CHECK(sum == 2'000);
    CHECK(p.rows() == texts(0, 2'000));
    CHECK(p.offsets("replayed") == numbers(0, 2'000));
  }
}

TEST_CASE("a replay that is told to stop finishes its batch, and the next one does the rest") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import(good_letters(0, 400));
    Process replay(p.command({"replay", "--yes", "--rate", "200/s", "--output", "json"}));
    REQUIRE(wait_for(seconds(30), [&] { return !p.rows().empty(); }));
    replay.kill(SIGTERM);
    CHECK(replay.wait() == Ended{0, 0});
    const Json done = Json::parse(replay.out());
    CHECK(done.at("left") > 0);
    CHECK(p.offsets("replaying").empty());
    CHECK(p.rows().size() == done.at("replayed"));
    CHECK(p.json({"replay", "--yes"}).at("replayed") == done.at("left"));
    CHECK(p.rows() == texts(0, 400));
  }
}

TEST_CASE(
    "letters for a target that the pipeline does not have are refused before anything is sent") {
  const DlqProgram p(in_sqlite());
  p.import({good_letters(0, 1)[0], letter(1, json_line(1), std::nullopt, "sqlite:tt")});
  const Finished f = p.dlq({"replay"});
  CHECK(f.ended == Ended{78, 0});
  CHECK(f.err.find("sqlite:tt") != std::string::npos);
  CHECK(f.err.find("did you mean \"sqlite:t\"") != std::string::npos);
  CHECK(p.rows().empty());
  CHECK(p.json({"replay", "--target", "sqlite:t"}).at("replayed") == 1);
}

TEST_CASE("a patch changes one field of what is sent, keeps every other digit, and the original") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    const std::string value = R"({"id": 9007199254740993, "v": 1.50, "x": 1e2})";
    p.import({letter(0, value)});
    p.target(DlqProgram::sqlite_append());
    CHECK(p.json({"replay", "--patch", "$.v = \"paid\""}).at("replayed") == 1);
    CHECK(p.rows() == std::vector<std::string>{"9007199254740993"});
    CHECK(p.rows("v") == std::vector<std::string>{"paid"});
    CHECK(p.letters().at(0).at("value") == value);
    CHECK(first_missing(story_of(p, 0), {"replayed", "changed", "$.v"}).empty());
  }
}

TEST_CASE("a change that does not help leaves the original as it was") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import({bad_letter(0, "k")});
    const auto before = p.letters().at(0);
    CHECK(p.json({"replay", "--patch", "$.id = \"worse\""}, 65).at("failed") == 1);
    const auto after = p.letters().at(0);
    CHECK(after.at("value") == before.at("value"));
    CHECK(after.at("attempts") == before.at("attempts"));
  }
}

TEST_CASE("an outage during a replay is waited for and costs no letter an attempt") {
  const DlqProgram p(in_sqlite(),
                     "targets: [{kind: postgres, label: 'sqlite:t', url: "
                     "'postgres://flow@127.0.0.1:1/flow', table: public.t}]\n");
  p.import(good_letters(0, 3));
  Process replay(p.command({"replay"}));
  REQUIRE(wait_for(seconds(30), [&] { return replay.err().find("retry") != std::string::npos; }));
  replay.kill(SIGTERM);
  replay.wait();
  CHECK(p.offsets("pending") == numbers(0, 3));
  for (const Json& l : p.letters()) CHECK(l.at("replays") == 0);
  p.target(DlqProgram::sqlite_append());
  CHECK(p.json({"replay"}).at("replayed") == 3);
}

TEST_CASE("letters of several targets are each replayed into their own") {
  const std::string two =
      "targets:\n  - {kind: sqlite, url: 'sqlite:out.db', table: t, mode: append, create_table: "
      "true}\n  - {kind: file, label: archive, path: archive.jsonl}\n";
  const DlqProgram p(in_sqlite(), two);
  p.flow().dir().write("in.jsonl", json_lines(100, 102));
  REQUIRE(p.flow().run({}).ended == Ended{0, 0});
  p.import({letter(0, json_line(0), "a"), letter(0, json_line(0), "a", "archive"),
            letter(1, json_line(1), "a", "archive")});
  CHECK(p.json({"replay", "--limit", "2"}).at("replayed") == 2);
  CHECK(p.json({"replay"}).at("replayed") == 1);
  CHECK(p.rows() == std::vector<std::string>{"100", "101", "0"});
  const std::string archived = json_lines(100, 102) + json_lines(0, 2);
  CHECK(read_file(p.flow().dir() / "archive.jsonl") == archived);
  // The next run goes on after what the replay wrote.
  p.flow().dir().append("in.jsonl", json_lines(102, 103));
  REQUIRE(p.flow().run({}).ended == Ended{0, 0});
  CHECK(read_file(p.flow().dir() / "archive.jsonl") == archived + json_lines(102, 103));
}
