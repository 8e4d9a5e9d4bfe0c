#pragma once
// Base64 (RFC 4648, with padding). Shape: pure functions.
#include <optional>
#include <string>
#include <string_view>

namespace flow {

void append_base64(std::string& out, std::string_view bytes);
std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);  // nullopt: is none

}  // namespace flow
