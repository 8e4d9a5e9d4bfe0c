#pragma once
// What a test reads of dead letters, by the program's own export.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/flow_program.h"

namespace flow::test {

// Of this pipeline alone: the state may be shared.
inline std::vector<nlohmann::json> letters_of(const FlowProgram& flow) {
  const std::string yaml = read_file(flow.file());
  const std::string name = yaml.substr(6, yaml.find('\n') - 6);  // "name: NAME"
  const Finished exported =
      flow.flow({"dlq", "export", flow.file(), "--pipeline", name, "--quiet"});
  std::vector<nlohmann::json> letters;
  std::istringstream lines(exported.out);
  for (std::string line; std::getline(lines, line);) letters.push_back(nlohmann::json::parse(line));
  return letters;
}

// How often each value is there as a letter: one of each is right, for one target.
inline std::map<std::string, int> letter_values(const FlowProgram& flow) {
  std::map<std::string, int> out;
  for (const auto& letter : letters_of(flow)) ++out[letter["value"].get<std::string>()];
  return out;
}

}  // namespace flow::test
