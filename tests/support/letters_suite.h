#pragma once
// What every store of dead letters promises. A test file names its worlds:
// LETTERS_SUITE(SqliteLetters, PostgresLetters). A world is a store that is new at first;
// process() opens it as another process would.
#include <algorithm>
#include <doctest/doctest.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/state.h"

namespace flow::test {

struct LetterProcess {
  std::unique_ptr<StateStore> state;
  std::unique_ptr<DeadLetterStore> letters;
};

template <class T>
T must_have(Result<T> result) {
  if (!result) throw std::runtime_error(result.failure().text());
  return std::move(result).value();
}
inline void must_do(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.failure().text());
}

inline DeadLetter a_letter(std::int64_t offset, const std::string& target = "postgres:orders") {
  DeadLetter l;
  l.pipeline = "orders";
  l.version = "v1";
  l.target = target;
  l.origin = {"orders.in", 0};
  l.offset = {offset};
  l.key = "k" + std::to_string(offset % 3);
  l.value = "value " + std::to_string(offset);
  l.timestamp_ms = 1'700'000'000'000 + offset;
  l.stage = "cast";
  l.code = "cast.number";
  l.error = "column amount: not a number";
  l.first_failed_ms = 1'000 + offset;
  l.last_failed_ms = 1'000 + offset;
  l.run_id = "run-1";
  l.operation_id = "orders.in/0/" + std::to_string(offset);
  return l;
}

inline std::vector<DeadLetter> letters_from(std::int64_t first, std::int64_t count) {
  std::vector<DeadLetter> letters;
  for (std::int64_t i = 0; i < count; ++i) letters.push_back(a_letter(first + i));
  return letters;
}

inline std::string shown_bytes(const std::optional<std::string>& bytes) {
  if (!bytes) return "null";
  std::string text = "'";
  for (const char c : *bytes) {
    const bool plain = c >= ' ' && c < 127 && c != '\\';
    text += plain ? std::string(1, c) : "\\" + std::to_string(static_cast<unsigned char>(c));
  }
  return text + "'";
}

// All that a letter says but its id.
inline std::string shown(const DeadLetter& l) {
  std::string text = l.pipeline + " " + l.version + " " + l.target + " " + l.origin.text() + "@" +
                     std::to_string(l.offset.value) + " key=" + shown_bytes(l.key) +
                     " value=" + shown_bytes(l.value) + " at=" + std::to_string(l.timestamp_ms);
  for (const LetterHeader& h : l.headers)
    text += " " + shown_bytes(h.name) + ":" + shown_bytes(h.value);
  return text + " " + l.stage + " " + std::string(name_of(l.cls)) + " " + l.code + " [" + l.error +
         "] attempts=" + std::to_string(l.attempts) + " " + std::to_string(l.first_failed_ms) +
         ".." + std::to_string(l.last_failed_ms) + " " + l.run_id + " " + l.operation_id + " " +
         std::string(name_of(l.state)) + " replays=" + std::to_string(l.replays);
}

inline std::vector<std::string> shown(const std::vector<DeadLetter>& letters) {
  std::vector<std::string> lines;
  for (const DeadLetter& l : letters) lines.push_back(shown(l));
  return lines;
}

inline std::vector<std::int64_t> offsets_of(const std::vector<DeadLetter>& letters) {
  std::vector<std::int64_t> offsets;
  for (const DeadLetter& l : letters) offsets.push_back(l.offset.value);
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

inline std::vector<std::int64_t> ids_of(const std::vector<DeadLetter>& letters) {
  std::vector<std::int64_t> ids;
  for (const DeadLetter& l : letters) ids.push_back(l.id);
  return ids;
}

inline std::vector<LetterOutcome> outcomes_of(const std::vector<DeadLetter>& letters,
                                              LetterState state, const std::string& outcome) {
  std::vector<LetterOutcome> outcomes;
  for (const DeadLetter& l : letters) outcomes.push_back({l.id, state, outcome});
  return outcomes;
}

using Offsets = std::vector<std::int64_t>;

}  // namespace flow::test

using flow::test::a_letter;
using flow::test::ids_of;
using flow::test::letters_from;
using flow::test::must_do;
using flow::test::must_have;
using flow::test::offsets_of;
using flow::test::outcomes_of;

