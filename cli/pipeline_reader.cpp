#include "cli/pipeline_reader.h"

#include <algorithm>

#include "core/mask.h"
#include "core/suggest.h"

namespace flow {
namespace {

constexpr std::size_t value_shown_max = 60;
constexpr std::size_t names_listed_max = 8;

std::string below(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

// Where a setting stands for the rules: at its value.
YamlPlace value_place(const YamlEntry& entry) {
  const bool empty = entry.value->kind == YamlKind::null || entry.value->kind == YamlKind::broken;
  return empty ? entry.place : entry.value->place;
}

// Which kind a section is, if that can be told: what its kind setting says, or its default.
std::string kind_of(const YamlNode& section, std::string_view pattern,
                    const PipelineReading& reading) {
  const std::string_view path = kind_setting_of(pattern);
  if (path.empty()) return "";
  const Setting* setting = find_setting(path);
  const YamlNode* node = section.find(setting->name());
  if (node == nullptr) return std::string(setting->fallback);
  if (node->kind != YamlKind::scalar) return "";
  const Filled filled = fill_in(node->text, FillAs::text, reading.sources);
  const auto kinds = split_words(setting->choices);
  const bool known = std::find(kinds.begin(), kinds.end(), filled.text) != kinds.end();
  return known && filled.faults.empty() ? filled.text : "";
}

// Where else in the file a name would be right: "source.batch.records".
std::string right_place_of(std::string_view name) {
  for (const Setting& setting : settings()) {
    if (setting.name() == name) return std::string(setting.path);
  }
  return "";
}

// The same for a name that is nearly right.
std::string near_place_of(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Setting& setting : settings()) names.push_back(setting.name());
  const std::string near = nearest_name(name, names);
  return near.empty() ? "" : right_place_of(near);
}

std::string unknown_setting(std::string_view name, const std::vector<const Setting*>& siblings,
                            const std::string& kind) {
  std::vector<std::string_view> names;
  std::string list;
  for (const Setting* sibling : siblings) {
    if (!kind.empty() && !sibling->belongs_to(kind)) continue;
    names.push_back(sibling->name());
    list += (list.empty() ? "" : ", ") + std::string(sibling->name());
  }
  const std::string near = did_you_mean(name, names);
  const std::string elsewhere = right_place_of(name);
  if (!elsewhere.empty()) return "unknown setting here; it belongs at " + elsewhere;
  if (!near.empty()) return "unknown setting" + near;
  const std::string near_elsewhere = near_place_of(name);
  if (name.size() >= 4 && !near_elsewhere.empty())
    return "unknown setting; did you mean \"" + near_elsewhere + "\"?";
  if (names.size() <= names_listed_max) return "unknown setting; there are " + list;
  return "unknown setting; see flow-pipeline(5)";
}

class Walk {
 public:
  explicit Walk(PipelineReading& reading) : reading_(reading) {}

  void section(const YamlNode& node, std::string_view pattern, const std::string& path,
               const SettingScope& scope) {
    if (!is_kind(node, YamlKind::map, path, "a map of settings")) return;
    const auto siblings = settings_below(pattern);
    const std::string kind = kind_of(node, pattern, reading_);
    for (const YamlEntry& entry : node.entries) {
      if (path.empty() && entry.key.rfind("x-", 0) == 0) continue;
      const auto row = std::find_if(siblings.begin(), siblings.end(),
                                    [&entry](const Setting* s) { return s->name() == entry.key; });
      const std::string child = below(path, entry.key);
      if (row == siblings.end()) {
        reading_.fault(entry.place, child, unknown_setting(entry.key, siblings, kind));
        continue;
      }
      reading_.given[child] = value_place(entry);
      if (!kind.empty() && !(*row)->belongs_to(kind)) {
        reading_.fault(entry.place, child, wrong_kind(**row, kind));
      } else {
        value(**row, *entry.value, child, scope);
      }
    }
    fill_absent(node, siblings, kind, path, scope);
  }

 private:
  // Faults unless `node` is such a node.
  bool is_kind(const YamlNode& node, YamlKind kind, const std::string& path,
               std::string_view wanted, std::string_view hint = "") {
    if (node.kind == kind) return true;
    if (node.kind == YamlKind::broken) return false;
    static constexpr std::string_view names[] = {"nothing", "a single value", "a list", "a map"};
    const std::string got{names[static_cast<std::size_t>(node.kind)]};
    reading_.fault(node.place, path,
                   "must be " + std::string(wanted) + ", not " + got + std::string(hint));
    return false;
  }

  static std::string wrong_kind(const Setting& setting, const std::string& kind) {
    const std::string_view decides = find_setting(kind_setting_of(setting.parent()))->name();
    return "is a setting for " + std::string(decides) + " " + words_or(setting.kinds) +
           ", and this is " + kind;
  }

