#include <iostream>

#include "cli/command.h"
#include "cli/output.h"
#include "core/clock.h"
#include "core/mask.h"
#include "core/units.h"
#include "state/state.h"

namespace flow {

namespace {

Json json_of(const RunRow& r) {
  Json j;
  j["id"] = r.id;
  j["pipeline"] = r.pipeline;
  j["version"] = r.version;
  j["contract"] = r.contract;
  j["status"] = name_of(r.status);
  j["host"] = r.host;
  j["pid"] = r.pid;
  j["started"] = rfc3339(r.started_ms);
  j["ended"] = r.ended_ms ? Json(rfc3339(*r.ended_ms)) : Json(nullptr);
  j["heartbeat"] = rfc3339(r.heartbeat_ms);
  j["read"] = r.read;
  j["targets"] = Json::array();
  for (const TargetCounts& t : r.targets) {
    Json e = counts_json(t.counts);
    e["target"] = t.target;
    j["targets"].push_back(std::move(e));
  }
  j["positions"] = spans_json(r.positions);
  j["error"] = r.error.empty() ? Json(nullptr) : Json(r.error);
  return j;
}

std::string positions_text(const Spans& spans) {
  std::string out;
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < spans.size() && i < shown; ++i) {
    const Span& s = spans[i];
    out += (out.empty() ? "" : ", ") + s.partition.text() + " " + std::to_string(s.from.next) +
           ".." + std::to_string(s.next.next);
  }
  if (spans.size() > shown) out += ", and " + std::to_string(spans.size() - shown) + " more";
  return out;
}

int history(const Globals& globals, const std::string& pipeline, std::size_t limit,
            const std::string& url) {
  Masker masker;
  masker.add_url(url);
  auto log = open_log(globals);
  if (!log) return report_failure(globals, log.failure(), masker);
  auto state = open_state(url, StateAccess::read_only, **log);
  if (!state) return report_failure(globals, state.failure(), masker);
  auto runs = (*state)->runs(pipeline, limit);
  if (!runs) return report_failure(globals, runs.failure(), masker);
  if (globals.json()) {
    Json j;
    j["state"] = (*state)->location();
    j["runs"] = Json::array();
    for (const RunRow& r : *runs) j["runs"].push_back(json_of(r));
    print_json("history", std::move(j), masker);
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const RunRow& r : *runs) {
    std::uint64_t written = 0;
    std::uint64_t others = 0;
    for (const TargetCounts& t : r.targets) {
      written += t.counts.written;
      others += t.counts.filtered + t.counts.dropped + t.counts.dead;
    }
    rows.push_back({r.id, r.pipeline, std::string(name_of(r.status)),
                    rfc3339(r.started_ms).substr(0, 19) + "Z",
                    r.ended_ms ? format_duration(Millis{*r.ended_ms - r.started_ms}) : "-",
                    with_separators(r.read), with_separators(written), with_separators(others),
                    positions_text(r.positions), r.error});
  }
  if (rows.empty()) {
    std::cout << "no runs" << (pipeline.empty() ? "" : " of " + pipeline) << " in "
              << (*state)->location() << '\n';
    return 0;
  }
  std::cout << masker.text(table({"run", "pipeline", "status", "started", "took", "read", "written",
                                  "left out", "positions", "error"},
                                 rows, {0, 0, 0, 0, 1, 1, 1, 1, 0, 0}));
  return 0;
}

}  // namespace

void add_history(CLI::App& app, Globals& globals, Action& action) {
  auto pipeline = std::make_shared<std::string>();
  auto limit = std::make_shared<std::size_t>(20);
  CLI::App* c = add_command(app, globals, "history", "Lists runs, newest first",
                            "flow history orders --limit 5");
  c->add_option("PIPELINE", *pipeline, "A pipeline's name, or its file; default: all");
  c->add_option("--limit", *limit, "How many runs")->check(positive_count());
  add_state_flag(*c, globals);
  c->callback([&globals, &action, pipeline, limit] {
    action = [&globals, pipeline, limit] {
      std::string url = globals.state;
      if (pipeline->ends_with(".yaml") || pipeline->ends_with(".yml")) {
        auto loaded = load_or_report(globals, *pipeline);
        if (!loaded) return static_cast<int>(ExitCode::configuration);
        *pipeline = loaded->pipeline.name;
        url = loaded->pipeline.state;
      } else {
        auto resolved = resolve_state(globals.state);
        if (!resolved) return report_failure(globals, resolved.failure(), {});
        url = std::move(resolved).value();
      }
      return history(globals, *pipeline, *limit, url);
    };
  });
}

}  // namespace flow
