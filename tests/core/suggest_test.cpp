#include "core/suggest.h"

#include <doctest/doctest.h>

using Names = std::vector<std::string_view>;

TEST_CASE("the name that a typing error turns into the wrong one is suggested") {
  const Names names{"records", "bytes", "wait", "brokers", "exactly_once"};
  CHECK(flow::nearest_name("record", names) == "records");
  CHECK(flow::nearest_name("recrods", names) == "records");
  CHECK(flow::nearest_name("byte", names) == "bytes");
  CHECK(flow::nearest_name("brokrs", names) == "brokers");
  CHECK(flow::nearest_name("WAIT", names) == "wait");
  CHECK(flow::nearest_name("exactly-once", names) == "exactly_once");
}

TEST_CASE("a name that is like none is not answered with a guess") {
  const Names names{"records", "bytes", "wait"};
  CHECK(flow::nearest_name("dlq", names).empty());
  CHECK(flow::nearest_name("w", names).empty());
  CHECK(flow::nearest_name("", names).empty());
  CHECK(flow::nearest_name(std::string(10'000, 'x'), names).empty());
  CHECK(flow::did_you_mean("dlq", names).empty());
}

TEST_CASE("the nearest of several names wins") {
  CHECK(flow::nearest_name("topic", {"topics", "optic", "tonic"}) == "topics");
  CHECK(flow::did_you_mean("tpoic", {"topics", "topic"}) == "; did you mean \"topic\"?");
}

TEST_CASE("swapped letters are nearer than a changed one") {
  CHECK(flow::nearest_name("tabel", {"label", "table"}) == "table");
  CHECK(flow::nearest_name("tabel", {"table", "label"}) == "table");
}
