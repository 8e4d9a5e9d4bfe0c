#include <doctest/doctest.h>

#include "core/clock.h"
#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/reader.h"
#include "tests/support/broker.h"

using namespace flow;
using namespace flow::test;

namespace {

void log_in(Reader& reader, const std::string& user, const std::string& password) {
  reader.pipeline.source.kafka.brokers = services().kafka_sasl;
  auto& properties = reader.pipeline.source.kafka.properties;
  properties["security.protocol"] = "SASL_PLAINTEXT";
  properties["sasl.mechanism"] = "PLAIN";
  properties["sasl.username"] = user;
  properties["sasl.password"] = password;
}

Result<void> open_once(Reader& reader) {
  auto made = make_kafka_source(reader.context);
  if (!made) return std::move(made).failure();
  return made->source->open(reader.listener);
}

}  // namespace

TEST_CASE("the right password reads") {
  const Topic topic(broker(), "kafka-login");
  produce(broker(), topic.name(), numbered(3));
  Reader reader({topic.name()});
  log_in(reader, "admin", "admin-secret");
  MUST(reader.to_end());
  CHECK(values(reader.got) == numbered_values(0, 3));
}

TEST_CASE("a wrong password is told from a dead broker, and is in no message") {
  const Topic topic(broker(), "kafka-login");
  Reader reader({topic.name()});
  log_in(reader, "admin", "canary-4711");
  const auto start = Monotonic::now();
  const auto opened = open_once(reader);
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::unauthorized);
  CHECK(opened.failure().code == "_AUTHENTICATION");
  CHECK(opened.failure().exit_code() == ExitCode::unauthorized);
  CHECK(opened.failure().text().find("canary-4711") == std::string::npos);
  CHECK(Monotonic::now() - start < std::chrono::seconds(9));
  for (const std::string& line : reader.log.lines())
    CHECK(line.find("canary-4711") == std::string::npos);
}

TEST_CASE("a user without a right to the topic is told so, not that it does not exist") {
  const Topic topic(broker(), "kafka-login");
  Reader reader({topic.name()});
  log_in(reader, "limited", "limited-secret");
  const auto opened = open_once(reader);
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::unauthorized);
  CHECK(opened.failure().code == "TOPIC_AUTHORIZATION_FAILED");
  CHECK(opened.failure().where.find(topic.name()) != std::string::npos);
}

TEST_CASE("a broker that cannot be reached is a transient failure that says so") {
  Reader reader({"orders"});
  reader.pipeline.source.kafka.brokers = "127.0.0.1:1";
  const auto opened = open_once(reader);
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::transient);
  CHECK(opened.failure().text().find("127.0.0.1:1") != std::string::npos);
}

TEST_CASE("a property that librdkafka does not know, or a value it refuses, is found offline") {
  CHECK(check_kafka_property("fetch.wait.max.ms", "100").empty());
  CHECK(check_kafka_property("compression.type", "zstd").empty());
  CHECK_FALSE(check_kafka_property("fetch.wait.max", "100").empty());
  CHECK_FALSE(check_kafka_property("fetch.wait.max.ms", "soon").empty());
  for (const char* owned : {"enable.auto.commit", "auto.offset.reset", "isolation.level", "acks",
                            "enable.idempotence", "group.id", "bootstrap.servers"}) {
    CAPTURE(owned);
    CHECK(check_kafka_property(owned, "x").find("cannot be set here") == 0);
  }
  Reader reader({"orders"});
  reader.pipeline.source.kafka.properties["no.such.property"] = "1";
  const auto opened = open_once(reader);
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::setup);
  CHECK(opened.failure().what.find("no.such.property") != std::string::npos);
}

TEST_CASE("a broker that restarts is waited for: said once, and reading goes on") {
  const OwnServer server(OwnServer::Kind::kafka);
  const std::string at = server.at().kafka;
  const Topic topic(at, "kafka-restart");
  produce(at, topic.name(), numbered(10));
  Reader reader({topic.name()});
  reader.pipeline.source.kafka.brokers = at;
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 10; }));
  MUST(reader.commit());
  server.kill();
  REQUIRE(reader.read_until([&] { return reader.log.has("source.unreachable"); }));
  server.restart();
  produce(at, topic.name(), numbered(5, 0, "w"));
  REQUIRE(reader.read_until([&] { return reader.got.size() >= 15; }));
  CHECK(reader.read_until([&] { return reader.log.has("source.back"); }));
  std::vector<std::string> expected = numbered_values(0, 10);
  for (const std::string& value : numbered_values(0, 5, "w")) expected.push_back(value);
  CHECK(values(reader.got) == expected);
  REQUIRE(wait_for(std::chrono::seconds(30), [&] {
    const auto committed = reader.commit();
    if (committed) return true;
    CHECK(committed.failure().retryable());
    return false;
  }));
  int told = 0;
  for (const std::string& line : reader.log.lines())
    told += line.find("source.unreachable") == 0 ? 1 : 0;
  CHECK(told == 1);
}
