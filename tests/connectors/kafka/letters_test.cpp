// Dead letters in a topic, on a real broker.
#include <doctest/doctest.h>
#include <map>

#include "connectors/kafka_letters.h"
#include "connectors/registry.h"
#include "state/state.h"
#include "tests/connectors/kafka/must.h"
#include "tests/support/kafka_help.h"
#include "tests/support/letters_suite.h"
#include "tests/support/memory_parts.h"
#include "tests/support/services.h"
#include "tests/support/temp_dir.h"

using namespace flow;
using namespace flow::test;

namespace {

using Config = std::map<std::string, std::string>;

std::string broker() { return services().kafka; }

// A topic and a state, both new; two partitions, so that fewer than a source may have.
class TopicLetters {
 public:
  explicit TopicLetters(const Config& config = {}) : topic_(broker(), "letters", 2, config) {
    pipeline.name = "orders";
    pipeline.on_error = OnError::dlq;
    pipeline.dlq.brokers = broker();
    pipeline.dlq.topic = topic_.name();
  }

  Pipeline pipeline;  // changed before process()

  Result<std::unique_ptr<DeadLetterStore>> open(StateStore& state) const {
    Context context;
    context.pipeline = &pipeline;
    context.log = &log_;
    return open_dead_letters(context, state);
  }
  LetterProcess process() const {
    LetterProcess p;
    p.state = must_have(
        open_state("sqlite:" + (dir_ / "flow.db").string(), StateAccess::read_write, log_));
    p.letters = must_have(open(*p.state));
    return p;
  }
  const std::string& topic() const { return topic_.name(); }
  std::vector<KafkaRecord> messages() const { return read_topic(broker(), topic()); }

 private:
  TempDir dir_;
  Topic topic_;
  mutable MemoryLog log_;
};

using HeaderList = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::optional<std::string> header(const KafkaRecord& record, const std::string& name) {
  for (const auto& [n, value] : record.headers) {
    if (n == name) return value;
  }
  return std::nullopt;
}

}  // namespace

TYPE_TO_STRING(TopicLetters);
LETTERS_SUITE(TopicLetters);

TEST_CASE("a message of the topic is the record itself, and the reason in headers behind its own") {
  const TopicLetters world;
  DeadLetter letter = a_letter(7);
  letter.headers = {{"trace", "1"}, {"trace", std::nullopt}};
  must_do(world.process().letters->put(std::vector{letter}));
  const auto messages = world.messages();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].key == letter.key);
  CHECK(messages[0].value == letter.value);
  const HeaderList expected{{"trace", "1"},
                            {"trace", std::nullopt},
                            {"flow.dlq.pipeline", "orders"},
                            {"flow.dlq.version", "v1"},
                            {"flow.dlq.target", "postgres:orders"},
                            {"flow.dlq.topic", "orders.in"},
                            {"flow.dlq.partition", "0"},
                            {"flow.dlq.offset", "7"},
                            {"flow.dlq.timestamp", "1700000000007"},
                            {"flow.dlq.stage", "cast"},
                            {"flow.dlq.class", "invalid"},
                            {"flow.dlq.code", "cast.number"},
                            {"flow.dlq.error", "column amount: not a number"},
                            {"flow.dlq.attempts", "1"},
                            {"flow.dlq.first", "1007"},
                            {"flow.dlq.last", "1007"},
                            {"flow.dlq.run", "run-1"},
                            {"flow.dlq.operation_id", "orders.in/0/7"}};
  CHECK(messages[0].headers == expected);
}

TEST_CASE("with kafka-connect the names that other tools read are there too") {
  TopicLetters world;
  world.pipeline.dlq.headers = DlqSpec::Headers::kafka_connect;
  const auto store = world.process();
  must_do(store.letters->put(std::vector{a_letter(7)}));
  const auto messages = world.messages();
  REQUIRE(messages.size() == 1);
  CHECK(header(messages[0], "__connect.errors.topic") == "orders.in");
  CHECK(header(messages[0], "__connect.errors.partition") == "0");
  CHECK(header(messages[0], "__connect.errors.offset") == "7");
  CHECK(header(messages[0], "__connect.errors.connector.name") == "orders");
  CHECK(header(messages[0], "__connect.errors.exception.message") == "column amount: not a number");
  const auto listed = must_have(store.letters->list({}));
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].headers.empty());
}

