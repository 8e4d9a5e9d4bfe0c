// Dead letters from real runs, along the ways in which others have lost, doubled or flooded them.
#include <algorithm>
#include <doctest/doctest.h>
#include <map>

#include "tests/e2e/dlq_help.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"

using namespace flow;
using namespace flow::test;

namespace {

std::string kafka_pipeline(const std::string& topic, const std::string& more) {
  return "name: dlq\nsource: {kind: kafka, brokers: '" + services().kafka + "', topics: [" + topic +
         "], group: g-" + topic +
         "}\nformat: json\n"
         "columns: {id: {from: $.id, type: bigint, required: true}, v: {from: $.v, type: text}}\n"
         "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t}]\n"
         "transform_on_error: dlq\ndlq_limit: {of_batch: 100%}\nstate: sqlite:flow.db\n" +
         more;
}

std::string text_of(const KafkaRecord& r) {
  std::string out = r.key.value_or("(null)") + "|" + r.value.value_or("(null)") + "|" +
                    std::to_string(r.timestamp_ms);
  for (const auto& [name, value] : r.headers) out += "|" + name + "=" + value.value_or("(null)");
  return out;
}

}  // namespace

TEST_CASE("key, value, headers and timestamp survive the way into a letter and back, bit for bit") {
  const std::string broker = services().kafka;
  const KafkaRecord undecodable{
      .key = std::string("\0\xff\x01", 3),
      .value = std::string("no JSON \0\xfe", 10),
      .headers = {{"h", "1"}, {"h", "2"}, {"n", std::nullopt}, {"b", std::string("\xff\0", 2)}},
      .partition = 0,
      .timestamp_ms = 978'307'200'000};
  KafkaRecord refused = undecodable;
  refused.key = "";
  refused.value = R"({"id":1,"v":"bad"})";
  KafkaRecord keyless = undecodable;
  keyless.key = std::nullopt;
  for (const bool in_topic : {false, true}) {
    CAPTURE(in_topic);
    const Topic in(broker, "d10", 1);
    const Topic dead(broker, "d10-dead", 1);
    const Topic back(broker, "d10-back", 1);
    produce(broker, in.name(), {undecodable, refused, keyless});
    const FlowProgram flow(kafka_pipeline(
        in.name(), in_topic ? "dlq_store: topic\ndead_letter_topic: " + dead.name() + "\n" : ""));
    sqlite_query(flow.dir() / "out.db", "CREATE TABLE t (id INTEGER, v TEXT CHECK (v <> 'bad'))");
    const Finished ran = flow.run({"--until-end"});
    CAPTURE(ran.err);
    REQUIRE(ran.ended == Ended{0, 0});
    const Finished listed = flow.flow({"dlq", "list", flow.file(), "--each", "-o", "json"});
    const Json letters = Json::parse(listed.out).at("letters");
    REQUIRE(letters.size() == 3);
    std::map<std::int64_t, std::string> stages;
    for (const Json& l : letters) stages[l.at("offset")] = l.at("stage");
    CHECK(stages ==
          std::map<std::int64_t, std::string>{{0, "decode"}, {1, "target"}, {2, "decode"}});
    const Finished replayed =
        flow.flow({"dlq", "replay", flow.file(), "--to-topic", back.name(), "-o", "json"});
    CAPTURE(replayed.err);
    REQUIRE(replayed.ended == Ended{0, 0});
    std::vector<std::string> came, wanted;
    for (const KafkaRecord& r : read_topic(broker, back.name())) came.push_back(text_of(r));
    for (const KafkaRecord& r : {undecodable, refused, keyless}) wanted.push_back(text_of(r));
    std::sort(came.begin(), came.end());
    std::sort(wanted.begin(), wanted.end());
    CHECK(came == wanted);
  }
}

TEST_CASE("a letter that fails again in a topic is no new letter, and a replay of it ends") {
  const std::string broker = services().kafka;
  const Topic in(broker, "d05", 1);
  const Topic dead(broker, "d05-dead", 1);
  produce(broker, in.name(), {{.key = "k", .value = "no JSON"}});
  const FlowProgram flow(
      kafka_pipeline(in.name(), "dlq_store: topic\ndead_letter_topic: " + dead.name() + "\n"));
  sqlite_query(flow.dir() / "out.db", "CREATE TABLE t (id INTEGER, v TEXT)");
  REQUIRE(flow.run({"--until-end"}).ended == Ended{0, 0});
  const Finished first = flow.flow({"dlq", "replay", flow.file(), "-o", "json"});
  CHECK(first.ended == Ended{65, 0});
  CHECK(Json::parse(first.out).at("failed") == 1);
  const Finished listed = flow.flow({"dlq", "list", flow.file(), "--each", "-o", "json"});
  const Json letters = Json::parse(listed.out).at("letters");
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].at("replays") == 1);
  CHECK(letters[0].at("status") == "pending");
}

