#include "core/dead_letter.h"

#include <array>

namespace flow {
namespace {

constexpr std::array<std::string_view, 5> states{"pending", "replaying", "replayed", "parked",
                                                 "discarded"};

}  // namespace

std::string_view name_of(LetterState state) { return states[static_cast<std::size_t>(state)]; }

std::optional<LetterState> letter_state_named(std::string_view name) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == name) return static_cast<LetterState>(i);
  }
  return std::nullopt;
}

std::optional<FailureClass> failure_class_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(FailureClass::defect); ++i) {
    const auto cls = static_cast<FailureClass>(i);
    if (name_of(cls) == name) return cls;
  }
  return std::nullopt;
}

}  // namespace flow
