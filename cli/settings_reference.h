#pragma once
// The reference of flow-pipeline(5), made from the settings table.
#include <string>

namespace flow {

// roff: one .SS for each section of the file, one .TP for each setting.
std::string settings_reference_roff();

}  // namespace flow
