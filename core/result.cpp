#include "core/result.h"

#include <cstdio>
#include <cstdlib>

namespace flow {

std::string_view name_of(FailureClass c) {
  switch (c) {
    case FailureClass::transient: return "transient";
    case FailureClass::throttled: return "throttled";
    case FailureClass::invalid: return "invalid";
    case FailureClass::poison: return "poison";
    case FailureClass::unauthorized: return "unauthorized";
    case FailureClass::setup: return "setup";
    case FailureClass::fenced: return "fenced";
    case FailureClass::defect: return "defect";
  }
  return "defect";
}

std::string Failure::text() const {
  std::string s;
  if (!where.empty()) s = where + ": ";
  s += what;
  if (!code.empty()) s += " [" + code + "]";
  if (!hint.empty()) s += "; " + hint;
  return s;
}

ExitCode Failure::exit_code() const {
  if (exit) return *exit;
  switch (cls) {
    case FailureClass::transient:
    case FailureClass::throttled: return ExitCode::unavailable;
    case FailureClass::invalid:
    case FailureClass::poison: return ExitCode::data;
    case FailureClass::unauthorized: return ExitCode::unauthorized;
    case FailureClass::setup: return ExitCode::configuration;
    case FailureClass::fenced: return ExitCode::temporary;
    case FailureClass::defect: return ExitCode::defect;
  }
  return ExitCode::defect;
}

void defect(std::string_view what, const char* file, int line) {
  std::fprintf(stderr, "flow: defect: %.*s (%s:%d); please report this with the log of the run\n",
               static_cast<int>(what.size()), what.data(), file, line);
  std::_Exit(static_cast<int>(ExitCode::defect));
}

}  // namespace flow
