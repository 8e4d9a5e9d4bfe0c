#include <doctest/doctest.h>

#include "tests/connectors/kafka/must.h"
#include "tests/connectors/kafka/reader.h"

using namespace flow;
using namespace flow::test;

TEST_CASE("a topic that does not exist is refused before the first read, with the nearest name") {
  const Topic topic(broker(), "kafka-topics");
  std::string wrong = topic.name();
  std::swap(wrong[2], wrong[3]);
  Reader reader({topic.name(), wrong});
  const auto opened = reader.open();
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::setup);
  CHECK(opened.failure().code == "UNKNOWN_TOPIC_OR_PART");
  CHECK(opened.failure().where.find(wrong) != std::string::npos);
  CHECK(opened.failure().hint.find(topic.name()) != std::string::npos);
}

TEST_CASE("a pattern that matches no topic is refused before the first read") {
  Reader reader({"^no-such-topic-.*"});
  const auto opened = reader.open();
  REQUIRE(!opened);
  CHECK(opened.failure().cls == FailureClass::setup);
  CHECK(opened.failure().text().find("^no-such-topic-.*") != std::string::npos);
}

TEST_CASE("several topics and a pattern are read, and a topic that appears later and fits too") {
  const std::string prefix = unique_name("kafka-pattern");
  const Topic plain(broker(), "kafka-topics");
  create_topic(broker(), prefix + "-a", 1);
  create_topic(broker(), prefix + "-b", 1);
  produce(broker(), plain.name(), numbered(2, 0, "plain"));
  produce(broker(), prefix + "-a", numbered(2, 0, "a"));
  produce(broker(), prefix + "-b", numbered(2, 0, "b"));
  Reader reader({plain.name(), "^" + prefix + "-.*"});
  reader.pipeline.source.kafka.start = StartAt::earliest;
  reader.pipeline.source.kafka.properties["topic.metadata.refresh.interval.ms"] = "1000";
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 6; }));
  std::map<std::string, std::vector<std::string>> by_topic;
  for (const Got& g : reader.got) by_topic[g.partition.topic].push_back(*g.value);
  CHECK(by_topic[plain.name()] == numbered_values(0, 2, "plain"));
  CHECK(by_topic[prefix + "-a"] == numbered_values(0, 2, "a"));
  CHECK(by_topic[prefix + "-b"] == numbered_values(0, 2, "b"));
  create_topic(broker(), prefix + "-c", 1);
  produce(broker(), prefix + "-c", numbered(2, 0, "c"));
  REQUIRE(reader.read_until([&] { return reader.got.size() == 8; }));
  for (const char* end : {"-a", "-b", "-c"}) delete_topic(broker(), prefix + end);
}

TEST_CASE("on_missing: wait waits for a topic, says so, and reads it when it is there") {
  const Topic there(broker(), "kafka-topics");
  const std::string later = unique_name("kafka-later");
  produce(broker(), there.name(), numbered(2, 0, "there"));
  Reader reader({there.name(), later});
  reader.pipeline.source.kafka.on_missing = OnMissing::wait;
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 2; }));
  CHECK(reader.progress().waiting_for == "topic " + later + " to exist");
  create_topic(broker(), later, 1);
  produce(broker(), later, numbered(3, 0, "later"));
  REQUIRE(reader.read_until([&] { return reader.got.size() == 5; }));
  CHECK(reader.progress().waiting_for.empty());
  delete_topic(broker(), later);
}

TEST_CASE("a bounded run that waits for its only topic ends at the end of that topic") {
  const std::string later = unique_name("kafka-later");
  Reader reader({later});
  reader.pipeline.source.kafka.on_missing = OnMissing::wait;
  reader.context.until_end = true;
  MUST(reader.open());
  for (int i = 0; i < 3; ++i) {
    const auto outcome = reader.read();
    REQUIRE(outcome);
    REQUIRE(*outcome == ReadOutcome::more);
  }
  create_topic(broker(), later, 1);
  produce(broker(), later, numbered(3));
  bool ended = false;
  REQUIRE(wait_for(std::chrono::seconds(30), [&] {
    const auto outcome = reader.read();
    REQUIRE(outcome);
    ended = *outcome == ReadOutcome::end;
    return ended;
  }));
  CHECK(reader.got.size() <= 3);  // what was there when it appeared
  delete_topic(broker(), later);
}

TEST_CASE("a topic that is deleted while it is read ends the run, naming it") {
  auto topic = std::make_unique<Topic>(broker(), "kafka-deleted");
  const std::string name = topic->name();
  produce(broker(), name, numbered(1));
  Reader reader({name});
  reader.pipeline.source.kafka.properties["topic.metadata.refresh.interval.ms"] = "500";
  MUST(reader.open());
  REQUIRE(reader.read_until([&] { return reader.got.size() == 1; }));
  topic.reset();
  CHECK_FALSE(reader.read_until([&] { return false; }));
  REQUIRE(reader.failure);
  CHECK(reader.failure->cls == FailureClass::setup);
  CHECK(reader.failure->where.find(name) != std::string::npos);
}
