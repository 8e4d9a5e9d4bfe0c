#include "cli/command.h"

#include <cstdlib>
#include <iostream>

#include "cli/output.h"
#include "cli/pipeline_reader.h"

namespace flow {

CLI::App* add_command(CLI::App& parent, Globals& globals, const std::string& name,
                      const std::string& what, const std::string& example) {
  CLI::App* c = parent.add_subcommand(name, what);
  c->footer(example);
  c->add_flag("-q,--quiet", globals.quiet, "Warnings and errors only, no progress line");
  c->add_flag("-v,--verbose", globals.verbose, "Debug events too");
  c->add_option("--log-format", globals.log_format, "How log lines look")
      ->check(CLI::IsMember({"text", "json"}));
  c->add_option("--log-file", globals.log_file, "Write the log to this file instead of stderr");
  c->add_option("-o,--output", globals.output, "How results look")
      ->check(CLI::IsMember({"text", "json"}));
  return c;
}

CLI::Validator positive_count() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool digits =
            !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return digits && text.find_first_not_of('0') != std::string::npos
                   ? std::string()
                   : "a whole number from 1 on is wanted";
      },
      "COUNT");
}

void add_set_flag(CLI::App& command, Globals& globals) {
  command
      .add_option("--set", globals.sets,
                  "Override a setting: path=value, as if written in the file; repeatable")
      ->allow_extra_args(false);
}

void add_state_flag(CLI::App& command, Globals& globals) {
  command.add_option("--state", globals.state,
                     "Where the state is: sqlite:PATH or postgres://... (default: FLOW_STATE, the "
                     "pipeline file's, "
                     "the per-user state directory)");
}

Result<std::unique_ptr<EventLog>> open_log(const Globals& globals) {
  LogOptions options;
  options.level = globals.quiet ? Level::warn : globals.verbose ? Level::debug : Level::info;
  options.format = globals.log_format == "json" ? LogFormat::json : LogFormat::text;
  options.file = globals.log_file;
  return EventLog::open(options);
}

std::string default_state_url() {
  const char* xdg = std::getenv("XDG_STATE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string("sqlite:") + xdg + "/flow/flow.db";
  const char* home = std::getenv("HOME");
  return std::string("sqlite:") + (home != nullptr && home[0] == '/' ? home : "/var/tmp") +
         "/.local/state/flow/flow.db";
}

Result<std::string> resolve_state(const std::string& flag) {
  const char* environment = std::getenv("FLOW_STATE");
  const bool from_environment = flag.empty() && environment != nullptr && environment[0] != '\0';
  std::string url = !flag.empty() ? flag : from_environment ? environment : default_state_url();
  const std::string why = check_state_url(url);
  if (why.empty()) return url;
  return Failure{.cls = FailureClass::setup,
                 .where = from_environment ? "FLOW_STATE" : "--state",
                 .what = why,
                 .hint = "sqlite:PATH or postgres://...",
                 .exit = ExitCode::usage};
}

int report_failure(const Globals& globals, const Failure& failure, const Masker& masker) {
  print_failure(failure, masker);
  if (globals.json()) {
    Json j;
    j["error"] = failure_json(failure);
    print_json("error", std::move(j), masker);
  }
  return static_cast<int>(failure.exit_code());
}

LoadedPipeline load(const Globals& globals, const std::string& file) {
  LoadOptions options;
  options.sets = globals.sets;
  options.getenv = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
  options.state_flag = globals.state;
  options.default_state = default_state_url();
  return load_pipeline(file, options);
}

std::string fault_text(const ConfigFault& f) {
  std::string at = f.file;
  if (f.line > 0) at += ":" + std::to_string(f.line) + ":" + std::to_string(f.column);
  return at + ": " + (f.path.empty() ? "" : f.path + ": ") + f.message;
}

std::optional<LoadedPipeline> load_or_report(const Globals& globals, const std::string& file) {
  LoadedPipeline loaded = load(globals, file);
  if (loaded.faults.empty()) return loaded;
  const Masker masker = masker_of(loaded);
  for (const ConfigFault& f : loaded.faults) std::cerr << masker.text(fault_text(f)) << '\n';
  const std::size_t n = loaded.faults.size();
  if (globals.json()) {
    Json j;
    j["error"] = failure_json({.cls = FailureClass::setup,
                               .where = file,
                               .what = std::to_string(n) + (n == 1 ? " fault" : " faults"),
                               .hint = "flow check --output json lists them"});
    print_json("error", std::move(j), masker);
  }
  std::cerr << "flow: error: " << n << (n == 1 ? " fault" : " faults") << " in " << file
            << "; flow-pipeline(5) describes every setting\n";
  return std::nullopt;
}

Masker masker_of(const LoadedPipeline& loaded) {
  Masker masker;
  for (const std::string& s : loaded.secrets) masker.add(s);
  return masker;
}

}  // namespace flow
