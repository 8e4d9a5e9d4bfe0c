#include <algorithm>
#include <iterator>

#include "cli/pipeline_reader.h"
#include "connectors/registry.h"
#include "core/mask.h"
#include "core/suggest.h"

namespace flow {
namespace {

// Those that people set, for "did you mean".
constexpr std::string_view common_properties[] = {"client.id",
                                                  "client.rack",
                                                  "compression.codec",
                                                  "compression.level",
                                                  "compression.type",
                                                  "debug",
                                                  "fetch.max.bytes",
                                                  "fetch.message.max.bytes",
                                                  "fetch.min.bytes",
                                                  "fetch.wait.max.ms",
                                                  "group.instance.id",
                                                  "heartbeat.interval.ms",
                                                  "linger.ms",
                                                  "batch.size",
                                                  "batch.num.messages",
                                                  "max.in.flight.requests.per.connection",
                                                  "max.partition.fetch.bytes",
                                                  "max.poll.interval.ms",
                                                  "message.max.bytes",
                                                  "message.timeout.ms",
                                                  "metadata.max.age.ms",
                                                  "partitioner",
                                                  "queue.buffering.max.kbytes",
                                                  "queue.buffering.max.messages",
                                                  "queue.buffering.max.ms",
                                                  "queued.max.messages.kbytes",
                                                  "queued.min.messages",
                                                  "reconnect.backoff.max.ms",
                                                  "reconnect.backoff.ms",
                                                  "request.timeout.ms",
                                                  "sasl.kerberos.service.name",
                                                  "sasl.mechanism",
                                                  "sasl.mechanisms",
                                                  "sasl.oauthbearer.client.id",
                                                  "sasl.oauthbearer.client.secret",
                                                  "sasl.oauthbearer.method",
                                                  "sasl.oauthbearer.token.endpoint.url",
                                                  "sasl.password",
                                                  "sasl.username",
                                                  "security.protocol",
                                                  "session.timeout.ms",
                                                  "socket.keepalive.enable",
                                                  "socket.timeout.ms",
                                                  "ssl.ca.location",
                                                  "ssl.ca.pem",
                                                  "ssl.certificate.location",
                                                  "ssl.certificate.pem",
                                                  "ssl.endpoint.identification.algorithm",
                                                  "ssl.key.location",
                                                  "ssl.key.password",
                                                  "ssl.key.pem",
                                                  "ssl.keystore.location",
                                                  "ssl.keystore.password",
                                                  "statistics.interval.ms"};

KafkaRole role_of(const Setting& setting) {
  return setting.path == "source.properties" ? KafkaRole::source : KafkaRole::target;
}

// The value of one property; secrets are remembered and never shown.
bool read_property(const Setting& setting, const YamlEntry& entry, const std::string& path,
                   PipelineReading& reading, SettingValue& value) {
  const auto fault = [&](YamlPlace place, std::string message) {
    reading.fault(place, path, std::move(message));
    return false;
  };
  if (const auto instead = owned_kafka_property(role_of(setting), entry.key)) {
    return fault(entry.place, "is set by flow itself; " + std::string(*instead));
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
    if (shows) return fault(entry.place, "librdkafka refuses this value");
    const std::vector<std::string_view> common(std::begin(common_properties),
                                               std::end(common_properties));
    const bool known = std::find(common.begin(), common.end(), entry.key) != common.end();
    return fault(entry.place, refused + (known ? "" : did_you_mean(entry.key, common)));
  }
  value.properties[entry.key] = std::move(filled.text);
  return true;
}

}  // namespace

bool read_properties(const Setting& setting, const YamlNode& node, const std::string& path,
                     PipelineReading& reading, SettingValue& value) {
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
