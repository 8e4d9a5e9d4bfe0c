// Dead letters in a topic, from the record that is set aside to its replay, with the program.
#include <doctest/doctest.h>
#include <set>

#include "tests/e2e/flow_program.h"
#include "tests/support/kafka_help.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"

using namespace flow::test;

namespace {

using HeaderList = std::vector<std::pair<std::string, std::optional<std::string>>>;

constexpr int records = 60;

bool is_bad(int id) { return id % 3 == 0; }

const HeaderList awkward{{"trace", "1"},
                         {"trace", std::nullopt},
                         {"", "no name"},
                         {"bytes", std::string("\0\xff", 2)},
                         {"flow.dlq.code", "of the record's own"}};

// A bad record has its id under another name, which the pipeline learns of later.
std::vector<KafkaRecord> orders() {
  std::vector<KafkaRecord> all;
  for (int id = 0; id < records; ++id) {
    KafkaRecord r;
    if (id % 7 != 0) r.key = "k" + std::to_string(id % 5);
    const std::string n = std::to_string(id);
    r.value = (is_bad(id) ? "{\"old_id\":" + n : "{\"id\":" + n) + ",\"v\":\"v" + n + "\"}";
    r.headers = awkward;
    r.partition = id % 2;
    all.push_back(r);
  }
  return all;
}

class World {
 public:
  World() : in_(broker(), "dlq_in", 2), dead_(broker(), "dlq_dead", 3), flow_(yaml("$.id")) {
    produce(broker(), in_.name(), orders());
  }
  static std::string broker() { return services().kafka; }
  std::string yaml(const std::string& id) const {
    return "name: orders\nsource: {kind: kafka, brokers: '" + broker() + "', topics: [" +
           in_.name() + "], group: g-" + in_.name() +
           "}\n"
           "columns: {id: {from: " +
           id +
           ", type: bigint, required: true}, v: {from: $.v, type: text}}\n"
           "transform_on_error: dlq\ndead_letter_topic: " +
           dead_.name() +
           "\n"
           "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, create_table: true}]\n"
           "state: sqlite:flow.db\n";
  }
  const FlowProgram& flow() const { return flow_; }
  const std::string& dead() const { return dead_.name(); }
  // id -> how often it is there.
  Tally rows() const {
    Tally tally;
    for (const auto& row : sqlite_query(flow_.dir() / "out.db", "SELECT id FROM t"))
      ++tally[std::stoi(*row[0])];
    return tally;
  }

 private:
  Topic in_, dead_;
  FlowProgram flow_;
};

Tally once(bool good, bool bad) {
  Tally tally;
  for (int id = 0; id < records; ++id) {
    if (is_bad(id) ? bad : good) tally[id] = 1;
  }
  return tally;
}

}  // namespace

TEST_CASE("bad records go to the topic as they were, and are replayed from it exactly once") {
  const World world;
  const auto ran = world.flow().run({"--until-end"});
  REQUIRE_MESSAGE(ran.ended.code == 0, ran.err);
  CHECK(world.rows() == once(true, false));
  const auto letters = read_topic(World::broker(), world.dead());
  std::multiset<std::string> values, expected;
  for (const KafkaRecord& r : orders()) {
    if (r.value->find("old_id") != std::string::npos) expected.insert(*r.value);
  }
  for (const KafkaRecord& r : letters) {
    values.insert(*r.value);
    REQUIRE(r.headers.size() > awkward.size());
    CHECK(HeaderList(r.headers.begin(), r.headers.begin() + static_cast<long>(awkward.size())) ==
          awkward);
  }
  CHECK(values == expected);

  world.flow().rewrite(world.yaml("$.old_id"));
  for (int time = 0; time < 2; ++time) {
    const auto replayed = world.flow().flow({"dlq", "replay", world.flow().file(), "--yes"});
    CHECK_MESSAGE(replayed.ended.code == 0, replayed.err);
    CHECK(world.rows() == once(true, true));
  }
  CHECK(read_topic(World::broker(), world.dead()).size() == letters.size());
  const auto listed = world.flow().flow({"dlq", "list", world.flow().file(), "--output", "json"});
  REQUIRE_MESSAGE(listed.ended.code == 0, listed.err);
  CHECK(listed.out.find("\"replayed\"") != std::string::npos);
  CHECK(listed.out.find("\"pending\"") == std::string::npos);
}

TEST_CASE("a letter that goes back to a topic is the record as it was, without our headers") {
  const World world;
  REQUIRE(world.flow().run({"--until-end"}).ended.code == 0);
  const Topic back(World::broker(), "dlq_back", 1);
  const auto sent =
      world.flow().flow({"dlq", "replay", world.flow().file(), "--to-topic", back.name(), "--yes"});
  REQUIRE_MESSAGE(sent.ended.code == 0, sent.err);
  std::multiset<std::string> got, expected;
  const auto shown = [](const KafkaRecord& r) {
    return r.key.value_or("(null)") + " " + r.value.value_or("(null)");
  };
  for (const KafkaRecord& r : orders()) {
    if (r.value->find("old_id") != std::string::npos) expected.insert(shown(r));
  }
  for (const KafkaRecord& r : read_topic(World::broker(), back.name())) {
    got.insert(shown(r));
    CHECK(r.headers == awkward);
  }
  CHECK(got == expected);
}

TEST_CASE("a dead-letter topic that is missing is found before anything is read or written") {
  const World world;
  std::string yaml = world.yaml("$.id");
  yaml.replace(yaml.find(world.dead()), world.dead().size(), world.dead() + "-none");
  world.flow().rewrite(yaml);
  const auto ran = world.flow().run({"--until-end"});
  CHECK(ran.ended.code == 78);
  CHECK(ran.err.find(world.dead() + "-none") != std::string::npos);
  const auto checked = world.flow().flow({"check", "--connect", world.flow().file()});
  CHECK(checked.ended.code == 78);
  CHECK((checked.out + checked.err).find(world.dead() + "-none") != std::string::npos);
}
