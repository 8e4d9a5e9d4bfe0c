#pragma once
// Where the rows of a dry run go: stdout, a JSON line each.
#include <memory>

#include "core/ports.h"

namespace flow {

std::unique_ptr<Target> make_print_target(const TargetSpec& spec, bool name_the_target);

}  // namespace flow
