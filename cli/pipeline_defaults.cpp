#include <filesystem>

#include "cli/pipeline_reader.h"

namespace flow {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view sqlite_scheme = "sqlite:";

std::string absolute(const std::string& path, const std::string& base_dir) {
  return (fs::path(base_dir) / path).lexically_normal().string();
}

std::string default_label(const TargetSpec& target) {
  for (const std::string* what : {&target.table, &target.topic, &target.path}) {
    if (!what->empty()) return target.kind + ":" + *what;
  }
  return target.kind == "stdout" ? target.kind : "";
}

// Dead letters go to the brokers that the pipeline knows: the source's, else a target's.
void take_brokers(Pipeline& pipeline) {
  if (pipeline.source.kind == "kafka") {
    pipeline.dlq.brokers = pipeline.source.kafka.brokers;
    pipeline.dlq.properties = pipeline.source.kafka.properties;
    return;
  }
  for (const TargetSpec& target : pipeline.targets) {
    if (target.kind != "kafka") continue;
    pipeline.dlq.brokers = target.brokers;
    pipeline.dlq.properties = target.properties;
    return;
  }
}

}  // namespace

std::string absolute_url(const std::string& url, const std::string& base_dir) {
  if (url.rfind(sqlite_scheme, 0) != 0 || url.size() == sqlite_scheme.size()) return url;
  return std::string(sqlite_scheme) + absolute(url.substr(sqlite_scheme.size()), base_dir);
}

void complete_pipeline(PipelineReading& reading, const std::string& base_dir) {
  Pipeline& pipeline = reading.pipeline;
  if (pipeline.source.kafka.group.empty()) pipeline.source.kafka.group = "flow." + pipeline.name;
  for (std::string& path : pipeline.source.file.paths) {
    if (path != "-" && !path.empty()) path = absolute(path, base_dir);
  }
  take_brokers(pipeline);
  for (TargetSpec& target : pipeline.targets) {
    if (target.label.empty()) target.label = default_label(target);
    if (!target.path.empty()) target.path = absolute(target.path, base_dir);
    if (target.kind == "sqlite") target.url = absolute_url(target.url, base_dir);
  }
}

}  // namespace flow
