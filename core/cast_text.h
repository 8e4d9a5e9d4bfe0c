#pragma once
// Text: UTF-8 as the Unicode standard has it (no surrogates, no overlong forms), and short forms
// for messages. Threads: any.
#include <cstddef>
#include <string>
#include <string_view>

#include "core/value.h"

namespace flow {

bool valid_utf8(std::string_view bytes);
// Characters (code points) of valid UTF-8.
std::size_t utf8_characters(std::string_view text);
// Whether a JSON text holds U+0000, which it can only write as \u0000, in a value or a key.
bool json_holds_nul(std::string_view json);
// Cut at 40 characters, control characters as escapes, quoted.
std::string shown(std::string_view text);
// A cell in words: `text "abc"`, `number 1.5`, `JSON [1,2]`.
std::string described(const Value& value);

}  // namespace flow