TEST_CASE_TEMPLATE_DEFINE("a letter comes back bit for bit", World, letters_bytes) {
  const World world;
  std::vector<flow::DeadLetter> letters;
  std::string every_byte;
  for (int b = 0; b < 256; ++b) every_byte += static_cast<char>(b);
  for (const auto& [key, value] :
       std::vector<std::pair<std::optional<std::string>, std::optional<std::string>>>{
           {std::nullopt, std::nullopt},
           {"", ""},
           {every_byte, every_byte},
           {std::string(1, '\0'), std::string("a\0b", 3)},
           {"x'; DROP TABLE dead_letters; --", "$1 ?1 \\x00"}}) {
    flow::DeadLetter l = a_letter(static_cast<std::int64_t>(letters.size()));
    l.key = key;
    l.value = value;
    l.headers = {{"b", "2"},
                 {"a", std::nullopt},
                 {"b", "1"},
                 {"empty", ""},
                 {"bytes", every_byte},
                 {"", "no name"},
                 {"flow.dlq.code", "of the record's own"}};
    letters.push_back(l);
  }
  letters[0].headers.clear();
  letters[1].timestamp_ms = -1;
  letters[2].origin = {"/data/in $1 'x'.jsonl", 0};
  letters[2].offset = {std::int64_t{1} << 60};
  letters[3].error = "naïve \xE2\x82\xAC \"quoted\"; 'x'";
  letters[3].cls = flow::FailureClass::poison;
  must_do(world.process().letters->put(letters));
  auto listed = must_have(world.process().letters->list({}));
  std::sort(listed.begin(), listed.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  std::sort(letters.begin(), letters.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  REQUIRE(listed.size() == letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    CHECK(flow::test::shown(listed[i]) == flow::test::shown(letters[i]));
  }
}

TEST_CASE_TEMPLATE_DEFINE("a letter that is put twice is one letter, brought up to date", World,
                          letters_twice) {
  const World world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 3)));
  const auto before = must_have(store.letters->list({}));
  auto again = letters_from(1, 3);
  for (flow::DeadLetter& l : again) {
    l.attempts = 3;
    l.last_failed_ms = 9'000;
    l.first_failed_ms = 8'000;
    l.error = "column amount: too large";
    l.run_id = "run-2";
  }
  must_do(store.letters->put(again));
  must_do(store.letters->put(again));
  const auto after = must_have(world.process().letters->list({}));
  CHECK(offsets_of(after) == flow::test::Offsets{0, 1, 2, 3});
  for (const flow::DeadLetter& l : after) {
    const bool updated = l.offset.value > 0;
    CHECK(l.attempts == (updated ? 3 : 1));
    CHECK(l.run_id == (updated ? "run-2" : "run-1"));
    CHECK(l.error == (updated ? "column amount: too large" : "column amount: not a number"));
    if (l.offset.value < 3) CHECK(l.first_failed_ms == 1'000 + l.offset.value);
    for (const flow::DeadLetter& old : before) {
      if (old.offset == l.offset) CHECK(old.id == l.id);
    }
  }
}

TEST_CASE_TEMPLATE_DEFINE("one record is a letter for each target and pipeline", World,
                          letters_identity) {
  const World world;
  auto other_pipeline = a_letter(1);
  other_pipeline.pipeline = "payments";
  auto other_partition = a_letter(1);
  other_partition.origin.partition = 1;
  const std::vector<flow::DeadLetter> all{a_letter(1), a_letter(1, "sqlite:orders"), other_pipeline,
                                          other_partition, a_letter(1)};
  const auto store = world.process();
  must_do(store.letters->put(all));
  must_do(store.letters->put(all));
  CHECK(must_have(store.letters->count({})) == 4);
  CHECK(must_have(store.letters->list({})).size() == 4);
}

TEST_CASE_TEMPLATE_DEFINE("a settled letter that fails again is pending again with its story",
                          World, letters_again) {
  const World world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 2)));
  const auto claimed = must_have(store.letters->claim({}, "r1"));
  REQUIRE(offsets_of(claimed) == flow::test::Offsets{0, 1});
  must_do(store.letters->settle(outcomes_of(claimed, flow::LetterState::replayed, "replayed"), "r1",
                                "ann"));
  CHECK(must_have(store.letters->claim({}, "r2")).empty());
  must_do(store.letters->put(std::vector{a_letter(1)}));
  const auto pending =
      must_have(world.process().letters->list({.state = flow::LetterState::pending}));
  CHECK(offsets_of(pending) == flow::test::Offsets{1});
  const auto story = must_have(store.letters->audit(pending.at(0).id));
  REQUIRE(story.size() == 1);
  CHECK(story[0].who == "ann");
  CHECK(story[0].replay == "r1");
  CHECK(story[0].what == "replay");
  CHECK(story[0].outcome == "replayed");
  CHECK_FALSE(story[0].host.empty());
  CHECK(story[0].at_ms > 1'600'000'000'000);
  CHECK(offsets_of(must_have(store.letters->claim({}, "r3"))) == flow::test::Offsets{1});
}

