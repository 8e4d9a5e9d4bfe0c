#pragma once
// What the commands share: the flags that every command takes, and how one is registered.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/log.h"
#include "cli/pipeline_file.h"
#include "core/mask.h"
#include "core/result.h"

namespace flow {

// Flags of every command. `output` is text or json.
struct Globals {
  bool quiet = false;
  bool verbose = false;
  std::string log_format = "text";
  std::string log_file;
  std::string state;
  std::string output = "text";
  std::vector<std::string> sets;
  bool json() const { return output == "json"; }
};

// What the chosen command does; gives the exit code.
using Action = std::function<int()>;

// Each adds its subcommand to `app` and sets `action` when it was chosen.
void add_run(CLI::App& app, Globals& globals, Action& action);
void add_check(CLI::App& app, Globals& globals, Action& action);
void add_explain(CLI::App& app, Globals& globals, Action& action);
void add_offsets(CLI::App& app, Globals& globals, Action& action);
void add_history(CLI::App& app, Globals& globals, Action& action);
void add_dlq(CLI::App& app, Globals& globals, Action& action);
void add_init(CLI::App& app, Globals& globals, Action& action);
void add_schema(CLI::App& app, Globals& globals, Action& action);
void add_completion(CLI::App& app, Globals& globals, Action& action);

// A subcommand with the shared flags. `example` opens its --help.
CLI::App* add_command(CLI::App& parent, Globals& globals, const std::string& name,
                      const std::string& what, const std::string& example);
CLI::Validator positive_count();  // for flags that count from 1
void add_set_flag(CLI::App& command, Globals& globals);
void add_state_flag(CLI::App& command, Globals& globals);

Result<std::unique_ptr<EventLog>> open_log(const Globals& globals);

// A command that ends before it has a result of its own: the failure on stderr, and with --output
// json a flow.error/1 document on stdout. Gives the exit code.
int report_failure(const Globals& globals, const Failure& failure, const Masker& masker);

// Loads a pipeline file; its faults go to stderr (or into JSON, by the caller). nullopt: it has
// faults.
LoadedPipeline load(const Globals& globals, const std::string& file);
std::optional<LoadedPipeline> load_or_report(const Globals& globals, const std::string& file);
std::string fault_text(const ConfigFault& fault);
Masker masker_of(const LoadedPipeline& loaded);
std::string default_state_url();
// For commands without a pipeline file: the flag, FLOW_STATE, the per-user default.
Result<std::string> resolve_state(const std::string& flag);

}  // namespace flow
