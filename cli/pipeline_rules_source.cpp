#include <algorithm>
#include <cctype>
#include <charconv>

#include "cli/pipeline_reader.h"
#include "cli/postgres_url.h"
#include "cli/topic_names.h"
#include "core/settings.h"
#include "core/units.h"

namespace flow {
namespace {

constexpr std::size_t name_bytes_max = 100;

bool is_name_sign(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

bool all_name_signs(const std::string& text) {
  return std::all_of(text.begin(), text.end(), is_name_sign);
}

void check_topics(PipelineReading& reading) {
  const KafkaSourceSpec& kafka = reading.pipeline.source.kafka;
  if (reading.has("source.topic") && reading.has("source.topics")) {
    reading.fault(reading.place_of("source.topic"), "source.topic",
                  "topic is short for topics; write only one of them");
    return;
  }
  if (!reading.has("source.topic") && !reading.has("source.topics")) {
    reading.fault(reading.place_of("source"), "source.topics",
                  "is missing for kind kafka; name the topics to read, as in [orders]");
  }
  const bool single = reading.has("source.topic");
  for (std::size_t i = 0; i < kafka.topics.size(); ++i) {
    const std::string& topic = kafka.topics[i];
    if (topic.empty()) continue;
    const std::string path = single ? "source.topic" : "source.topics[" + std::to_string(i) + "]";
    const std::string why =
        topic.front() == '^' ? check_topic_pattern(topic) : check_topic_name(topic);
    if (!why.empty())
      reading.fault(reading.place_of(path), path,
                    shown_value(topic) + (topic.front() == '^' ? ": " : " ") + why);
  }
}

void check_file_source(PipelineReading& reading) {
  const auto& paths = reading.pipeline.source.file.paths;
  if (paths.size() > 1 && std::find(paths.begin(), paths.end(), "-") != paths.end()) {
    reading.fault(
        reading.place_of("source.path"), "source.path",
        "standard input (-) cannot be read together with files; give it a pipeline of its own");
  }
}

void check_csv(PipelineReading& reading) {
  const Pipeline& pipeline = reading.pipeline;
  if (pipeline.format != FormatKind::csv || !reading.sound("csv.header")) return;
  if (pipeline.source.kind == "kafka" && pipeline.csv.header) {
    const std::string path = reading.has("csv.header") ? "csv.header" : "format";
    reading.fault(reading.place_of(path), path,
                  "a Kafka record has no header line; set csv.header: false and name csv.columns");
  } else if (!pipeline.csv.header && !reading.has("csv.columns")) {
    reading.fault(reading.place_of("csv.header"), "csv.columns",
                  "is missing; without a header line the columns need names");
  } else if (pipeline.csv.header && reading.has("csv.columns")) {
    reading.fault(reading.place_of("csv.columns"), "csv.columns",
                  "the header line names the columns; set csv.header: false to name them here");
  }
}

}  // namespace

std::string check_brokers(const std::string& brokers) {
  static const std::string hint = "; write host:port, commas between several";
  std::size_t start = 0;
  while (start <= brokers.size()) {
    const std::size_t comma = std::min(brokers.find(',', start), brokers.size());
    std::string broker = brokers.substr(start, comma - start);
    start = comma + 1;
    broker.erase(0, std::min(broker.find_first_not_of(' '), broker.size()));
    broker.erase(broker.find_last_not_of(' ') + 1);
    if (broker.empty()) return "an empty place between the commas names no broker" + hint;
    const std::size_t scheme = broker.find("://");
    if (scheme != std::string::npos) {
      const std::string protocol = broker.substr(0, scheme);
      if (protocol != "PLAINTEXT" && protocol != "SSL" && protocol != "SASL_PLAINTEXT" &&
          protocol != "SASL_SSL") {
        return shown_value(broker) + " is not a broker" + hint;
      }
      broker.erase(0, scheme + 3);
    }
    const std::size_t colon =
        broker.find(':', broker.find(']') == std::string::npos ? 0 : broker.find(']'));
    const std::string port = colon == std::string::npos ? "9092" : broker.substr(colon + 1);
    int number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535) {
      return shown_value(broker) + " has no port between 1 and 65535" + hint;
    }
    if (colon == 0 || broker.find_first_of(" /@") != std::string::npos) {
      return shown_value(broker) + " is not a broker" + hint;
    }
  }
  return "";
}

std::string check_state_url(const std::string& url) {
  if (url == "sqlite:" || url == "sqlite::memory:") return "names no file; write sqlite:PATH";
  if (url.rfind("sqlite:", 0) == 0) return "";
  if (looks_like_postgres(url)) return check_postgres_url(url);
  return "is not the URL of a state; write sqlite:PATH or postgres://user:password@host/database";
}

void check_source_rules(PipelineReading& reading) {
  const Pipeline& pipeline = reading.pipeline;
  const std::string& name = pipeline.name;
  if (!name.empty() && (name.size() > name_bytes_max || !all_name_signs(name))) {
    reading.fault(reading.place_of("name"), "name",
                  shown_value(name) +
                      " is not a name: at most 100 letters, digits, dots, dashes and "
                      "underscores");
  }
  if (pipeline.source.kind == "kafka") {
    check_topics(reading);
    const std::string why =
        pipeline.source.kafka.brokers.empty() ? "" : check_brokers(pipeline.source.kafka.brokers);
    if (!why.empty()) reading.fault(reading.place_of("source.brokers"), "source.brokers", why);
  }
  check_file_source(reading);
  check_csv(reading);
  if (pipeline.retry.initial > pipeline.retry.max) {
    const std::string path = reading.has("retry.initial") ? "retry.initial" : "retry.max";
    reading.fault(reading.place_of(path), path,
                  "the first wait (" + format_duration(pipeline.retry.initial) +
                      ") is longer than the longest (" + format_duration(pipeline.retry.max) + ")");
  }
  const std::string why = pipeline.state.empty() ? "" : check_state_url(pipeline.state);
  if (!why.empty()) reading.fault(reading.place_of("state"), "state", why);
}

}  // namespace flow