  void value(const Setting& setting, const YamlNode& node, const std::string& path,
             const SettingScope& scope) {
    switch (setting.type) {
      case SettingType::section: return section(node, setting.path, path, scope);
      case SettingType::list: return list(setting, node, path);
      case SettingType::named: return columns(node, path);
      default: break;
    }
    SettingValue value;
    if (read_value(setting, node, path, reading_, value)) setting.set(scope, value);
  }

  // transform and targets.
  void list(const Setting& setting, const YamlNode& node, const std::string& path) {
    if (!is_kind(node, YamlKind::list, path, "a list", "; begin each item with \"- \"")) return;
    if (node.items.empty() && setting.need == Need::required) {
      reading_.fault(node.place, path, "must not be empty; name at least one");
    }
    const std::string pattern = std::string(setting.path) + "[]";
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const std::string item = path + "[" + std::to_string(i) + "]";
      reading_.given[item] = node.items[i]->place;
      SettingScope scope{&reading_.pipeline, nullptr, nullptr, nullptr};
      if (setting.path == "targets") {
        scope.target = &reading_.pipeline.targets.emplace_back();
      } else {
        scope.transform = &reading_.pipeline.transform.emplace_back();
      }
      section(*node.items[i], pattern, item, scope);
    }
  }

  void columns(const YamlNode& node, const std::string& path) {
    if (!is_kind(node, YamlKind::map, path, "a map from column names to fields")) return;
    for (const YamlEntry& entry : node.entries) {
      const std::string child = below(path, entry.key);
      reading_.given[child] = value_place(entry);
      if (entry.key.find_first_not_of(" \t") == std::string::npos) {
        reading_.fault(entry.place, path, "a column name must not be blank");
        continue;
      }
      ColumnSpec column;
      column.name = entry.key;
      column.from.path = {entry.key};
      column.from.text = "$." + entry.key;
      const SettingScope scope{&reading_.pipeline, nullptr, nullptr, &column};
      if (entry.value->kind == YamlKind::map) {
        section(*entry.value, "columns.*", child, scope);
      } else {
        value(*find_setting("columns.*.from"), *entry.value, child, scope);
      }
      reading_.pipeline.columns.push_back(std::move(column));
    }
  }

  void fill_absent(const YamlNode& node, const std::vector<const Setting*>& siblings,
                   const std::string& kind, const std::string& path, const SettingScope& scope) {
    for (const Setting* setting : siblings) {
      const bool applies = kind.empty() ? setting->kinds.empty() : setting->belongs_to(kind);
      if (!applies || node.find(setting->name()) != nullptr) continue;
      const std::string child = below(path, setting->name());
      if (setting->need == Need::required) {
        const std::string why = setting->kinds.empty() ? "" : " for kind " + kind;
        const bool choice = setting->type == SettingType::choice;
        const std::string what =
            choice ? words_or(setting->choices) : std::string(name_of(setting->type));
        reading_.fault(node.place, child, "is missing" + why + "; " + what + " is needed");
      } else if (setting->type == SettingType::section) {
        YamlNode empty;
        empty.kind = YamlKind::map;
        section(empty, setting->path, child, scope);
      } else if (!setting->fallback.empty()) {
        YamlNode fallback;
        fallback.kind = YamlKind::scalar;
        fallback.loose = true;
        fallback.text = std::string(setting->fallback);
        value(*setting, fallback, child, scope);
      }
    }
  }

  PipelineReading& reading_;
};

}  // namespace

void PipelineReading::fault(YamlPlace place, std::string path, std::string message) {
  faults.push_back({place, std::move(path), std::move(message)});
}

bool PipelineReading::sound(const std::string& path) const {
  return std::none_of(faults.begin(), faults.end(),
                      [&path](const PathFault& fault) { return fault.path == path; });
}

YamlPlace PipelineReading::place_of(std::string path) const {
  while (true) {
    const auto found = given.find(path);
    if (found != given.end()) return found->second;
    const std::size_t end = path.find_last_of(".[");
    if (end == std::string::npos) return {1, 1, 0};
    path.resize(end);
  }
}

std::string shown_value(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, value_shown_max)) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  while (text.size() > value_shown_max && (static_cast<unsigned char>(out.back()) & 0x80u) != 0) {
    out.pop_back();
  }
  return out + (text.size() > value_shown_max ? "...\"" : "\"");
}

void read_settings(const YamlNode& root, PipelineReading& reading) {
  SettingScope scope;
  scope.pipeline = &reading.pipeline;
  Walk(reading).section(root, "", "", scope);
}

}  // namespace flow