TEST_CASE_TEMPLATE_DEFINE("each filter narrows to its letters and no others", World,
                          letters_filters) {
  const World world;
  const auto store = world.process();
  std::vector<flow::DeadLetter> letters = letters_from(0, 8);
  letters[1].pipeline = "payments";
  letters[2].target = "sqlite:orders";
  letters[3].origin.topic = "refunds";
  letters[4].stage = "decode";
  letters[5].cls = flow::FailureClass::poison;
  letters[6].key = "";
  letters[7].key = std::nullopt;
  must_do(store.letters->put(letters));
  const auto found = [&](const flow::LetterFilter& filter) {
    CHECK(must_have(store.letters->count(filter)) == must_have(store.letters->list(filter)).size());
    return offsets_of(must_have(store.letters->list(filter)));
  };
  using flow::test::Offsets;
  CHECK(found({.pipeline = "payments"}) == Offsets{1});
  CHECK(found({.target = "sqlite:orders"}) == Offsets{2});
  CHECK(found({.topic = "refunds"}) == Offsets{3});
  CHECK(found({.stage = "decode"}) == Offsets{4});
  CHECK(found({.cls = flow::FailureClass::poison}) == Offsets{5});
  CHECK(found({.key = ""}) == Offsets{6});
  CHECK(found({.key = "k0"}) == Offsets{0, 3});
  CHECK(found({.since_ms = 1'003, .until_ms = 1'006}) == Offsets{3, 4, 5});
  CHECK(found({.state = flow::LetterState::parked}).empty());
  CHECK(found({.pipeline = "' OR 1=1 --"}).empty());
  const auto all = must_have(store.letters->list({}));
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [](const auto& a, const auto& b) { return a.id < b.id; }));
  flow::LetterFilter two;
  two.ids = {all[6].id, all[2].id};
  CHECK(ids_of(must_have(store.letters->list(two))) == std::vector{all[2].id, all[6].id});
  flow::LetterFilter three;
  three.limit = 3;
  CHECK(ids_of(must_have(store.letters->list(three))) ==
        std::vector{all[0].id, all[1].id, all[2].id});
}

