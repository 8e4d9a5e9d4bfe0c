#pragma once
// The JSON Schema of pipeline files, made from the settings table, for completion and checks in
// editors.
#include <string>

namespace flow {

std::string pipeline_schema();  // draft-07, indented; no line feed at the end

}  // namespace flow
