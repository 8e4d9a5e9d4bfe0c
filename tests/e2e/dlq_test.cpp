// Looking at dead letters, and moving and changing them without a replay.
#include <doctest/doctest.h>
#include <set>

#include "tests/e2e/dlq_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"

using namespace flow;
using namespace flow::test;

namespace {

// The letters of `filter` by offset.
std::set<std::int64_t> found(const DlqProgram& p, std::vector<std::string> filter) {
  std::set<std::int64_t> out;
  for (const Json& l : p.letters(std::move(filter))) out.insert(l.at("offset").get<std::int64_t>());
  return out;
}

// All that an exported letter says but what the store gave it.
Json carried(Json l) {
  for (const char* own : {"id", "status", "replays"}) l.erase(own);
  return l;
}

}  // namespace

TEST_CASE("each filter finds its letters and no others, in every store") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    auto letters = good_letters(0, 6, 3);
    letters[1]["class"] = "poison";
    letters[2]["stage"] = "decode";
    letters[3]["topic"] = "other";
    letters[4]["target"] = "elsewhere";
    letters[5]["pipeline"] = "payments";
    p.import(letters);
    const std::string id = p.letters({"--class", "poison"}).at(0).at("id").dump();
    using Offsets = std::set<std::int64_t>;
    CHECK(found(p, {}) == Offsets{0, 1, 2, 3, 4, 5});
    CHECK(found(p, {"--class", "poison"}) == Offsets{1});
    CHECK(found(p, {"--stage", "decode"}) == Offsets{2});
    CHECK(found(p, {"--topic", "other"}) == Offsets{3});
    CHECK(found(p, {"--target", "elsewhere"}) == Offsets{4});
    CHECK(found(p, {"--pipeline", "payments"}) == Offsets{5});
    CHECK(found(p, {"--key", "k1"}) == Offsets{1, 4});
    CHECK(found(p, {"--id", id}) == Offsets{1});
    CHECK(found(p, {"--status", "pending"}).size() == 6);
    CHECK(found(p, {"--status", "parked"}).empty());
    CHECK(found(p, {"--since", "2023-11-14T22:13:20Z"}).size() == 6);
    CHECK(found(p, {"--until", "2023-11-14T22:13:20Z"}).empty());
    CHECK(found(p, {"--since", "1h"}).empty());
    CHECK(found(p, {"--limit", "2"}).size() == 2);
    CHECK(found(p, {"--key", "k1", "--target", "elsewhere"}) == Offsets{4});
  }
}

TEST_CASE("letters are listed in groups and one by one, and shown whole") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import(good_letters(0, 5));
    const Json groups = p.json({"list"});
    CHECK(groups.at("count") == 5);
    REQUIRE(groups.at("groups").size() == 1);
    CHECK(groups.at("groups")[0].at("code") == "cast.number");
    CHECK(groups.at("groups")[0].at("count") == 5);
    const Json each = p.json({"list", "--each"});
    REQUIRE(each.at("letters").size() == 5);
    const std::string id = each.at("letters")[2].at("id").dump();
    const Finished shown = p.flow().flow({"dlq", "show", id, p.flow().file()});
    CHECK(shown.ended == Ended{0, 0});
    for (const char* word : {"in/0@2", "sqlite:t", "cast.number", "column id: not a number",
                             "\"v\": \"v2\"", "pending"}) {
      CAPTURE(word);
      CHECK(shown.out.find(word) != std::string::npos);
    }
    const Finished text = p.dlq({"list", "--each"});
    for (int i = 0; i < 5; ++i)
      CHECK(text.out.find("in/0@" + std::to_string(i)) != std::string::npos);
  }
}

TEST_CASE("a letter that is not there is said to be not there") {
  const DlqProgram p(in_sqlite());
  p.import(good_letters(0, 1));
  const Finished f = p.flow().flow({"dlq", "show", "77", p.flow().file()});
  CHECK(f.ended == Ended{1, 0});
  CHECK(f.err.find("77") != std::string::npos);
}

