#include "core/letters.h"

#include <doctest/doctest.h>

using namespace flow;

namespace {

// One record with everything that a record can have.
Batch batch_of_one() {
  Batch batch;
  batch.span_of({"orders", 3}, Position{40});
  Record r;
  r.value = batch.arena.copy(std::string_view("\x00\xffv", 3));
  r.key = batch.arena.copy("");
  r.offset = {42};
  r.timestamp_ms = 978'307'200'000;
  r.header_first = 0;
  r.header_count = 4;
  batch.headers = {{"a", batch.arena.copy("1")},
                   {"a", batch.arena.copy("2")},
                   {"none", {}},
                   {"binary", batch.arena.copy(std::string_view("\x00\x01", 2))}};
  batch.records.push_back(r);
  batch.spans[0].next = {43};
  return batch;
}

Pipeline pipeline() {
  Pipeline p;
  p.name = "warehouse";
  p.digest = "abc";
  p.targets.resize(2);
  p.targets[1].label = "postgres:t";
  return p;
}

}  // namespace

TEST_CASE(
    "a letter holds the record's bytes, headers in their order, time and place as they were") {
  const Batch batch = batch_of_one();
  const RecordFailure failure{0,
                              1,
                              {.cls = FailureClass::invalid,
                               .code = "cast.type",
                               .where = "orders/3@42, postgres:t, column amount",
                               .what = "text \"x\" is not a number"},
                              Stage::cast};
  const DeadLetter l = make_letter(pipeline(), "run-7", batch, failure, {2, 1000});
  CHECK(l.pipeline == "warehouse");
  CHECK(l.version == "abc");
  CHECK(l.target == "postgres:t");
  CHECK(l.origin == PartitionId{"orders", 3});
  CHECK(l.offset == Offset{42});
  CHECK(l.value == std::string("\x00\xffv", 3));
  CHECK(l.key == "");
  REQUIRE(l.headers.size() == 4);
  CHECK(l.headers[0].name == "a");
  CHECK(l.headers[0].value == "1");
  CHECK(l.headers[1].name == "a");
  CHECK(l.headers[1].value == "2");
  CHECK_FALSE(l.headers[2].value.has_value());
  CHECK(l.headers[3].value == std::string("\x00\x01", 2));
  CHECK(l.timestamp_ms == 978'307'200'000);
  CHECK(l.stage == "cast");
  CHECK(l.cls == FailureClass::invalid);
  CHECK(l.code == "cast.type");
  CHECK(l.error == "column amount: text \"x\" is not a number");
  CHECK(l.attempts == 2);
  CHECK(l.first_failed_ms == 1000);
  CHECK(l.last_failed_ms > 1000);
  CHECK(l.run_id == "run-7");
  CHECK(l.operation_id == "orders/3/42");
}

TEST_CASE("null and empty stay apart in a letter") {
  Batch batch = batch_of_one();
  batch.records[0].value = {};
  const DeadLetter l =
      make_letter(pipeline(), "r", batch, {0, 1, {.what = "no value"}, Stage::cast}, {});
  CHECK_FALSE(l.value.has_value());
  CHECK(l.key == "");
}

TEST_CASE("a letter's error does not repeat the place that the letter says anyway") {
  const auto error = [](const std::string& where) {
    return letter_error({.where = where, .what = "is wrong"}, "orders/3@42", "postgres:t");
  };
  CHECK(error("") == "is wrong");
  CHECK(error("orders/3@42") == "is wrong");
  CHECK(error("orders/3@42, postgres:t") == "is wrong");
  CHECK(error("target postgres:t: orders/3@42") == "is wrong");
  CHECK(error("target postgres:t: orders/3@42, column a") == "column a: is wrong");
  CHECK(error("orders/3@42, postgres:t (db:5432/x as y), column a") ==
        "(db:5432/x as y), column a: is wrong");
  CHECK(error("transform: sql") == "transform, sql: is wrong");
}
