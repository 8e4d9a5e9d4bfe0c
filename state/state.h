#pragma once
// Opens the state at a URL.
#include <memory>
#include <string>

#include "core/state.h"

namespace flow {

// url: sqlite:PATH or postgres://... (own schema `flow`). Creates and migrates when read_write.
Result<std::unique_ptr<StateStore>> open_state(const std::string& url, StateAccess access,
                                               Log& log);

}  // namespace flow
