#include <doctest/doctest.h>

#include "tests/connectors/format/decoded.h"

using namespace flow;
using flow::test::path;

TEST_CASE(
    "a raw record has no fields, and asking for one is a set-up error that says what there is") {
  const auto decoder = make_raw_decoder();
  const auto bound = decoder->bind({path({"a"})});
  REQUIRE_FALSE(bound.ok());
  CHECK(bound.failure().cls == FailureClass::setup);
  CHECK(bound.failure().hint.find("@key") != std::string::npos);
}

TEST_CASE("a raw record of any bytes decodes") {
  FieldSource value;
  value.from = FieldSource::From::value;
  flow::test::Decoded d(make_raw_decoder(), {value});
  CHECK(d.bound);
  CHECK(d.read("\xFF\xFE not text"));
}
