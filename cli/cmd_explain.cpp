#include <iostream>

#include "cli/command.h"
#include "cli/output.h"
#include "core/classify.h"
#include "core/contract.h"

namespace flow {

namespace {

std::string text_of(const Pipeline& p, const Contract& c) {
  std::string out = "pipeline           " + p.name + "\n";
  out += "source             " + c.source + "\n";
  out += "delivery           " + c.delivery +
         (c.asked == c.delivery ? "" : " (asked for " + c.asked + ")") + "\n";
  out += "position authority " + c.position_authority + ": " + c.authority_why + "\n";
  for (const TargetContract& t : c.targets) {
    out += "\ntarget " + t.label + " (" + t.mode + ")\n";
    out += "  guarantee        " + t.guarantee + "\n";
    out += "  why              " + t.why + "\n";
    out += "  repeats          " + t.repeats + "\n";
    out += "  rests on         " + t.needs + "\n";
    out += "  stops at         " + t.stops + "\n";
  }
  out +=
      "\nDurable boundaries of a batch, in order, and what a crash just after each one means:\n\n";
  std::vector<std::string> head = {"boundary", "durable by then"};
  for (const TargetContract& t : c.targets) head.push_back(t.label);
  std::vector<std::vector<std::string>> rows;
  for (const CrashWindow& w : c.windows) {
    std::vector<std::string> row = {w.boundary, w.durable};
    row.insert(row.end(), w.effects.begin(), w.effects.end());
    rows.push_back(std::move(row));
  }
  return out + table(head, rows);
}

Json json_of(const Pipeline& p, const Contract& c) {
  Json j;
  j["pipeline"] = p.name;
  j["version"] = p.digest;
  j["source"] = c.source;
  j["delivery"] = c.delivery;
  j["asked"] = c.asked;
  j["position_authority"] = c.position_authority;
  j["position_authority_why"] = c.authority_why;
  j["order"] = c.order;
  j["targets"] = Json::array();
  for (const TargetContract& t : c.targets) {
    Json e;
    e["target"] = t.label;
    e["mode"] = t.mode;
    e["guarantee"] = t.guarantee;
    e["why"] = t.why;
    e["repeats"] = t.repeats;
    e["rests_on"] = t.needs;
    e["stops_at"] = t.stops;
    j["targets"].push_back(std::move(e));
  }
  j["crash_windows"] = Json::array();
  for (const CrashWindow& w : c.windows) {
    Json e;
    e["after"] = w.boundary;
    e["durable"] = w.durable;
    e["effects"] = Json::object();
    for (std::size_t t = 0; t < c.targets.size(); ++t)
      e["effects"][c.targets[t].label] = w.effects[t];
    j["crash_windows"].push_back(std::move(e));
  }
  return j;
}

std::string mermaid_text(std::string text) {
  for (char& ch : text) {
    if (ch == '"') ch = '\'';
  }
  return text;
}

std::string mermaid_of(const Contract& c) {
  std::string out = "flowchart LR\n  source[\"" + mermaid_text(c.source) +
                    "\"]\n  batch[\"read, decode, transform\"]\n  source --> batch\n";
  std::string last = "batch";
  for (std::size_t t = 0; t < c.targets.size(); ++t) {
    const std::string id = "target" + std::to_string(t);
    out += "  " + id + "[(\"" +
           mermaid_text(c.targets[t].label + "<br/>" + c.targets[t].guarantee) + "\")]\n  " + last +
           " --> " + id + "\n";
    last = id;
  }
  return out + "  position{{\"commit_position<br/>" + mermaid_text(c.position_authority) +
         "\"}}\n  " + last + " --> position\n";
}

std::string_view code_meaning(FailureSystem system) {
  switch (system) {
    case FailureSystem::postgres:
      return "PostgreSQL, by SQLSTATE (two characters: the whole class); no answer is transient";
    case FailureSystem::sqlite: return "SQLite, by extended result code, else primary code";
    case FailureSystem::kafka: return "Kafka, by librdkafka's name of the error";
    case FailureSystem::http: return "HTTP, by status, else its hundred";
    case FailureSystem::flow: return "flow's own";
  }
  return "";
}

std::string code_text(const FailureRow& row) {
  return std::string(row.code) + (row.number == 0 ? "" : " (" + std::to_string(row.number) + ")");
}

// The table that decides what a failure leads to, in the order of its systems.
void explain_errors(const Globals& globals) {
  if (globals.json()) {
    Json j;
    j["default_class"] = name_of(FailureClass::setup);
    j["codes"] = Json::array();
    for (const FailureRow& row : failure_table()) {
      j["codes"].push_back({{"system", name_of(row.system)},
                            {"code", row.code},
                            {"number", row.number == 0 ? Json(nullptr) : Json(row.number)},
                            {"class", name_of(row.cls)},
                            {"meaning", row.sentence}});
    }
    print_json("explain.errors", std::move(j), Masker());
    return;
  }
  std::string out;
  for (const auto system : {FailureSystem::postgres, FailureSystem::sqlite, FailureSystem::kafka,
                            FailureSystem::http, FailureSystem::flow}) {
    std::vector<std::vector<std::string>> rows;
    for (const FailureRow& row : failure_table()) {
      if (row.system != system) continue;
      rows.push_back({code_text(row), std::string(name_of(row.cls)), std::string(row.sentence)});
    }
    out += std::string(code_meaning(system)) + ":\n\n" + table({"code", "class", "meaning"}, rows) +
           "\n";
  }
  std::cout << out
            << "A code that is not here is setup: the run stops, and nothing is set aside.\n";
}

int explain(const Globals& globals, const std::string& file, std::string format) {
  auto loaded = load_or_report(globals, file);
  if (!loaded) return static_cast<int>(ExitCode::configuration);
  const Masker masker = masker_of(*loaded);
  auto contract = derive_contract(loaded->pipeline);
  if (!contract) return report_failure(globals, contract.failure(), masker);
  if (globals.json()) format = "json";
  if (format == "json") {
    print_json("explain", json_of(loaded->pipeline, *contract), masker);
  } else if (format == "mermaid") {
    std::cout << masker.text(mermaid_of(*contract));
  } else {
    std::cout << masker.text(text_of(loaded->pipeline, *contract));
  }
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Globals& globals, Action& action) {
  auto file = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>("text");
  CLI::App* c = add_command(app, globals, "explain",
                            "Says what a pipeline guarantees, why, and where that stops",
                            "flow explain orders.yaml");
  auto errors = std::make_shared<bool>(false);
  c->add_option("FILE", *file, "The pipeline file");
  c->add_flag("--errors", *errors, "The table of failure classes by code instead; needs no FILE");
  c->add_option("--format", *format, "text, json, or mermaid for a diagram")
      ->check(CLI::IsMember({"text", "json", "mermaid"}));
  add_set_flag(*c, globals);
  add_state_flag(*c, globals);
  c->callback([&globals, &action, file, format, errors] {
    if (file->empty() && !*errors) throw CLI::RequiredError("FILE");
    action = [&globals, file, format, errors] {
      if (!*errors) return explain(globals, *file, *format);
      explain_errors(globals);
      return 0;
    };
  });
}

}  // namespace flow
