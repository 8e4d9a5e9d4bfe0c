#include "core/field_source.h"

#include <doctest/doctest.h>

using flow::FieldSource;
using From = flow::FieldSource::From;
using Steps = std::vector<std::string>;

namespace {

FieldSource parsed(std::string_view text) {
  auto result = flow::parse_field_source(text);
  REQUIRE_MESSAGE(result.ok(), std::string(text));
  CHECK(result.value().text == text);
  return result.value();
}

}  // namespace

TEST_CASE("a path names its steps below the value") {
  CHECK(parsed("$").from == From::value);
  CHECK(parsed("$.a").path == Steps{"a"});
  CHECK(parsed("$.a.b[2].c").path == Steps{"a", "b", "[2]", "c"});
  CHECK(parsed("$[0][10]").path == Steps{"[0]", "[10]"});
  CHECK(parsed("$.'a.b'.c").path == Steps{"a.b", "c"});
  CHECK(parsed("$.'it''s'").path == Steps{"it's"});
  CHECK(parsed("$.with space").path == Steps{"with space"});
  CHECK(parsed("$.naïve").path == Steps{"naïve"});
}

TEST_CASE("what a record has beside its value is named with @") {
  CHECK(parsed("@key").from == From::key);
  CHECK(parsed("@topic").from == From::topic);
  CHECK(parsed("@partition").from == From::partition);
  CHECK(parsed("@offset").from == From::offset);
  CHECK(parsed("@timestamp").from == From::timestamp);
  const FieldSource header = parsed("@headers.trace.id");
  CHECK(header.from == From::header);
  CHECK(header.name == "trace.id");
}

TEST_CASE("a constant keeps its text and has the type that its form says") {
  CHECK(parsed("1").constant_type == flow::Type::int64);
  CHECK(parsed("-9223372036854775808").constant_type == flow::Type::int64);
  CHECK(parsed("9223372036854775808").constant_type == flow::Type::decimal);
  CHECK(parsed("1.10").constant_type == flow::Type::decimal);
  CHECK(parsed("1.10").name == "1.10");
  CHECK(parsed("1e3").constant_type == flow::Type::decimal);
  CHECK(parsed("true").constant_type == flow::Type::boolean);
  const FieldSource text = parsed("'$.it''s'");
  CHECK(text.from == From::constant);
  CHECK(text.constant_type == flow::Type::text);
  CHECK(text.name == "$.it's");
}

TEST_CASE("what is neither a field nor a constant is refused with what to write") {
  for (const char* text : {"",
                           "id",
                           "$id",
                           "$.",
                           "$..a",
                           "$.a.",
                           "$.a[",
                           "$.a[]",
                           "$.a[-1]",
                           "$.a[x]",
                           "$.a[99999999999]",
                           "$.'a",
                           "@",
                           "@Key",
                           "@headers",
                           "@headers.",
                           "'open",
                           "'a'b",
                           "0755",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "True"}) {
    CAPTURE(text);
    const auto result = flow::parse_field_source(text);
    REQUIRE_FALSE(result.ok());
    CHECK(result.failure().cls == flow::FailureClass::setup);
    CHECK_FALSE(result.failure().hint.empty());
  }
  CHECK(flow::parse_field_source("@offsett").failure().hint == "did you mean \"@offset\"?");
}
