#pragma once
// The settings of dead letters: a part of the table in core/settings_table.cpp.
#include <span>

#include "core/settings.h"

namespace flow {

std::span<const Setting> dead_letter_settings();

}  // namespace flow
