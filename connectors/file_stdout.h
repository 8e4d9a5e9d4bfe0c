#pragma once
#include <memory>

#include "core/registry.h"

namespace flow::files {

// Lines to standard output, a batch at a time; no position of its own. Errors: a reader that goes
// away ends the run (exit 74); a batch that was cancelled in the middle has the effect `unknown`.
std::unique_ptr<Target> make_stdout_target(const Context& context, const TargetSpec& spec);

}  // namespace flow::files
