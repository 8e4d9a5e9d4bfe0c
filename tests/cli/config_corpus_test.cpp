#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "cli/pipeline_file.h"

// config_corpus/broken: NAME.yaml, and in NAME.expected every line that it gives.
// config_corpus/valid: files without faults. A line "# --set path=value" at the top of a file is
// given as a flag.

namespace fs = std::filesystem;

namespace {

const fs::path corpus = fs::path(FLOW_SOURCE_DIR) / "tests/cli/config_corpus";

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.is_open(), path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> yaml_files(const std::string& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(corpus / folder)) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<std::string> corpus_variable(const std::string& name) {
  static const std::map<std::string, std::string> variables{{"EMPTY", ""},
                                                            {"TEXT", "ten"},
                                                            {"NUMBER", "100"},
                                                            {"NAME", "orders"},
                                                            {"SIZE", "2MiB"},
                                                            {"TWO_LINES", "a\nb"},
                                                            {"FLOW_MAP", "{kind: file, path: x}"},
                                                            {"FLOW_LIST", "[{kind: stdout}]"}};
  const auto found = variables.find(name);
  return found == variables.end() ? std::nullopt : std::optional(found->second);
}

flow::LoadedPipeline load(const fs::path& path) {
  const std::string text = text_of(path);
  flow::LoadOptions options;
  options.getenv = corpus_variable;
  options.default_state = "sqlite:/state/flow.db";
  static const std::string mark = "# --set ";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.rfind(mark, 0) == 0;) {
    options.sets.push_back(line.substr(mark.size()));
  }
  return flow::parse_pipeline(text, path.filename().string(), "/pipelines", options);
}

std::string lines_of(const flow::LoadedPipeline& loaded) {
  std::string out;
  for (const flow::ConfigFault& fault : loaded.faults) out += fault.text() + "\n";
  return out;
}

}  // namespace

TEST_CASE("each broken file of the corpus gives exactly the lines written next to it") {
  const auto files = yaml_files("broken");
  REQUIRE(files.size() >= 60);
  for (const fs::path& file : files) {
    CAPTURE(file.filename().string());
    fs::path expected = file;
    expected.replace_extension(".expected");
    CHECK(lines_of(load(file)) == text_of(expected));
  }
}

TEST_CASE("no line of the corpus shows a secret") {
  for (const fs::path& file : yaml_files("broken")) {
    CAPTURE(file.filename().string());
    CHECK(lines_of(load(file)).find("canary-secret") == std::string::npos);
  }
}

TEST_CASE("the valid files of the corpus have no faults") {
  const auto files = yaml_files("valid");
  REQUIRE(!files.empty());
  for (const fs::path& file : files) {
    CAPTURE(file.filename().string());
    CHECK(lines_of(load(file)) == "");
  }
}
