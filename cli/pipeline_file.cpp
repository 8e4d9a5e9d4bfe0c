#include "cli/pipeline_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <tuple>

#include "cli/pipeline_reader.h"
#include "cli/yaml_tree.h"
#include "core/mask.h"

namespace flow {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t faults_max = 200;

// FNV-1a, 64 bits.
class Digest {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      hash_ ^= static_cast<unsigned char>(c);
      hash_ *= 1099511628211ull;
    }
    hash_ *= 1099511628211ull;  // an end, so that "ab" "c" and "a" "bc" differ
  }
  std::string text() const {
    std::array<char, 17> out{};
    std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(hash_));
    return out.data();
  }

 private:
  std::uint64_t hash_ = 14695981039346656037ull;
};

// Names and values as written, ${...} not filled in, comments and layout left out, secrets masked.
void digest_node(const YamlNode& node, const std::string& path, Digest& digest) {
  if (node.kind == YamlKind::scalar) {
    digest.add(path);
    const bool property = path.find(".properties.") != std::string::npos;
    const bool url = path == ".state" || path.ends_with(".url");
    digest.add(property && is_secret_name(path) ? "***" : url ? mask_url(node.text) : node.text);
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    digest_node(*node.items[i], path + "[" + std::to_string(i) + "]", digest);
  }
  for (const YamlEntry& entry : node.entries) {
    digest_node(*entry.value, path + "." + entry.key, digest);
  }
}

std::string name_of_set(const std::string& set) { return "--set " + set.substr(0, set.find('=')); }

ConfigFault config_fault(const std::string& file, const LoadOptions& options, YamlPlace place,
                         std::string path, std::string message) {
  if (place.set == 0) return {file, place.line, place.column, std::move(path), std::move(message)};
  std::string origin = name_of_set(options.sets[static_cast<std::size_t>(place.set) - 1]);
  if (origin == "--set " + path) path.clear();
  return {std::move(origin), 0, 0, std::move(path), std::move(message)};
}

// In the order of the file, without repeats (one place in an anchor is read once for each use),
// masked.
std::vector<ConfigFault> in_order(std::vector<ConfigFault> faults, const std::string& file,
                                  const std::vector<std::string>& secrets) {
  std::stable_sort(faults.begin(), faults.end(),
                   [&file](const ConfigFault& a, const ConfigFault& b) {
                     return std::tuple(a.file != file, a.line, a.column) <
                            std::tuple(b.file != file, b.line, b.column);
                   });
  Masker masker;
  for (const std::string& secret : secrets) masker.add(secret);
  std::set<std::tuple<std::string, int, int, std::string>> seen;
  std::vector<ConfigFault> out;
  for (ConfigFault& fault : faults) {
    fault.message = masker.text(fault.message);
    if (!seen.emplace(fault.file, fault.line, fault.column, fault.message).second) continue;
    if (out.size() == faults_max) {
      out.push_back({file, 0, 0, "", "more than 200 faults; the rest is not shown"});
      break;
    }
    out.push_back(std::move(fault));
  }
  return out;
}

// --state, then FLOW_STATE, then the file, then the default.
void choose_state(PipelineReading& reading, const LoadOptions& options, const std::string& base_dir,
                  std::vector<ConfigFault>& faults) {
  std::string& state = reading.pipeline.state;
  const auto variable = options.getenv ? options.getenv("FLOW_STATE") : std::nullopt;
  const bool by_flag = !options.state_flag.empty();
  if (by_flag || (variable && !variable->empty())) {
    const std::string url = by_flag ? options.state_flag : *variable;
    for (std::string& secret : secrets_of_url(url)) reading.secrets.push_back(std::move(secret));
    std::error_code error;
    state = absolute_url(url, fs::current_path(error).string());
    std::string why = check_state_url(url);
    if (!why.empty())
      faults.push_back({by_flag ? "--state" : "FLOW_STATE", 0, 0, "", std::move(why)});
  } else {
    state = state.empty() ? options.default_state : absolute_url(state, base_dir);
  }
}

std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string ConfigFault::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line) + ":" + std::to_string(column);
  if (!path.empty()) out += ": " + path;
  return out + ": " + message;
}

LoadedPipeline parse_pipeline(const std::string& text, const std::string& name,
                              const std::string& base_dir, const LoadOptions& options) {
  YamlTree tree = read_yaml(text);
  PipelineReading reading;
  reading.sources = {options.getenv, base_dir};
  reading.pipeline.file = name;
  std::vector<ConfigFault> faults;
  const bool readable = tree.root != nullptr || tree.faults.empty();
  if (readable) apply_sets(tree, options.sets);
  for (const YamlFault& fault : tree.faults) {
    faults.push_back(config_fault(name, options, fault.place, "", fault.message));
  }
  Digest digest;
  if (tree.root == nullptr || tree.root->kind == YamlKind::null) {
    if (readable)
      faults.push_back({name, 1, 1, "", "is empty; flow init prints a pipeline to begin with"});
  } else if (tree.root->kind != YamlKind::map) {
    const YamlPlace place = tree.root->place;
    faults.push_back({name, place.line, place.column, "",
                      "a pipeline is a map of settings such as name:, source: and targets:"});
  } else {
    read_settings(*tree.root, reading);
    complete_pipeline(reading, base_dir);
    check_source_rules(reading);
    check_field_rules(reading);
    check_target_rules(reading);
    check_dlq_rules(reading);
    digest_node(*tree.root, "", digest);
  }
  choose_state(reading, options, base_dir, faults);
  for (PathFault& fault : reading.faults) {
    faults.push_back(
        config_fault(name, options, fault.place, std::move(fault.path), std::move(fault.message)));
  }
  LoadedPipeline out;
  out.pipeline = std::move(reading.pipeline);
  out.pipeline.digest = digest.text();
  out.faults = in_order(std::move(faults), name, reading.secrets);
  std::sort(reading.secrets.begin(), reading.secrets.end());
  reading.secrets.erase(std::unique(reading.secrets.begin(), reading.secrets.end()),
                        reading.secrets.end());
  out.secrets = std::move(reading.secrets);
  return out;
}

LoadedPipeline load_pipeline(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (path == "-")
    return parse_pipeline(read_all(std::cin), path, fs::current_path(error).string(), options);
  LoadedPipeline out;
  const auto refuse = [&](std::string why) {
    out.faults.push_back({path, 0, 0, "", "cannot be read: " + std::move(why)});
    return out;
  };
  if (fs::is_directory(path, error)) return refuse("it is a directory; name a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return refuse(std::strerror(errno));
  const std::string text = read_all(in);
  if (in.bad()) return refuse("reading failed");
  const fs::path base = fs::absolute(path, error).parent_path();
  return parse_pipeline(text, path, base.string(), options);
}

}  // namespace flow
