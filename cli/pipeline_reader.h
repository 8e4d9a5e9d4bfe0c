#pragma once
// From a YAML tree to a Pipeline along the settings table. Used by pipeline_file.cpp alone.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/interpolate.h"
#include "cli/yaml_tree.h"
#include "core/pipeline.h"
#include "core/settings.h"

namespace flow {

struct PathFault {
  YamlPlace place;
  std::string path;
  std::string message;
};

// What reading fills. given: the settings that the file has, and where. Owner: parse_pipeline.
struct PipelineReading {
  Pipeline pipeline;
  std::vector<PathFault> faults;
  std::map<std::string, YamlPlace> given;
  std::vector<std::string> secrets;
  std::vector<std::string>
      outputs;  // columns that reach the targets; empty: known by the tables only
  FillSources sources;

  void fault(YamlPlace place, std::string path, std::string message);
  bool sound(const std::string& path) const;  // nothing was wrong with this very setting
  bool has(const std::string& path) const { return given.count(path) > 0; }
  YamlPlace place_of(
      std::string path) const;  // of the setting, or of the nearest one that holds it
};

// A value as a fault may show it: quoted, short, on one line.
std::string shown_value(std::string_view text);

// pipeline_values.cpp: one value, checked. False: it is at fault, and the fault is in `reading`.
bool read_value(const Setting& setting, const YamlNode& node, const std::string& path,
                PipelineReading& reading, SettingValue& value);

// pipeline_properties.cpp
bool read_properties(const Setting& setting, const YamlNode& node, const std::string& path,
                     PipelineReading& reading, SettingValue& value);

// pipeline_reader.cpp: every setting, with the table's defaults where the file is silent.
void read_settings(const YamlNode& root, PipelineReading& reading);

// pipeline_sets.cpp: puts "path=value" into the tree. Errors: faults of the tree.
void apply_sets(YamlTree& tree, const std::vector<std::string>& sets);

// pipeline_defaults.cpp: defaults that follow from other settings, absolute paths.
void complete_pipeline(PipelineReading& reading, const std::string& base_dir);
std::string absolute_url(const std::string& url, const std::string& base_dir);  // of sqlite:PATH

// pipeline_rules_*.cpp: what cannot be, or cannot work together.
void check_source_rules(PipelineReading& reading);
void check_field_rules(PipelineReading& reading);
void check_target_rules(PipelineReading& reading);
void check_dlq_rules(PipelineReading& reading);
std::string check_brokers(const std::string& brokers);  // what is wrong; empty: nothing
std::string check_state_url(const std::string& url);

}  // namespace flow
