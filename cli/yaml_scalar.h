#pragma once
// What a plain scalar is in the YAML 1.2 core schema, and what else a person may have meant by it.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flow {

enum class ScalarKind : std::uint8_t { null, boolean, integer, real, text };

// Of a scalar without quotes. "yes", "0o17" apart from "017", "12:30:00" and "1_000" as YAML 1.2
// says: text, integer, integer, text, text.
ScalarKind scalar_kind(std::string_view plain);

// The number of an integer scalar; nullopt: out of range. A leading zero is for the caller to
// refuse.
std::optional<std::int64_t> scalar_integer(std::string_view integer);

// Why text is no whole number, in words that say what to write instead.
std::string why_not_integer(std::string_view text);

}  // namespace flow
