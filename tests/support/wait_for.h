#pragma once
// wait_for(deadline, condition): polls until the condition holds. Tests wait for what they want to
// see and never sleep a guess.
#include <chrono>
#include <thread>

namespace flow::test {

// True as soon as condition() is; false when the deadline passed without it.
template <class Condition>
bool wait_for(std::chrono::milliseconds deadline, Condition condition,
              std::chrono::milliseconds step = std::chrono::milliseconds(10)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(step);
  }
  return true;
}

}  // namespace flow::test
