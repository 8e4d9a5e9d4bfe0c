#include <iostream>

#include "cli/assemble.h"
#include "cli/command.h"
#include "cli/output.h"
#include "connectors/registry.h"
#include "core/contract.h"
#include "state/state.h"

namespace flow {

namespace {

// What one file's check found.
struct Checked {
  std::string file;
  std::vector<ConfigFault> faults;
  std::vector<Failure> failures;   // contract and --connect
  std::vector<std::string> notes;  // what was looked at
  Masker masker;
  int exit = 0;
};

void note_failure(Checked& out, Failure failure) {
  if (out.exit == 0) out.exit = static_cast<int>(failure.exit_code());
  out.failures.push_back(std::move(failure));
}

// Everything that can be known before the first read; each part is tried although another failed.
void check_connected(const Pipeline& pipeline, Log& log, Checked& out) {
  Context context;
  context.pipeline = &pipeline;
  context.log = &log;
  context.dry_run = true;
  auto state = open_state(pipeline.state, StateAccess::read_only, log);
  if (state) {
    context.state = state->get();
  } else {
    note_failure(out, std::move(state).failure());
  }
  auto source = check_source(context);
  if (source) {
    for (std::string& n : *source) out.notes.push_back(std::move(n));
  } else {
    note_failure(out, std::move(source).failure());
  }
  if (auto letters = check_dead_letters(context); !letters) {
    note_failure(out, std::move(letters).failure());
  }
  std::vector<TargetSchema> schemas;
  for (const TargetSpec& spec : pipeline.targets) {
    if (spec.kind == "file" || spec.kind == "stdout") {
      schemas.push_back(
          {.passthrough = true, .fixed = false, .columns = {}, .key = {}, .notes = {}});
      continue;
    }
    TargetSpec used = spec;
    used.create_table = false;
    auto target = make_target(context, used);
    if (!target) {
      note_failure(out, std::move(target).failure());
      continue;
    }
    auto schema = (*target)->prepare(pipeline.columns);
    (*target)->close();
    if (schema) {
      out.notes.push_back(
          "target " + spec.label + ": " +
          (schema->fixed ? std::to_string(schema->columns.size()) + " columns" : "reachable"));
      schemas.push_back(std::move(schema).value());
    } else if (spec.create_table && schema.failure().cls == FailureClass::setup) {
      out.notes.push_back("target " + spec.label + ": the table is created by the first run");
      TargetSchema planned;
      planned.key = spec.key;
      schemas.push_back(std::move(planned));
    } else {
      note_failure(out, std::move(schema).failure());
    }
  }
  if (schemas.size() != pipeline.targets.size()) return;
  std::vector<std::unique_ptr<RowTransform>> transforms;
  for (const TransformSpec& spec : pipeline.transform) {
    auto transform = make_transform(spec);
    if (!transform) return note_failure(out, std::move(transform).failure());
    transforms.push_back(std::move(transform).value());
  }
  auto mapper = Mapper::make(pipeline, schemas, make_decoder(pipeline), std::move(transforms));
  if (!mapper) note_failure(out, std::move(mapper).failure());
}

Checked check_file(const Globals& globals, const std::string& file, bool connect, Log& log) {
  Checked out;
  out.file = file;
  LoadedPipeline loaded = load(globals, file);
  out.masker = masker_of(loaded);
  out.faults = std::move(loaded.faults);
  if (!out.faults.empty()) {
    out.exit = static_cast<int>(ExitCode::configuration);
    return out;
  }
  auto contract = derive_contract(loaded.pipeline);
  if (!contract) note_failure(out, std::move(contract).failure());
  for (const TransformSpec& spec : loaded.pipeline.transform) {
    auto transform = make_transform(spec);
    if (!transform && !connect) note_failure(out, std::move(transform).failure());
  }
  if (connect) check_connected(loaded.pipeline, log, out);
  return out;
}

Json json_of(const Checked& c) {
  Json j;
  j["file"] = c.file;
  j["ok"] = c.exit == 0;
  j["exit_code"] = c.exit;
  j["faults"] = Json::array();
  for (const ConfigFault& f : c.faults) {
    Json e;
    e["file"] = f.file;
    e["line"] = f.line;
    e["column"] = f.column;
    e["path"] = f.path;
    e["message"] = c.masker.text(f.message);
    j["faults"].push_back(std::move(e));
  }
  j["failures"] = Json::array();
  for (const Failure& f : c.failures)
    j["failures"].push_back(Json::parse(c.masker.text(failure_json(f).dump())));
  j["notes"] = c.notes;
  return j;
}

int check(const Globals& globals, const std::vector<std::string>& files, bool connect) {
  auto log = open_log(globals);
  if (!log) return report_failure(globals, log.failure(), {});
  int exit = 0;
  Json all = Json::array();
  for (const std::string& file : files) {
    const Checked c = check_file(globals, file, connect, **log);
    if (exit == 0) exit = c.exit;
    if (globals.json()) {
      all.push_back(json_of(c));
      continue;
    }
    for (const ConfigFault& f : c.faults) std::cerr << c.masker.text(fault_text(f)) << '\n';
    for (const Failure& f : c.failures) std::cerr << c.masker.text(file + ": " + f.text()) << '\n';
    if (c.exit == 0) {
      std::cout << file << ": ok"
                << (connect ? "" : " (not connected; --connect also asks brokers and databases)")
                << '\n';
    }
    if (!globals.quiet) {
      for (const std::string& n : c.notes) std::cout << "  " << c.masker.text(n) << '\n';
    }
  }
  if (globals.json()) {
    Json j;
    j["files"] = std::move(all);
    print_json("check", std::move(j), {});
  }
  return exit;
}

}  // namespace

void add_check(CLI::App& app, Globals& globals, Action& action) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto connect = std::make_shared<bool>(false);
  CLI::App* c = add_command(app, globals, "check",
                            "Checks pipeline files; every fault at once, with its place",
                            "flow check orders.yaml --connect");
  c->add_option("FILE", *files, "Pipeline files")->required();
  c->add_flag("--connect", *connect,
              "Also ask brokers and databases for topics, tables, keys, types and rights");
  add_set_flag(*c, globals);
  add_state_flag(*c, globals);
  c->callback([&globals, &action, files, connect] {
    action = [&globals, files, connect] { return check(globals, *files, *connect); };
  });
}

}  // namespace flow
