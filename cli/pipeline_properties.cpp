#include "cli/pipeline_reader.h"
#include "connectors/registry.h"
#include "core/mask.h"

namespace flow {
namespace {

KafkaRole role_of(const Setting& setting) {
  return setting.path == "source.properties" ? KafkaRole::source : KafkaRole::target;
}

// The value of one property; secrets are remembered and never shown.
bool read_property(const Setting& setting, const YamlEntry& entry, const std::string& path,
                   Reading& reading, SettingValue& value) {
  const auto fault = [&](YamlPlace place, std::string message) {
    reading.fault(place, path, std::move(message));
    return false;
  };
  if (const auto instead = owned_kafka_property(role_of(setting), entry.key)) {
    return fault(entry.place, "flow sets this property itself: " + std::string(*instead));
  }
  if (entry.value->kind == YamlKind::broken) return false;
  if (entry.value->kind == YamlKind::null) return fault(entry.value->place, "needs a value");
  if (entry.value->kind != YamlKind::scalar) {
    return fault(entry.value->place, "must be one value; properties are name: value");
  }
  Filled filled = fill_in(entry.value->text, FillAs::text, reading.sources);
  for (std::string& message : filled.faults) fault(entry.value->place, std::move(message));
  for (std::string& secret : filled.secrets) reading.secrets.push_back(std::move(secret));
  if (!filled.faults.empty()) return false;
  const bool secret = is_secret_name(entry.key);
  if (secret) reading.secrets.push_back(filled.text);
  const std::string refused = check_kafka_property(entry.key, filled.text);
  if (!refused.empty()) {
    const bool shows =
        secret && !filled.text.empty() && refused.find(filled.text) != std::string::npos;
    return fault(entry.place, shows ? "librdkafka refuses this value" : refused);
  }
  value.properties[entry.key] = std::move(filled.text);
  return true;
}

}  // namespace

bool read_properties(const Setting& setting, const YamlNode& node, const std::string& path,
                     Reading& reading, SettingValue& value) {
  if (node.kind == YamlKind::broken) return false;
  if (node.kind != YamlKind::map) {
    reading.fault(node.place, path, "must be a map of librdkafka properties, name: value");
    return false;
  }
  bool good = true;
  for (const YamlEntry& entry : node.entries) {
    const std::string child = path + "." + entry.key;
    reading.given[child] = entry.place;
    if (!read_property(setting, entry, child, reading, value)) good = false;
  }
  return good;
}

}  // namespace flow
