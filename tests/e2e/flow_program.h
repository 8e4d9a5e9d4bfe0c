#pragma once
// Runs the program on a pipeline written by a test.
#include <map>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace flow::test {

// A directory with one pipeline file and a state of its own. Paths in the YAML are relative to it.
class FlowProgram {
 public:
  explicit FlowProgram(const std::string& yaml);

  const TempDir& dir() const { return dir_; }
  std::string file() const { return dir_ / "pipeline.yaml"; }
  void rewrite(const std::string& yaml) const { dir_.write("pipeline.yaml", yaml); }

  Command command(const std::vector<std::string>& arguments) const;
  // flow run pipeline.yaml ARGUMENTS...
  Command run_command(std::vector<std::string> arguments) const;
  Finished run(std::vector<std::string> arguments,
               std::chrono::milliseconds deadline = std::chrono::seconds(60)) const;
  Finished flow(const std::vector<std::string>& arguments) const;

 private:
  TempDir dir_;
};

// {"id":0,"v":"v0"} ... one JSON line each for ids [from, to).
std::string json_line(int id);
std::string json_lines(int from, int to);

// id -> how often it is there.
using Tally = std::map<int, int>;
// What a test compares: which ids of [0, count) are missing, and which are there more than once.
struct Differences {
  std::vector<int> missing;
  std::vector<int> repeated;
  std::vector<int> strangers;
};
Differences differences(const Tally& tally, int count);

}  // namespace flow::test
