#include <algorithm>
#include <fnmatch.h>

#include "cli/pipeline_reader.h"
#include "cli/postgres_url.h"
#include "cli/topic_names.h"
#include "core/identifier.h"
#include "core/suggest.h"

namespace flow {
namespace {

class TargetRules {
 public:
  TargetRules(PipelineReading& reading, std::size_t index)
      : reading_(reading),
        pipeline_(reading.pipeline),
        target_(reading.pipeline.targets[index]),
        path_("targets[" + std::to_string(index) + "]") {}

  void check() {
    if (target_.kind == "postgres" || target_.kind == "sqlite") {
      url();
      table();
      modes();
      created();
    } else if (target_.kind == "kafka") {
      kafka();
    } else if (target_.kind == "file") {
      file();
    }
    if (target_.kind == "postgres") long_names();
  }

 private:
  std::string at(std::string_view name) const { return path_ + "." + std::string(name); }
  void fault(const std::string& path, std::string message) {
    reading_.fault(reading_.place_of(path), path, std::move(message));
  }

  void url() {
    if (target_.url.empty()) return;
    const bool postgres = looks_like_postgres(target_.url);
    const bool sqlite = target_.url.rfind("sqlite:", 0) == 0;
    if (target_.kind == "sqlite") {
      if (!sqlite) {
        fault(at("url"),
              postgres ? "is the URL of a PostgreSQL database; write kind: postgres, or sqlite:PATH"
                       : "is not the URL of a SQLite file; write sqlite:PATH");
      } else if (target_.url == "sqlite:" || target_.url.find(":memory:") != std::string::npos) {
        fault(at("url"), "names no file; write sqlite:PATH");
      }
    } else if (!postgres) {
      fault(at("url"), sqlite ? "is the URL of a SQLite file; write kind: sqlite, or postgres://..."
                              : "is not the URL of a PostgreSQL database; write "
                                "postgres://user:password@host:5432/database");
    } else if (std::string why = check_postgres_url(target_.url); !why.empty()) {
      fault(at("url"), std::move(why));
    }
  }

  void table() {
    if (target_.table.empty()) return;
    const auto name = parse_table_name(target_.table);
    if (!name) {
      fault(at("table"), shown_value(target_.table) + " is not a table name: " +
                             name.failure().what + "; " + name.failure().hint);
    } else if (target_.kind == "postgres") {
      too_long(at("table"), name.value().schema);
      too_long(at("table"), name.value().table);
    }
  }

  void too_long(const std::string& path, const std::string& name) {
    if (name.size() <= postgres_identifier_bytes_max) return;
    fault(path, shown_value(name) + " has " + std::to_string(name.size()) +
                    " bytes and PostgreSQL would cut it at 63; use a shorter name");
  }

  void long_names() {
    for (const ColumnSpec& column : pipeline_.columns)
      too_long("columns." + column.name, column.name);
    for (std::size_t i = 0; i < target_.key.size(); ++i) {
      too_long(at("key[" + std::to_string(i) + "]"), target_.key[i]);
    }
  }

  void modes() {
    if (!reading_.sound(at("mode"))) return;
    if (target_.mode == Mode::append) {
      for (const char* name : {"key", "on_tombstone"}) {
        if (!reading_.has(at(name))) continue;
        fault(at(name), std::string(name) +
                            " belongs to mode: merge, and this target appends; write mode: "
                            "merge, or remove it");
      }
      return;
    }
    if (!reading_.has(at("key"))) {
      fault(at("mode"),
            "merge needs a key: the columns that tell rows apart, as in key: [order_id]");
    }
    const auto& outputs = reading_.outputs;
    const std::vector<std::string_view> names(outputs.begin(), outputs.end());
    for (std::size_t i = 0; i < target_.key.size() && !outputs.empty(); ++i) {
      const std::string& name = target_.key[i];
      if (name.empty() || is_output(name)) continue;
      const bool sql = !pipeline_.transform.empty();
      fault(at("key[" + std::to_string(i) + "]"),
            shown_value(name) +
                (sql ? " is not a column that the SQL gives" : " is not one of columns") +
                did_you_mean(name, names));
    }
  }