TEST_CASE("what export prints, import puts back bit for bit, from every store into every other") {
  std::string binary;
  for (int b = 0; b < 256; ++b) binary.push_back(static_cast<char>(b));
  std::vector<Json> letters{letter(0, json_line(0)), letter(1, "", ""), letter(2, "x", "k")};
  letters[0]["value"] = nullptr;
  letters[1]["timestamp_ms"] = 978'307'200'000;
  letters[2].erase("key");
  letters[2]["key_base64"] = "AAEC/w==";
  letters[2]["headers"] =
      Json::array({Json{{"name", "a"}, {"value", "1"}}, Json{{"name", "a"}, {"value", "2"}},
                   Json{{"name", "n"}, {"value", nullptr}}, Json{{"name", "e"}, {"value", ""}},
                   Json{{"name", "b"}, {"value_base64", "/wD+"}}});
  for (const auto& from : letter_places()) {
    for (const auto& to : letter_places()) {
      const DlqProgram a(from());
      const DlqProgram b(to());
      CAPTURE(a.place().name);
      CAPTURE(b.place().name);
      a.import(letters);
      const auto out = a.letters();
      REQUIRE(out.size() == 3);
      CHECK(out[0].at("value").is_null());
      CHECK(out[0].at("key").is_null());
      CHECK(out[1].at("value") == "");
      CHECK(out[1].at("key") == "");
      CHECK(out[1].at("timestamp_ms") == 978'307'200'000);
      CHECK(out[2].at("key_base64") == "AAEC/w==");
      CHECK(out[2].at("headers") == letters[2]["headers"]);
      b.import(out);
      b.import(out);  // a second time changes nothing
      const auto again = b.letters();
      REQUIRE(again.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) CHECK(carried(again[i]) == carried(out[i]));
    }
  }
}

TEST_CASE("an import with one bad line names the line and brings in nothing") {
  const DlqProgram p(in_sqlite());
  Command c = p.flow().command({"dlq", "import", "--pipeline-file", p.flow().file()});
  for (const char* bad : {"no JSON", "{}", R"({"pipeline":7})", "[1]"}) {
    c.input = lines_of(good_letters(0, 2)) + bad + "\n";
    const Finished f = run(c);
    CAPTURE(bad);
    CHECK(f.ended == Ended{65, 0});
    CHECK(f.err.find("-:3") != std::string::npos);
    CHECK(p.letters().empty());
  }
}

TEST_CASE("discarded letters stay to be seen, purged ones are gone, and only old ones go") {
  for (const auto& place : letter_places()) {
    const DlqProgram p(place());
    CAPTURE(p.place().name);
    p.import(good_letters(0, 4));
    CHECK(p.json({"discard", "--key", "k0"}).at("changed") == 2);
    CHECK(p.offsets("discarded") == std::vector<std::int64_t>{0, 3});
    CHECK(p.offsets("pending") == std::vector<std::int64_t>{1, 2});
    const std::string id = p.letters({"--status", "discarded"}).at(0).at("id").dump();
    CHECK(p.dlq({"discard", "--id", id}).ended == Ended{1, 0});  // is so already
    CHECK(p.dlq({"retry-parked", "--status", "replayed"}).ended == Ended{64, 0});
    if (p.place().topic) continue;  // the topic's own retention takes letters out of it
    CHECK(p.dlq({"purge", "--older-than", "1h", "--status", "discarded"}).ended == Ended{64, 0});
    CHECK(p.json({"purge", "--older-than", "9999d", "--yes"}).at("removed") == 0);
    CHECK(p.json({"purge", "--older-than", "1h", "--status", "discarded", "--yes"}).at("removed") ==
          2);
    CHECK(found(p, {}) == std::set<std::int64_t>{1, 2});
  }
}

TEST_CASE("more than 100 letters are changed with --yes only when nobody can be asked") {
  const DlqProgram p(in_sqlite());
  p.import(good_letters(0, 101));
  CHECK(p.dlq({"discard"}).ended == Ended{64, 0});
  CHECK(p.offsets("pending") == numbers(0, 101));
  CHECK(p.dlq({"replay"}).ended == Ended{64, 0});
  CHECK(p.rows().empty());
  CHECK(p.dlq({"discard", "--limit", "100"}).ended == Ended{0, 0});
  CHECK(p.offsets("pending") == numbers(100, 101));
  CHECK(p.dlq({"discard", "--yes"}).ended == Ended{0, 0});
  CHECK(p.offsets("discarded") == numbers(0, 101));
}

TEST_CASE("wrong words of the dlq commands end with 64 and say which") {
  const DlqProgram p(in_sqlite());
  p.import(good_letters(0, 1));
  struct Wrong {
    std::vector<std::string> words;
    std::string named;
  };
  for (const Wrong& w : std::vector<Wrong>{{{"list", "--class", "bad"}, "--class"},
                                           {{"list", "--status", "gone"}, "--status"},
                                           {{"list", "--since", "yesterday"}, "--since"},
                                           {{"replay", "--rate", "fast"}, "--rate"},
                                           {{"replay", "--patch", "x"}, "--patch"},
                                           {{"replay", "--edit", "nowhere"}, "--edit"},
                                           {{"replay", "--status", "parked"}, "retry-parked"},
                                           {{"replay", "--snapshot", "s-none"}, "--snapshot"},
                                           {{"replay", "--on-poison", "hide"}, "--on-poison"},
                                           {{"purge", "--older-than", "old"}, "--older-than"}}) {
    const Finished f = p.dlq(w.words);
    CAPTURE(f.err);
    CHECK(f.ended == Ended{64, 0});
    CHECK(f.err.find(w.named) != std::string::npos);
  }
  CHECK(p.offsets("pending") == numbers(0, 1));
}

TEST_CASE("a command that fails early says so in JSON when JSON is wanted") {
  const DlqProgram p(in_sqlite());
  const Json e = p.json({"list", "--class", "bad"}, 64);
  CHECK(e.at("schema") == "flow.error/1");
  CHECK(e.at("error").at("exit_code") == 64);
}
