#include "tests/e2e/flow_program.h"

namespace flow::test {

FlowProgram::FlowProgram(const std::string& yaml) { rewrite(yaml); }

Command FlowProgram::command(const std::vector<std::string>& arguments) const {
  Command c;
  c.argv = {FLOW_PROGRAM};
  c.argv.insert(c.argv.end(), arguments.begin(), arguments.end());
  c.env["XDG_STATE_HOME"] = (dir_ / "state-home").string();
  c.env["FLOW_STATE"] = std::nullopt;
  c.cwd = dir_.path();
  return c;
}

Command FlowProgram::run_command(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"run", file()});
  return command(arguments);
}

Finished FlowProgram::run(std::vector<std::string> arguments,
                          std::chrono::milliseconds deadline) const {
  return test::run(run_command(std::move(arguments)), deadline);
}

Finished FlowProgram::flow(const std::vector<std::string>& arguments) const {
  return test::run(command(arguments));
}

std::string json_line(int id) {
  return "{\"id\":" + std::to_string(id) + ",\"v\":\"v" + std::to_string(id) + "\"}";
}

std::string json_lines(int from, int to) {
  std::string out;
  for (int i = from; i < to; ++i) out += json_line(i) + "\n";
  return out;
}

Differences differences(const Tally& tally, int count) {
  Differences d;
  for (int i = 0; i < count; ++i) {
    const auto at = tally.find(i);
    if (at == tally.end()) d.missing.push_back(i);
  }
  for (const auto& [id, times] : tally) {
    if (times > 1) d.repeated.push_back(id);
    if (id < 0 || id >= count) d.strangers.push_back(id);
  }
  return d;
}

}  // namespace flow::test