TEST_CASE_TEMPLATE_DEFINE("groups count letters alike in all but their place", World,
                          letters_groups) {
  const World world;
  const auto store = world.process();
  auto letters = letters_from(0, 5);
  letters[3].code = "cast.time";
  letters[4].code = "cast.time";
  must_do(store.letters->put(letters));
  auto claimed = must_have(store.letters->claim({.since_ms = 1'004}, "r"));
  must_do(store.letters->settle(outcomes_of(claimed, flow::LetterState::parked, "parked: x"), "r",
                                "a"));
  std::vector<std::string> lines;
  for (const flow::LetterGroup& g : must_have(store.letters->groups({}))) {
    lines.push_back(g.pipeline + " " + g.topic + " " + g.target + " " + g.stage + " " +
                    std::string(name_of(g.cls)) + " " + g.code + " " +
                    std::string(name_of(g.state)) + " " + std::to_string(g.count) + " " +
                    std::to_string(g.first_ms) + ".." + std::to_string(g.last_ms));
  }
  std::sort(lines.begin(), lines.end());
  const std::string head = "orders orders.in postgres:orders cast invalid ";
  CHECK(lines == std::vector<std::string>{head + "cast.number pending 3 1000..1002",
                                          head + "cast.time parked 1 1004..1004",
                                          head + "cast.time pending 1 1003..1003"});
}

TEST_CASE_TEMPLATE_DEFINE("a snapshot keeps its set though letters come and go", World,
                          letters_snapshot) {
  const World world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 4)));
  flow::LetterFilter of;
  of.snapshot = must_have(store.letters->snapshot({.until_ms = 1'003}));
  must_do(store.letters->put(letters_from(4, 4)));
  auto updated = a_letter(1);
  updated.last_failed_ms = 99'000;
  must_do(store.letters->put(std::vector{updated}));
  CHECK(offsets_of(must_have(store.letters->list(of))) == flow::test::Offsets{0, 1, 2});
  CHECK(must_have(store.letters->count(of)) == 3);
  CHECK(offsets_of(must_have(world.process().letters->claim(of, "r"))) ==
        flow::test::Offsets{0, 1, 2});
  flow::LetterFilter unknown;
  unknown.snapshot = "s-none";
  CHECK(must_have(store.letters->list(unknown)).empty());
}

TEST_CASE_TEMPLATE_DEFINE("two replays never hold the same letter", World, letters_claims) {
  const World world;
  const auto one = world.process();
  const auto two = world.process();
  const auto lock_one = must_have(one.state->lock(flow::replay_lock_name("r1"), flow::Millis{0}));
  const auto lock_two = must_have(two.state->lock(flow::replay_lock_name("r2"), flow::Millis{0}));
  must_do(one.letters->put(letters_from(0, 10)));
  flow::LetterFilter four;
  four.limit = 4;
  const auto first = must_have(one.letters->claim(four, "r1"));
  const auto second = must_have(two.letters->claim({}, "r2"));
  CHECK(first.size() == 4);
  CHECK(second.size() == 6);
  auto all = first;
  all.insert(all.end(), second.begin(), second.end());
  CHECK(offsets_of(all) == flow::test::Offsets{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (const flow::DeadLetter& l : all) {
    CHECK(l.state == flow::LetterState::replaying);
    CHECK(l.replays == 0);
  }
  CHECK(must_have(one.letters->claim({}, "r1")).empty());
  const auto stolen = one.letters->settle(
      outcomes_of(second, flow::LetterState::replayed, "replayed"), "r1", "ann");
  REQUIRE_FALSE(stolen.ok());
  CHECK(stolen.failure().cls == flow::FailureClass::fenced);
  CHECK(must_have(two.letters->count({.state = flow::LetterState::replaying})) == 10);
  must_do(two.letters->settle(outcomes_of(second, flow::LetterState::pending, "failed: x"), "r2",
                              "bob"));
  CHECK(offsets_of(must_have(one.letters->claim({}, "r1"))) == offsets_of(second));
}

TEST_CASE_TEMPLATE_DEFINE("what a dead replay held is taken over, and said in its story", World,
                          letters_takeover) {
  const World world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 3)));
  {
    const auto dead = world.process();
    const auto lock = must_have(dead.state->lock(flow::replay_lock_name("gone"), flow::Millis{0}));
    CHECK(must_have(dead.letters->claim({}, "gone")).size() == 3);
    CHECK(must_have(store.letters->claim({}, "next")).empty());
  }
  const auto taken = must_have(store.letters->claim({}, "next"));
  REQUIRE(offsets_of(taken) == flow::test::Offsets{0, 1, 2});
  CHECK(taken[0].replays == 1);
  const auto story = must_have(store.letters->audit(taken[0].id));
  REQUIRE(story.size() == 1);
  CHECK(story[0].replay == "gone");
  CHECK(story[0].outcome == "its replay was interrupted");
}

TEST_CASE_TEMPLATE_DEFINE(
    "a letter that nobody holds is settled by hand, and can be set free again", World,
    letters_by_hand) {
  const World world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 3)));
  const auto all = must_have(store.letters->list({}));
  const auto other = world.process();
  must_do(other.letters->settle(
      std::vector<flow::LetterOutcome>{{all[0].id, flow::LetterState::discarded, "discarded"},
                                       {all[1].id, flow::LetterState::parked, "parked: later"}},
      "", "ann"));
  CHECK(ids_of(must_have(store.letters->list({.state = flow::LetterState::pending}))) ==
        std::vector{all[2].id});
  CHECK(ids_of(must_have(store.letters->claim({}, "r"))) == std::vector{all[2].id});
  must_do(other.letters->settle(
      std::vector<flow::LetterOutcome>{{all[1].id, flow::LetterState::pending, "set free"}}, "",
      "bob"));
  CHECK(ids_of(must_have(store.letters->list({.state = flow::LetterState::pending}))) ==
        std::vector{all[1].id});
  const auto story = must_have(store.letters->audit(all[1].id));
  REQUIRE(story.size() == 2);
  CHECK(story[0].what == "park");
  CHECK(story[1].what == "release");
  CHECK(story[1].who == "bob");
}

#define LETTERS_SUITE(...)                                  \
  TEST_CASE_TEMPLATE_INVOKE(letters_bytes, __VA_ARGS__);    \
  TEST_CASE_TEMPLATE_INVOKE(letters_twice, __VA_ARGS__);    \
  TEST_CASE_TEMPLATE_INVOKE(letters_identity, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(letters_again, __VA_ARGS__);    \
  TEST_CASE_TEMPLATE_INVOKE(letters_filters, __VA_ARGS__);  \
  TEST_CASE_TEMPLATE_INVOKE(letters_groups, __VA_ARGS__);   \
  TEST_CASE_TEMPLATE_INVOKE(letters_snapshot, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(letters_claims, __VA_ARGS__);   \
  TEST_CASE_TEMPLATE_INVOKE(letters_takeover, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(letters_by_hand, __VA_ARGS__)
