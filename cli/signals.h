#pragma once
// SIGINT and SIGTERM: the first asks the run to drain, the second ends the program at once (130 or
// 143).
#include "core/loop.h"

namespace flow {

// Installs the handlers; SIGPIPE is ignored. `stop` must live as long as the program.
void install_signals(StopSignal& stop);

}  // namespace flow
