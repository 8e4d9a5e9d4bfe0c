#include <algorithm>
#include <doctest/doctest.h>
#include <set>

#include "core/clock.h"
#include "core/failure_point.h"
#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/writer.h"
#include "tests/support/broker.h"

using namespace flow;
using namespace flow::test;

namespace {

Column column(const std::string& name) {
  Column c;
  c.name = name;
  return c;
}

FieldSource field(const std::string& text) {
  auto parsed = parse_field_source(text);
  REQUIRE(parsed);
  return *parsed;
}

}  // namespace

TEST_CASE("records pass through with key, headers and timestamp, null apart from empty") {
  const Topic topic(broker(), "kafka-out");
  const std::vector<KafkaRecord> sent = {
      {.key = "k1",
       .value = "v1",
       .headers = {{"a", "1"}, {"a", "2"}, {"b", std::nullopt}, {"c", ""}},
       .timestamp_ms = 1'700'000'000'123},
      {.key = std::nullopt, .value = "v2", .timestamp_ms = 1'700'000'000'124},
      {.key = "", .value = "", .timestamp_ms = 1'700'000'000'125},
      {.key = "k4", .value = std::nullopt, .timestamp_ms = 1'700'000'000'126},
      {.key = std::string("\0\xff", 2), .value = std::string("\0\xfe", 2), .timestamp_ms = 7},
  };
  Writer writer(topic.name());
  MUST(writer.open());
  for (const KafkaRecord& record : sent) writer.add(record);
  MUST(writer.write());
  const auto found = read_topic(broker(), topic.name());
  REQUIRE(found.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].key == sent[i].key);
    CHECK(found[i].value == sent[i].value);
    CHECK(found[i].headers == sent[i].headers);
    CHECK(found[i].timestamp_ms == sent[i].timestamp_ms);
  }
}

TEST_CASE("keys land where the Java clients put them") {
  // kafka.common.utils.Utils.toPositive(murmur2(key)) % 7, from the hashes that the Java client's
  // own test lists.
  const std::vector<std::pair<std::string, std::uint32_t>> java = {
      {"21", static_cast<std::uint32_t>(-973932308)},
      {"foobar", static_cast<std::uint32_t>(-790332482)},
      {"a-little-bit-long-string", static_cast<std::uint32_t>(-985981536)},
      {"a-little-bit-longer-string", static_cast<std::uint32_t>(-1486304829)},
      {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", static_cast<std::uint32_t>(-58897971)},
      {"abc", 479470107},
  };
  const Topic topic(broker(), "kafka-out", 7);
  Writer writer(topic.name());
  MUST(writer.open());
  for (const auto& [key, hash] : java) writer.add({.key = key, .value = "v"});
  MUST(writer.write());
  std::map<std::string, std::int32_t> found;
  for (const KafkaRecord& record : read_topic(broker(), topic.name()))
    found[*record.key] = record.partition;
  for (const auto& [key, hash] : java) {
    CAPTURE(key);
    CHECK(found.at(key) == static_cast<std::int32_t>((hash & 0x7fffffffU) % 7));
  }
}

TEST_CASE("rows are written as JSON, in order, with a key from a column") {
  const Topic topic(broker(), "kafka-out");
  Writer writer(topic.name());
  writer.spec.message_key = field("$.id");
  MUST(writer.open({column("id"), column("name")}));
  writer.add({.key = "old", .value = "x"}, {Value::int64(9007199254740993), Value::text("a\"b")});
  writer.add({.key = "old", .value = "x"}, {Value::null(), Value()});
  writer.add({.key = "gone", .value = std::nullopt}, {Value(), Value()});
  MUST(writer.write());
  const auto found = read_topic(broker(), topic.name());
  REQUIRE(found.size() == 3);
  CHECK(found[0].key == "9007199254740993");
  CHECK(found[0].value == R"({"id":9007199254740993,"name":"a\"b"})");
  CHECK(found[1].key == std::nullopt);
  CHECK(found[1].value == R"({"id":null})");
  CHECK(found[2].key == "gone");  // a tombstone keeps its key
  CHECK(found[2].value == std::nullopt);
}

TEST_CASE(
    "a key may be a field of a record that passes through, a header, or a fact of the record") {
  const Topic topic(broker(), "kafka-out");
  {
    Writer writer(topic.name());
    writer.spec.message_key = field("$.a.b");
    MUST(writer.open({column("$.a.b")}));
    writer.add({.key = {}, .value = R"({"a":{"b":"key"}})"}, {Value::text("key")});
    MUST(writer.write());
  }
  {
    Writer writer(topic.name());
    writer.spec.message_key = field("@headers.h");
    MUST(writer.open());
    writer.add({.key = {}, .value = "second", .headers = {{"h", "first"}, {"h", "last"}}});
    MUST(writer.write());
  }
  {
    Writer writer(topic.name());
    writer.spec.message_key = field("@partition");
    MUST(writer.open());
    writer.add({.key = "k", .value = "third"});
    MUST(writer.write());
  }
  const auto found = read_topic(broker(), topic.name());
  REQUIRE(found.size() == 3);
  CHECK(found[0].key == "key");
  CHECK(found[0].value == R"({"a":{"b":"key"}})");
  CHECK(found[1].key == "last");
  CHECK(found[2].key == "0");
}

