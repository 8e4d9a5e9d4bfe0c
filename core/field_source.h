#pragma once
// Where a column's value comes from, as the pipeline file writes it:
//   $             the whole value            $.a.b[2]      a field of it
//   $.'a.b'       a name with other signs    @key @topic @partition @offset @timestamp @headers.x
//   'text'        a constant                 1, 1.10, true a constant
#include <string>
#include <string_view>

#include "core/pipeline.h"
#include "core/result.h"

namespace flow {

// Errors: Failure::what says what is wrong, Failure::hint what to write instead; class setup.
Result<FieldSource> parse_field_source(std::string_view text);

// A constant of a type, as parse_field_source gives it.
FieldSource constant_field(std::string_view text, Type type);

}  // namespace flow
