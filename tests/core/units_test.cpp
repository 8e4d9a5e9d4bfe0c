#include "core/units.h"

#include <doctest/doctest.h>

using flow::Millis;

TEST_CASE("a duration is a whole number with a unit, or several from large to small") {
  CHECK(flow::parse_duration("500ms").value() == Millis(500));
  CHECK(flow::parse_duration("6h").value() == Millis(6 * 3'600'000));
  CHECK(flow::parse_duration("1d").value() == Millis(86'400'000));
  CHECK(flow::parse_duration("1h30m").value() == Millis(5'400'000));
  CHECK(flow::parse_duration("1d2h3m4s5ms").value() == Millis(93'784'005));
  CHECK(flow::parse_duration("0s").value() == Millis(0));
}

TEST_CASE("what could be read in two ways is no duration") {
  for (const char* text :
       {"", "5", "1.5s", "-1s", "+1s", "1 s", " 1s", "1s ", "1S", "1m1h", "1s1s", "12:30:00", "1e3",
        "10_000ms", "s", "1w", "99999999999999999999ms", "99999999999999999d"}) {
    CAPTURE(text);
    CHECK_FALSE(flow::parse_duration(text).ok());
  }
  CHECK(flow::parse_duration("500").failure().hint == "write 500ms, 500s, 500m, 500h or 500d");
}

TEST_CASE("a formatted duration reads back as the same duration") {
  for (const std::int64_t ms : {0, 1, 999, 1'000, 61'001, 5'400'000, 86'400'000, 93'784'005}) {
    const std::string text = flow::format_duration(Millis(ms));
    CAPTURE(text);
    CHECK(flow::parse_duration(text).value() == Millis(ms));
  }
  CHECK(flow::format_duration(Millis(5'400'000)) == "1h30m");
}

TEST_CASE("a size counts bytes, in powers of 1000 or of 1024 as its unit says") {
  CHECK(flow::parse_size("512").value() == 512);
  CHECK(flow::parse_size("512B").value() == 512);
  CHECK(flow::parse_size("10kB").value() == 10'000);
  CHECK(flow::parse_size("10MB").value() == 10'000'000);
  CHECK(flow::parse_size("8MiB").value() == 8'388'608);
  CHECK(flow::parse_size("1GiB").value() == 1'073'741'824);
  CHECK(flow::parse_size("2TB").value() == 2'000'000'000'000);
}

TEST_CASE("a size with an unknown unit is refused with the nearest known one") {
  CHECK(flow::parse_size("8M").failure().hint == "did you mean 8MiB?");
  CHECK(flow::parse_size("8mib").failure().hint == "did you mean 8MiB?");
  CHECK(flow::parse_size("8mb").failure().hint == "did you mean 8MB?");
  for (const char* text :
       {"", "MiB", "-1", "1.5MiB", "8 MiB", "1_000", "1e3", "9999999TiB", "1MiB1"}) {
    CAPTURE(text);
    CHECK_FALSE(flow::parse_size(text).ok());
  }
}

TEST_CASE("a formatted size reads back as the same size") {
  for (const std::int64_t bytes :
       {0LL, 1LL, 1'000LL, 1'024LL, 1'025LL, 8'388'608LL, 10'000'000LL}) {
    const std::string text = flow::format_size(bytes);
    CAPTURE(text);
    CHECK(flow::parse_size(text).value() == bytes);
  }
  CHECK(flow::format_size(8'388'608) == "8MiB");
  CHECK(flow::format_size(10'000'000) == "10MB");
}
