#pragma once
// Reads a pipeline file: YAML, ${...}, --set, the settings table, the rules that combine settings.
// Offline: touches only the file itself, files that it names with ${file:...}, and the environment
// it is given.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/pipeline.h"

namespace flow {

// One thing wrong with the file. line and column from 1, column in characters; line 0: the file as
// a whole, or what `file` names instead ("--set source.group"). Never shows a secret.
struct ConfigFault {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;  // "targets[0].table"; empty for YAML itself
  std::string message;

  std::string text() const;  // file:line:column: path: message
};

struct LoadOptions {
  std::vector<std::string>
      sets;  // "path=value", each as if the file said so; the last of a path counts
  std::function<std::optional<std::string>(const std::string&)> getenv;
  std::string state_flag;     // --state; relative paths from the current directory
  std::string default_state;  // where neither flag, FLOW_STATE nor file says
};

// The pipeline is whole only when there are no faults.
struct LoadedPipeline {
  Pipeline pipeline;
  std::vector<ConfigFault> faults;   // every one, in the order of the file
  std::vector<std::string> secrets;  // to be masked in any output
};

// path "-": standard input.
LoadedPipeline load_pipeline(const std::string& path, const LoadOptions& options);
// name: what faults call the file. base_dir: what relative paths are relative to.
LoadedPipeline parse_pipeline(const std::string& text, const std::string& name,
                              const std::string& base_dir, const LoadOptions& options);

}  // namespace flow
