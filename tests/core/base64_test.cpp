#include "core/base64.h"

#include <doctest/doctest.h>

using namespace flow;

TEST_CASE("base64 gives every string of bytes back, and refuses what is none") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(from_base64(to_base64(bytes)) == bytes);
    bytes.push_back(static_cast<char>(i * 7));
  }
  CHECK(to_base64("foob") == "Zm9vYg==");
  CHECK(from_base64("Zm9vYg=") == std::nullopt);
  CHECK(from_base64("Zm9*Yg==") == std::nullopt);
}