TEST_CASE("a pipeline that would read its own dead letters is refused") {
  const std::string broker = services().kafka;
  const Topic in(broker, "loop", 1);
  const FlowProgram flow(
      kafka_pipeline(in.name(), "dlq_store: topic\ndead_letter_topic: " + in.name() + "\n"));
  CHECK(flow.run({"--until-end"}).ended == Ended{78, 0});
}

TEST_CASE("three bad rows in a thousand: the others are there once, and each bad one is a letter") {
  const DlqProgram p(in_sqlite(),
                     "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, mode: append}]\n");
  sqlite_query(p.flow().dir() / "out.db",
               "CREATE TABLE t (id INTEGER CHECK (id NOT IN (0, 499, 999)), v TEXT)");
  p.flow().dir().write("in.jsonl", json_lines(0, 1'000));
  const Finished f = p.flow().run({"--output", "json"});
  CAPTURE(f.err);
  CHECK(f.ended == Ended{0, 0});
  auto wanted = texts(0, 1'000);
  std::erase_if(wanted,
                [](const std::string& id) { return id == "0" || id == "499" || id == "999"; });
  CHECK(p.rows() == wanted);
  std::vector<std::string> values;
  for (const Json& l : p.letters()) {
    values.push_back(l.at("value"));
    CHECK(l.at("stage") == "target");
  }
  CHECK(values == std::vector<std::string>{json_line(0), json_line(499), json_line(999)});
  // Mended, they come in; nothing is there twice.
  sqlite_query(p.flow().dir() / "out.db",
               "ALTER TABLE t RENAME TO old; CREATE TABLE t (id INTEGER, v TEXT); INSERT INTO t "
               "SELECT * FROM old; DROP TABLE old");
  CHECK(p.json({"replay"}).at("replayed") == 3);
  auto rows = p.rows();
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return std::stoi(a) < std::stoi(b); });
  CHECK(rows == texts(0, 1'000));
}

TEST_CASE("a flood of bad records stops the run before it, and the next start doubles no letter") {
  const DlqProgram p(in_sqlite());
  p.target(DlqProgram::sqlite_append() + "", "");
  std::string yaml = read_file(p.flow().file());
  const auto at = yaml.find("dlq_limit: {of_batch: 100%, in_a_row: 0}");
  REQUIRE(at != std::string::npos);
  yaml.replace(at, 40, "dlq_limit: {of_batch: 50%, in_a_row: 0}");
  p.flow().rewrite(yaml);
  std::string bad;
  for (int i = 0; i < 1'000; ++i) bad += R"({"idd":)" + std::to_string(i) + "}\n";
  p.flow().dir().write("in.jsonl",
                       json_lines(0, 100) + R"({"id":"x"})" + "\n" + json_lines(101, 200) + bad);
  for (int start = 0; start < 2; ++start) {
    const Finished f = p.flow().run({});
    CAPTURE(f.err);
    CHECK(f.ended == Ended{65, 0});
    CHECK(p.letters().size() == 1);
    CHECK(p.rows().size() == 199);
  }
}

TEST_CASE("a letter whose transaction commits late is found by the next replay") {
  const DlqProgram p(in_postgres());
  const std::string state = p.place().database->url();
  p.import(good_letters(0, 1));
  REQUIRE(p.json({"replay"}).at("replayed") == 1);
  const auto insert = [](int offset) {
    const std::string n = std::to_string(offset);
    return "WITH l AS (INSERT INTO flow.dead_letters (pipeline, version, target, topic, partition, "
           "record_offset, stage, class, code, error, attempts, first_failed_ms, last_failed_ms, "
           "run_id) VALUES ('dlq', '', 'sqlite:t', 'in', 0, " +
           n +
           ", 'cast', 'invalid', '', '', 1, 1, 1, '') RETURNING id) INSERT INTO "
           "flow.dead_letter_records (letter, key, value, headers, timestamp_ms, operation_id) "
           "SELECT id, NULL, convert_to('{\"id\":" +
           n + ",\"v\":\"late\"}', 'UTF8'), '', -1, '' FROM l";
  };
  PgConnection late(state);
  late.query("BEGIN");
  late.query(insert(10));
  PgConnection early(state);
  early.query(insert(11));
  CHECK(p.json({"replay"}).at("replayed") == 1);
  CHECK(p.rows() == std::vector<std::string>{"0", "11"});
  late.query("COMMIT");
  CHECK(p.json({"replay"}).at("replayed") == 1);
  CHECK(p.rows() == std::vector<std::string>{"0", "11", "10"});
}
