#pragma once
// A pipeline file to start from.
#include <string>

namespace flow {

// Commented and valid as it stands. from: kafka or file; to: postgres, sqlite, kafka, file or
// stdout. An unknown kind gives an empty text.
std::string init_template(const std::string& from_kind, const std::string& to_kind);

}  // namespace flow
