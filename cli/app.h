#pragma once
// The command line: parses argv, runs one command, gives its exit code.

namespace flow {

int run_app(int argc, char** argv);

}  // namespace flow
