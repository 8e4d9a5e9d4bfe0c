#pragma once
// REQUIRE of a Result that says the failure's text.
#include <doctest/doctest.h>
#include <string>

#include "core/result.h"

namespace flow::test {

template <class T>
std::string text_of(const Result<T>& result) {
  return result.ok() ? std::string("ok") : result.failure().text();
}

}  // namespace flow::test

#define MUST(expression)                                                   \
  do {                                                                     \
    const auto must_result = (expression);                                 \
    REQUIRE_MESSAGE(must_result.ok(), ::flow::test::text_of(must_result)); \
  } while (false)
