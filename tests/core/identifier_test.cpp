#include "core/identifier.h"

#include <doctest/doctest.h>
#include <string>

namespace {

void check_parts(std::string_view text, std::string_view schema, std::string_view table) {
  CAPTURE(text);
  const auto name = flow::parse_table_name(text);
  REQUIRE(name);
  CHECK(name.value().schema == schema);
  CHECK(name.value().table == table);
}

}  // namespace

TEST_CASE("a table name keeps its case and its parts") {
  check_parts("orders", "", "orders");
  check_parts("public.Orders", "public", "Orders");
  check_parts(R"("Mixed"."Order Items")", "Mixed", "Order Items");
  check_parts(R"(public."a.b")", "public", "a.b");
  check_parts(R"("a""b")", "", R"(a"b)");
  check_parts("naïve.select", "naïve", "select");
}

TEST_CASE("a table name that cannot be read is refused with the way to write it") {
  for (const char* text :
       {"", ".", "a.", ".a", "a..b", "\"a", "\"a\"b", "a\"b\"", "a.b.c", "\"\""}) {
    CAPTURE(text);
    const auto name = flow::parse_table_name(text);
    REQUIRE_FALSE(name);
    CHECK(name.failure().cls == flow::FailureClass::setup);
    CHECK(name.failure().hint.find("schema.table") != std::string::npos);
  }
}

TEST_CASE("identifiers are quoted and inner quotes doubled") {
  CHECK(flow::quote_identifier("order") == R"("order")");
  CHECK(flow::quote_identifier(R"(a"b)") == R"("a""b")");
  CHECK(flow::quoted({"Mixed", "Order Items"}) == R"("Mixed"."Order Items")");
  CHECK(flow::quoted({"", "x"}) == R"("x")");
}

TEST_CASE("a table name is shown as it can be written") {
  for (const char* text : {"orders", "public.orders", R"("a.b"."c d")", R"("a""b")"}) {
    const auto name = flow::parse_table_name(text);
    REQUIRE(name);
    CHECK(name.value().text() == text);
  }
}

TEST_CASE("names that Postgres would cut are refused") {
  CHECK(flow::check_postgres_identifier(std::string(63, 'x')));
  const auto cut = flow::check_postgres_identifier(std::string(64, 'x'));
  REQUIRE_FALSE(cut);
  CHECK(cut.failure().what.find("64 bytes") != std::string::npos);
  std::string two_byte_letters;
  for (int i = 0; i < 32; ++i) two_byte_letters += "ï";
  CHECK_FALSE(flow::check_postgres_identifier(two_byte_letters));
  CHECK_FALSE(flow::check_postgres_identifier(""));
}
