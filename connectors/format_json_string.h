#pragma once
// Escapes inside JSON strings. The bytes between the quotes are already known to be UTF-8 without
// raw control characters; a lone surrogate is refused, never replaced. Threads: any.
#include <string_view>

#include "core/batch.h"

namespace flow::json {

// Whether every escape of the string is one of RFC 8259 and every surrogate has its pair.
bool escapes_are_valid(std::string_view raw);

// The string's text in the arena. False: as above.
bool unescape(std::string_view raw, Arena& arena, std::string_view& text);

}  // namespace flow::json
