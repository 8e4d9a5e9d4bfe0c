// scripts/quickstart does what the README says of it.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/sqlite_help.h"
#include "tests/support/temp_dir.h"

using namespace flow::test;

namespace {

using Rows = std::vector<std::vector<std::optional<std::string>>>;

Finished quickstart(const TempDir& dir) {
  return run(
      {{FLOW_SOURCE_DIR "/scripts/quickstart", dir.path().string()}, {{"FLOW", FLOW_PROGRAM}}});
}

Rows orders(const TempDir& dir) {
  return sqlite_query(dir / "warehouse.db",
                      "SELECT order_id, status, note FROM orders ORDER BY order_id");
}

const Rows after_first_run{
    {"-1", "placed", "a refund"},
    {"1001", "shipped", "leave at the door"},
    {"1002", "shipped", std::nullopt},
    {"1003", "delivered", "領収書をください 🧾"},
    {"1004", "placed", "none given"},
    {"1005", "placed", ""},
    {"1006", "returned", std::nullopt},
    {"1007", "placed", "null"},
    {"1008", "placed", "C:\\temp, comma, \"quotes\""},
    {"1009", "placed", "amount written as 1e2"},
    {"1010", "cancelled", std::nullopt},
    {"1011", "placed", "escaped: é 🚀"},
    {"1012", "placed", "yes"},
    {"9007199254740993", "placed", "an order number that a double cannot hold"},
};

}  // namespace

TEST_CASE(
    "the quickstart merges the awkward orders, loads nothing twice, and only what is new later") {
  const TempDir dir;
  const Finished first = quickstart(dir);
  INFO(first.out << first.err);
  REQUIRE(first.ended == Ended{0, 0});
  CHECK(orders(dir) == after_first_run);

  const Finished second = quickstart(dir);
  INFO(second.out << second.err);
  REQUIRE(second.ended == Ended{0, 0});
  CHECK(second.out.find("Nothing was loaded twice") != std::string::npos);
  CHECK(orders(dir) == after_first_run);

  dir.append("orders.jsonl", "{\"order_id\": 1012, \"status\": \"paid\", \"amount\": 7.70}\n");
  const Finished third = quickstart(dir);
  REQUIRE(third.ended == Ended{0, 0});
  Rows want = after_first_run;
  want[12] = {"1012", "paid", "none given"};
  CHECK(orders(dir) == want);
}
