// Any text is a pipeline file or a list of faults: never a crash, a hang or unbounded memory.
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/pipeline_file.h"
#include "core/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  flow::LoadOptions options;
  options.default_state = "sqlite:/flow.db";
  options.getenv = [](const std::string& name) -> std::optional<std::string> {
    if (name == "FLOW_STATE") return std::nullopt;
    return name.size() % 2 == 0 ? std::optional("postgres://u:" + name + "@h/d") : std::nullopt;
  };
  const flow::LoadedPipeline loaded =
      flow::parse_pipeline(text, "fuzz.yaml", "/nonexistent", options);
  FLOW_CHECK(loaded.faults.size() <= 201, "the list of faults is bounded");
  for (const flow::ConfigFault& fault : loaded.faults) {
    FLOW_CHECK(!fault.message.empty(), "a fault says what is wrong");
  }
  FLOW_CHECK(!loaded.faults.empty() || !loaded.pipeline.targets.empty(),
             "a pipeline without faults has a target");
  return 0;
}