TEST_CASE("a key that is not among the columns is refused before the first write") {
  const Topic topic(broker(), "kafka-out");
  Writer writer(topic.name());
  writer.spec.message_key = field("$.missing");
  const auto opened = writer.open({column("id"), column("name")});
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::setup);
  CHECK(opened.failure().text().find("$.missing") != std::string::npos);
}

TEST_CASE("a queue that is full waits and loses nothing") {
  const Topic topic(broker(), "kafka-out");
  Writer writer(topic.name());
  writer.spec.properties["queue.buffering.max.messages"] = "10";
  MUST(writer.open());
  for (int i = 0; i < 2'000; ++i) writer.add({.key = {}, .value = "v" + std::to_string(i)});
  MUST(writer.write());
  const auto found = read_topic(broker(), topic.name());
  std::vector<std::string> got;
  for (const KafkaRecord& record : found) got.push_back(*record.value);
  CHECK(got == numbered_values(0, 2'000));
}

TEST_CASE("a message larger than the topic takes fails as the one invalid record, naming it") {
  const Topic topic(broker(), "kafka-out", 1, {{"max.message.bytes", "20000"}});
  Writer writer(topic.name());
  MUST(writer.open());
  for (int i = 0; i < 50; ++i) writer.add({.key = {}, .value = std::string(1'000, 'x')});
  MUST(writer.write());  // together they are larger than the topic takes
  CHECK(read_topic(broker(), topic.name()).size() == 50);
  writer.add({.key = {}, .value = "small"});
  writer.add({.key = {}, .value = std::string(30'000, 'x')});
  const auto written = writer.write();
  REQUIRE(!written);
  CHECK(written.failure().cls == FailureClass::invalid);
  CHECK(written.failure().code == "MSG_SIZE_TOO_LARGE");
  CHECK(written.failure().where.find("in/0@1") != std::string::npos);
  CHECK(written.failure().record == 1U);
}

TEST_CASE("a message larger than the client's whole queue is refused and does not wait for ever") {
  const Topic topic(broker(), "kafka-out");
  Writer writer(topic.name());
  writer.spec.properties["queue.buffering.max.kbytes"] = "10";
  MUST(writer.open());
  writer.add({.key = {}, .value = "small"});
  writer.add({.key = {}, .value = std::string(500'000, 'x')});
  const auto written = writer.write();
  REQUIRE(!written);
  CHECK(written.failure().cls == FailureClass::invalid);
  CHECK(written.failure().record == 1U);
}

TEST_CASE("around a message that is too large, every other one is sent, and sent once") {
  const Topic topic(broker(), "kafka-out", 1, {{"max.message.bytes", "20000"}});
  Writer writer(topic.name());
  MUST(writer.open());
  for (int i = 0; i < 10; ++i) {
    const bool large = i == 3 || i == 7;
    writer.add({.key = {}, .value = large ? std::string(30'000, 'x') : "v" + std::to_string(i)});
  }
  auto refused = writer.write_around();
  REQUIRE_MESSAGE(refused.ok(), text_of(refused));
  REQUIRE(refused->size() == 2);
  CHECK((*refused)[0].record == 3);
  CHECK((*refused)[1].record == 7);
  CHECK((*refused)[0].failure.cls == FailureClass::invalid);
  std::vector<std::string> found;
  for (const KafkaRecord& record : read_topic(broker(), topic.name()))
    found.push_back(*record.value);
  CHECK(found == std::vector<std::string>{"v0", "v1", "v2", "v4", "v5", "v6", "v8", "v9"});
}

TEST_CASE("a message that the broker refuses takes no other with it") {
  // The broker rejects a whole batch of messages for one timestamp that is too far off.
  const Topic topic(broker(), "kafka-out", 1, {{"message.timestamp.after.max.ms", "3600000"}});
  Writer writer(topic.name());
  MUST(writer.open());
  for (int i = 0; i < 5; ++i) {
    const std::int64_t late = i == 2 ? 24LL * 3'600'000 : 0;
    writer.add({.key = {}, .value = "v" + std::to_string(i), .timestamp_ms = wall_ms() + late});
  }
  auto refused = writer.write_around();
  REQUIRE_MESSAGE(refused.ok(), text_of(refused));
  REQUIRE(refused->size() == 1);
  CHECK(refused->front().record == 2);
  CHECK(refused->front().failure.cls == FailureClass::invalid);
  std::set<std::string> found;
  for (const KafkaRecord& record : read_topic(broker(), topic.name())) found.insert(*record.value);
  CHECK(found == std::set<std::string>{"v0", "v1", "v3", "v4"});
}

TEST_CASE("a topic that does not exist is refused before the first write, and is not created") {
  const std::string name = unique_name("kafka-none");
  Writer writer(name);
  const auto opened = writer.open();
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::setup);
  CHECK(opened.failure().text().find(name) != std::string::npos);
}

TEST_CASE("a topic that this user may not see or write is unauthorized") {
  const Topic topic(broker(), "kafka-out");
  Writer writer(topic.name());
  writer.spec.brokers = services().kafka_sasl;
  writer.spec.properties = {{"security.protocol", "SASL_PLAINTEXT"},
                            {"sasl.mechanism", "PLAIN"},
                            {"sasl.username", "limited"},
                            {"sasl.password", "limited-secret"}};
  const auto opened = writer.open();
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::unauthorized);
}

TEST_CASE(
    "a topic that is deleted between two writes fails the write; nothing is reported as written") {
  auto topic = std::make_unique<Topic>(broker(), "kafka-out");
  Writer writer(topic->name());
  writer.spec.properties["message.timeout.ms"] = "5000";
  writer.spec.properties["topic.metadata.propagation.max.ms"] = "1000";
  MUST(writer.open());
  writer.add({.key = {}, .value = "one"});
  MUST(writer.write());
  topic.reset();
  writer.add({.key = {}, .value = "two"});
  const auto written = writer.write();
  REQUIRE(!written);
  CAPTURE(written.failure().text());
  CHECK((written.failure().cls == FailureClass::setup ||
         written.failure().cls == FailureClass::transient));
}

TEST_CASE(
    "while the broker is down a write fails as transient, and the same write works when it is "
    "back") {
  const OwnServer server(OwnServer::Kind::kafka);
  const std::string at = server.at().kafka;
  const Topic topic(at, "kafka-down");
  Writer writer(topic.name());
  writer.spec.brokers = at;
  writer.spec.properties["message.timeout.ms"] = "2000";
  MUST(writer.open());
  writer.add({.key = {}, .value = "one"});
  MUST(writer.write());
  server.kill();
  writer.add({.key = {}, .value = "two"});
  const auto failed = writer.write();
  REQUIRE(!failed);
  CHECK(failed.failure().cls == FailureClass::transient);
  server.restart();
  MUST(writer.write());
  std::set<std::string> found;
  for (const KafkaRecord& record : read_topic(at, topic.name())) found.insert(*record.value);
  CHECK(found == std::set<std::string>{"one", "two"});
}

TEST_CASE("a write under way ends soon when it is cancelled, and the next one works") {
  const OwnServer server(OwnServer::Kind::kafka);
  const std::string at = server.at().kafka;
  const Topic topic(at, "kafka-cancel");
  Writer writer(topic.name());
  writer.spec.brokers = at;
  MUST(writer.open());
  writer.add({.key = {}, .value = "one"});
  MUST(writer.write());
  server.freeze();
  std::atomic<bool> done{false};
  std::optional<Failure> failure;
  std::thread write([&] {
    writer.add({.key = {}, .value = "two"});
    auto written = writer.write();
    if (!written) failure = written.failure();
    done = true;
  });
  CHECK_FALSE(wait_for(std::chrono::seconds(1), [&] { return done.load(); }));
  writer.target().cancel();
  CHECK(wait_for(std::chrono::seconds(15), [&] { return done.load(); }));
  server.thaw();
  write.join();
  REQUIRE(failure);
  CHECK(failure->cls == FailureClass::transient);
  CHECK(failure->effect == Effect::unknown);
  MUST(writer.write());
  std::set<std::string> found;
  for (const KafkaRecord& record : read_topic(at, topic.name())) found.insert(*record.value);
  CHECK(found == std::set<std::string>{"one", "two"});
}

TEST_CASE("a write that fails at its torn point has sent a part, and writes all when tried again") {
  const Topic topic(broker(), "kafka-torn");
  Writer writer(topic.name());
  MUST(writer.open());
  REQUIRE(failure_point::arm("target_write.torn=error:transient"));
  for (int i = 0; i < 10; ++i) writer.add({.key = {}, .value = "v" + std::to_string(i)});
  const auto torn = writer.write();
  REQUIRE(!torn);
  CHECK(torn.failure().code == "failure_point");
  CHECK(read_topic(broker(), topic.name()).size() == 5);
  MUST(writer.write());
  std::set<std::string> found;
  for (const KafkaRecord& record : read_topic(broker(), topic.name())) found.insert(*record.value);
  CHECK(found.size() == 10);
}