TEST_CASE("letters of one key lie in one partition, in their order") {
  const TopicLetters world;
  must_do(world.process().letters->put(letters_from(0, 30)));
  std::map<std::string, std::vector<std::string>> by_key;
  std::map<std::string, std::set<std::int32_t>> partitions;
  for (const KafkaRecord& m : world.messages()) {
    by_key[*m.key].push_back(*header(m, "flow.dlq.offset"));
    partitions[*m.key].insert(m.partition);
  }
  REQUIRE(by_key.size() == 3);
  for (const auto& [key, offsets] : by_key) {
    CHECK(partitions[key].size() == 1);
    CHECK(std::is_sorted(offsets.begin(), offsets.end(),
                         [](const auto& a, const auto& b) { return std::stoi(a) < std::stoi(b); }));
    CHECK(offsets.size() == 10);
  }
}

TEST_CASE("messages that others wrote and aborted letters are no letters") {
  const TopicLetters world;
  const auto store = world.process();
  produce(broker(), world.topic(), {{.key = "k", .value = "not ours"}});
  produce(broker(), world.topic(),
          {{.key = "k", .value = "v", .headers = {{"flow.dlq.pipeline", "orders"}}}},
          Transaction::aborted);
  must_do(store.letters->put(letters_from(0, 2)));
  CHECK(offsets_of(must_have(store.letters->list({}))) == test::Offsets{0, 1});
}

TEST_CASE("reading and replaying takes nothing out of the topic") {
  const TopicLetters world;
  const auto store = world.process();
  must_do(store.letters->put(letters_from(0, 5)));
  const auto before = world.messages();
  const auto claimed = must_have(store.letters->claim({}, "r"));
  must_do(store.letters->settle(outcomes_of(claimed, LetterState::replayed, "replayed"), "r", "a"));
  CHECK(must_have(store.letters->purge({})) == 0);
  CHECK(world.messages().size() == before.size());
  CHECK(must_have(world.process().letters->count({.state = LetterState::replayed})) == 5);
}

TEST_CASE("a replayed letter stays replayed when retention takes its first copy") {
  const TopicLetters world;
  const auto store = world.process();
  must_do(store.letters->put(std::vector{a_letter(1)}));
  must_do(store.letters->put(std::vector{a_letter(1)}));
  const auto claimed = must_have(store.letters->claim({}, "r"));
  REQUIRE(claimed.size() == 1);
  must_do(store.letters->settle(outcomes_of(claimed, LetterState::replayed, "replayed"), "r", "a"));
  const auto message = world.messages().at(0);
  delete_records_before(broker(), world.topic(), message.partition, message.offset + 1);
  const auto after = must_have(world.process().letters->list({}));
  REQUIRE(after.size() == 1);
  CHECK(after[0].state == LetterState::replayed);
  CHECK(after[0].id == claimed[0].id);
}

TEST_CASE("a letter too large for the topic stops the run, or is kept whole in the table") {
  TopicLetters world(Config{{"max.message.bytes", "20000"}});
  std::vector<DeadLetter> letters = letters_from(0, 40);
  letters[3].value = std::string(30'000, 'x');
  letters[3].headers = {{"h", "v"}};
  {
    const auto store = world.process();
    const auto put = store.letters->put(letters);
    REQUIRE_FALSE(put.ok());
    CHECK(put.failure().cls == FailureClass::setup);
    CHECK(put.failure().code == "MSG_SIZE_TOO_LARGE");
    CHECK(put.failure().where.find("orders.in/0@3") != std::string::npos);
  }
  world.pipeline.dlq.oversize = DlqSpec::Oversize::truncate_to_table;
  const auto store = world.process();
  must_do(store.letters->put(letters));
  const auto table = must_have(must_have(store.state->dead_letters())->list({}));
  REQUIRE(offsets_of(table) == test::Offsets{3});
  CHECK(table[0].value == letters[3].value);
  const auto all = must_have(store.letters->list({}));
  CHECK(all.size() == 40);
  for (const DeadLetter& l : all) {
    if (l.offset.value == 3) CHECK(l.value == letters[3].value);
  }
  const auto claimed = must_have(store.letters->claim({}, "r"));
  CHECK(claimed.size() == 40);
  must_do(store.letters->settle(outcomes_of(claimed, LetterState::replayed, "replayed"), "r", "a"));
  CHECK(must_have(store.letters->count({.state = LetterState::replayed})) == 40);
}

TEST_CASE("a topic that does not exist, or that compaction would thin out, is refused at once") {
  TopicLetters world;
  MemoryLog log;
  const TempDir dir;
  const auto state =
      must_have(open_state("sqlite:" + (dir / "s.db").string(), StateAccess::read_write, log));
  world.pipeline.dlq.topic = world.topic() + "-missing";
  const auto missing = world.open(*state);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.failure().cls == FailureClass::setup);
  CHECK(missing.failure().where.find(world.topic() + "-missing") != std::string::npos);
  const TopicLetters compacted(Config{{"cleanup.policy", "compact"}});
  const auto refused = compacted.open(*state);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().cls == FailureClass::setup);
  CHECK(refused.failure().what.find("compacted") != std::string::npos);
}