  bool is_output(const std::string& name) const {
    const auto& outputs = reading_.outputs;
    return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
  }
  bool is_column(const std::string& name) const {
    const auto& all = pipeline_.columns;
    return std::any_of(all.begin(), all.end(), [&](const ColumnSpec& c) { return c.name == name; });
  }

  void created() {
    if (!target_.create_table) return;
    std::string untyped;
    const auto needs_type = [&](const std::string& name) {
      untyped += (untyped.empty() ? "" : ", ") + name;
    };
    for (const ColumnSpec& column : pipeline_.columns) {
      if (!column.type) needs_type(column.name);
    }
    for (const std::string& name : reading_.outputs) {
      if (!is_column(name)) needs_type(name);
    }
    if (pipeline_.columns.empty() && !reading_.has("columns")) {
      fault(at("create_table"),
            "needs columns with types to create the table from, as in columns: "
            "{order_id: {from: $.order_id, type: bigint}}");
    } else if (!untyped.empty()) {
      fault(at("create_table"), "needs a type for each column, and these have none: " + untyped);
    }
  }

  void kafka() {
    std::string why = target_.brokers.empty() ? "" : check_brokers(target_.brokers);
    if (!why.empty()) fault(at("brokers"), std::move(why));
    if (target_.topic.empty()) return;
    why = target_.topic.front() == '^' ? "is a pattern, and a target writes to one topic"
                                       : check_topic_name(target_.topic);
    if (!why.empty()) fault(at("topic"), shown_value(target_.topic) + " " + why);
    const KafkaSourceSpec& source = pipeline_.source.kafka;
    if (pipeline_.source.kind != "kafka" || source.brokers != target_.brokers) return;
    for (const std::string& read : source.topics) {
      if (!reads_topic(read, target_.topic)) continue;
      fault(at("topic"), "is a topic that the source reads (" + read +
                             "); the pipeline would feed itself for ever");
      return;
    }
  }

  void file() {
    if (target_.path.empty()) return;
    for (const std::string& read : pipeline_.source.file.paths) {
      if (::fnmatch(read.c_str(), target_.path.c_str(), FNM_PATHNAME | FNM_PERIOD) != 0) continue;
      fault(at("path"),
            "is a file that the source reads; write to one that source.path does not name");
      break;
    }
    if (target_.path.back() == '/') fault(at("path"), "is a directory; name a file in it");
  }

  PipelineReading& reading_;
  const Pipeline& pipeline_;
  const TargetSpec& target_;
  std::string path_;
};

// Where a target writes; two targets with the same place would mix or repeat their rows.
std::string place_written(const TargetSpec& target) {
  if (target.kind == "stdout") return "standard output";
  if (target.kind == "file") return target.path.empty() ? "" : "file " + target.path;
  if (target.kind == "kafka") {
    const bool known = !target.topic.empty() && !target.brokers.empty();
    return known ? "topic " + target.topic + "\n" + target.brokers : "";
  }
  const auto name = parse_table_name(target.table);
  return name && !target.url.empty() ? "table " + name.value().text() + "\n" + target.url : "";
}

void check_pairs(PipelineReading& reading) {
  const auto& targets = reading.pipeline.targets;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string path = "targets[" + std::to_string(i) + "]";
    for (std::size_t k = 0; k < i; ++k) {
      const std::string other = "targets[" + std::to_string(k) + "]";
      const std::string place = place_written(targets[i]);
      if (!place.empty() && place == place_written(targets[k])) {
        reading.fault(reading.place_of(path), path,
                      "writes to the same " + place.substr(0, place.find('\n')) + " as " + other +
                          "; remove one");
      } else if (!targets[i].label.empty() && targets[i].label == targets[k].label) {
        const bool given = reading.has(path + ".label");
        reading.fault(reading.place_of(given ? path + ".label" : path), path + ".label",
                      shown_value(targets[i].label) + " is also the label of " + other +
                          "; give each target a label of its own");
      } else {
        continue;
      }
      break;
    }
  }
}

}  // namespace

void check_target_rules(PipelineReading& reading) {
  for (std::size_t i = 0; i < reading.pipeline.targets.size(); ++i) TargetRules(reading, i).check();
  check_pairs(reading);
}

}  // namespace flow
