#include "core/classify.h"

#include <doctest/doctest.h>
#include <set>
#include <string>
#include <utility>

using flow::FailureClass;

TEST_CASE("the table of failure classes names each code once, with a sentence") {
  std::set<std::pair<flow::FailureSystem, std::string>> seen;
  std::set<int> numbers;
  for (const auto& row : flow::failure_table()) {
    CAPTURE(row.code);
    CHECK(seen.emplace(row.system, std::string(row.code)).second);
    CHECK(row.sentence.size() > 5);
    CHECK(row.sentence.back() != '.');
    if (row.system == flow::FailureSystem::sqlite) {
      CHECK(numbers.insert(row.number).second);
    } else {
      CHECK(row.number == 0);
    }
    if (row.system == flow::FailureSystem::postgres) {
      CHECK((row.code.size() == 2 || row.code.size() == 5));
    }
  }
  CHECK(seen.size() >= 80);
}

TEST_CASE("each row of the table is what its lookup gives") {
  for (const auto& row : flow::failure_table()) {
    CAPTURE(row.code);
    switch (row.system) {
      case flow::FailureSystem::postgres:
        if (row.code.size() == 5) CHECK(flow::classify_sqlstate(row.code) == row.cls);
        if (row.code.size() == 2) {
          CHECK(flow::classify_sqlstate(std::string(row.code) + "ZZZ") == row.cls);
        }
        break;
      case flow::FailureSystem::sqlite: CHECK(flow::classify_sqlite(row.number) == row.cls); break;
      case flow::FailureSystem::kafka: CHECK(flow::classify_kafka(row.code) == row.cls); break;
      case flow::FailureSystem::http: {
        std::string status(row.code);
        if (status.ends_with("xx")) status.replace(1, 2, "99");
        CHECK(flow::classify_http(std::stoi(status)) == row.cls);
        break;
      }
      case flow::FailureSystem::flow: {
        const auto* found = flow::find_own(row.code);
        REQUIRE(found != nullptr);
        CHECK(found->cls == row.cls);
        break;
      }
    }
  }
}

TEST_CASE("an SQLSTATE is classed by its code, else by its class") {
  CHECK(flow::classify_sqlstate("40P01") == FailureClass::transient);
  CHECK(flow::classify_sqlstate("40001") == FailureClass::transient);
  CHECK(flow::classify_sqlstate("08006") == FailureClass::transient);
  CHECK(flow::classify_sqlstate("57P01") == FailureClass::transient);
  CHECK(flow::classify_sqlstate("53300") == FailureClass::throttled);
  CHECK(flow::classify_sqlstate("22001") == FailureClass::invalid);
  CHECK(flow::classify_sqlstate("22P04") == FailureClass::defect);
  CHECK(flow::classify_sqlstate("23505") == FailureClass::invalid);
  CHECK(flow::classify_sqlstate("28P01") == FailureClass::unauthorized);
  CHECK(flow::classify_sqlstate("42501") == FailureClass::unauthorized);
  CHECK(flow::classify_sqlstate("42P10") == FailureClass::setup);
  CHECK(flow::classify_sqlstate("42883") == FailureClass::setup);
}

TEST_CASE("a SQLite code is classed by its extended code, else by its primary code") {
  CHECK(flow::classify_sqlite(5) == FailureClass::transient);
  CHECK(flow::classify_sqlite(5 | (9 << 8)) == FailureClass::transient);
  CHECK(flow::classify_sqlite(10 | (4 << 8)) == FailureClass::setup);
  CHECK(flow::classify_sqlite(10 | (12 << 8)) == FailureClass::transient);
  CHECK(flow::classify_sqlite(19 | (99 << 8)) == FailureClass::invalid);
  CHECK(flow::classify_sqlite(1032) == FailureClass::setup);
  CHECK(flow::classify_sqlite(8) == FailureClass::unauthorized);
}

TEST_CASE("a librdkafka error is classed by its name") {
  CHECK(flow::classify_kafka("_TRANSPORT") == FailureClass::transient);
  CHECK(flow::classify_kafka("TOPIC_AUTHORIZATION_FAILED") == FailureClass::unauthorized);
  CHECK(flow::classify_kafka("UNKNOWN_TOPIC_OR_PART") == FailureClass::setup);
  CHECK(flow::classify_kafka("MSG_SIZE_TOO_LARGE") == FailureClass::invalid);
  CHECK(flow::classify_kafka("FENCED_INSTANCE_ID") == FailureClass::fenced);
}

TEST_CASE("an HTTP status is classed by itself, else by its hundred") {
  CHECK(flow::classify_http(429) == FailureClass::throttled);
  CHECK(flow::classify_http(500) == FailureClass::transient);
  CHECK(flow::classify_http(599) == FailureClass::transient);
  CHECK(flow::classify_http(422) == FailureClass::invalid);
  CHECK(flow::classify_http(401) == FailureClass::unauthorized);
  CHECK(flow::classify_http(418) == FailureClass::setup);
  CHECK(flow::classify_http(999) == FailureClass::setup);
}

TEST_CASE("what may pass by itself is poison, what the record alone decides is invalid") {
  CHECK(flow::classify_sqlstate("23503") == FailureClass::poison);
  CHECK(flow::classify_sqlstate("P0001") == FailureClass::poison);
  CHECK(flow::classify_sqlstate("23514") == FailureClass::invalid);
  CHECK(flow::classify_sqlstate("23502") == FailureClass::invalid);
  CHECK(flow::classify_sqlstate("22P02") == FailureClass::invalid);
  CHECK(flow::classify_sqlite(787) == FailureClass::poison);
  CHECK(flow::classify_sqlite(1299) == FailureClass::invalid);
}

TEST_CASE("no answer is transient and an unknown code stops the run") {
  CHECK(flow::classify_sqlstate("") == FailureClass::transient);
  CHECK(flow::classify_sqlstate("99999") == FailureClass::setup);
  CHECK(flow::classify_sqlstate("4") == FailureClass::setup);
  CHECK(flow::classify_sqlite(200) == FailureClass::setup);
  CHECK(flow::classify_kafka("_NO_SUCH_NAME") == FailureClass::setup);
}
