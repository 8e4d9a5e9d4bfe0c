#include <iostream>

#include "cli/command.h"
#include "cli/output.h"
#include "connectors/registry.h"
#include "core/mask.h"
#include "core/units.h"
#include "state/state.h"

namespace flow {

namespace {

struct InspectOptions {
  std::string file;
  std::string topic;
  std::string group;
  std::string brokers;
};

std::string number(const std::optional<std::int64_t>& n) { return n ? std::to_string(*n) : "-"; }

Json number_json(const std::optional<std::int64_t>& n) { return n ? Json(*n) : Json(nullptr); }

Json json_of(const OffsetRow& r) {
  Json j;
  j["topic"] = r.partition.topic;
  j["partition"] = r.partition.partition;
  j["log_start"] = number_json(r.log_start);
  j["committed"] = number_json(r.committed);
  j["last_stable"] = number_json(r.last_stable);
  j["high"] = number_json(r.high);
  j["state"] = number_json(r.state);
  j["lag"] = number_json(r.lag);
  j["lag_seconds"] = r.lag_ms ? Json(static_cast<double>(*r.lag_ms) / 1000.0) : Json(nullptr);
  j["expired_unread"] = number_json(r.expired_unread);
  j["verdict"] = r.verdict;
  j["reason"] = r.reason;
  return j;
}

// Without a file, the flags make a pipeline that is only looked at.
Result<LoadedPipeline> pipeline_of(const Globals& globals, const InspectOptions& o) {
  LoadedPipeline loaded;
  if (!o.file.empty()) {
    auto from_file = load_or_report(globals, o.file);
    if (!from_file) {
      return Failure{.cls = FailureClass::setup,
                     .where = o.file,
                     .what = "cannot be used",
                     .hint = "mend the faults above"};
    }
    loaded = std::move(*from_file);
  } else if (o.brokers.empty() || o.group.empty() || o.topic.empty()) {
    return Failure{.cls = FailureClass::setup,
                   .where = "flow offsets inspect",
                   .what = "no pipeline file",
                   .hint = "name one, or give --brokers, --group and --topic",
                   .exit = ExitCode::usage};
  } else {
    loaded.pipeline.name = o.group;
    loaded.pipeline.source.kind = "kafka";
    auto state = resolve_state(globals.state);
    if (!state) return std::move(state).failure();
    loaded.pipeline.state = std::move(state).value();
    loaded.secrets = secrets_of_url(loaded.pipeline.state);
  }
  KafkaSourceSpec& kafka = loaded.pipeline.source.kafka;
  if (!o.brokers.empty()) kafka.brokers = o.brokers;
  if (!o.group.empty()) kafka.group = o.group;
  if (!o.topic.empty() && o.file.empty()) kafka.topics = {o.topic};
  return loaded;
}

int inspect(const Globals& globals, const InspectOptions& o) {
  auto loaded = pipeline_of(globals, o);
  if (!loaded) return report_failure(globals, loaded.failure(), {});
  const Masker masker = masker_of(*loaded);
  auto log = open_log(globals);
  if (!log) return report_failure(globals, log.failure(), masker);
  auto state = open_state(loaded->pipeline.state, StateAccess::read_only, **log);
  if (!state) return report_failure(globals, state.failure(), masker);
  Context context;
  context.pipeline = &loaded->pipeline;
  context.log = log->get();
  context.state = state->get();
  context.dry_run = true;
  auto rows = inspect_offsets(context, o.topic);
  if (!rows) return report_failure(globals, rows.failure(), masker);
  if (globals.json()) {
    Json j;
    j["pipeline"] = loaded->pipeline.name;
    j["source"] = loaded->pipeline.source.kind;
    j["group"] = loaded->pipeline.source.kafka.group;
    j["unit"] = loaded->pipeline.source.kind == "kafka" ? "records" : "bytes";
    j["partitions"] = Json::array();
    for (const OffsetRow& r : *rows) j["partitions"].push_back(json_of(r));
    print_json("offsets.inspect", std::move(j), masker);
    return 0;
  }
  std::vector<std::vector<std::string>> lines;
  for (const OffsetRow& r : *rows) {
    lines.push_back({r.partition.topic, std::to_string(r.partition.partition), number(r.log_start),
                     number(r.committed), number(r.last_stable), number(r.high), number(r.state),
                     r.lag ? std::to_string(*r.lag) : "unknown",
                     r.lag_ms ? format_duration(Millis{*r.lag_ms}) : "unknown",
                     number(r.expired_unread), r.verdict, r.reason});
  }
  std::cout << masker.text(table({"topic", "part", "log start", "committed", "last stable", "high",
                                  "state", "lag", "lag time", "expired", "verdict", "reason"},
                                 lines, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}));
  return 0;
}

}  // namespace

void add_offsets(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* offsets = app.add_subcommand("offsets", "Looks at positions");
  offsets->footer("flow offsets inspect orders.yaml");
  offsets->require_subcommand(1);
  auto options = std::make_shared<InspectOptions>();
  CLI::App* c = add_command(*offsets, globals, "inspect",
                            "Shows where a pipeline stands: positions, ends and lag, per partition",
                            "flow offsets inspect orders.yaml");
  c->add_option("FILE", options->file, "The pipeline file");
  c->add_option("--topic", options->topic, "Only this topic");
  c->add_option("--group", options->group, "This consumer group instead of the pipeline's");
  c->add_option("--brokers", options->brokers, "These brokers instead of the pipeline's");
  add_set_flag(*c, globals);
  add_state_flag(*c, globals);
  c->callback([&globals, &action, options] {
    action = [&globals, options] { return inspect(globals, *options); };
  });
}

}  // namespace flow
