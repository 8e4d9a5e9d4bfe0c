#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/pipeline_reader.h"

namespace flow {
namespace {

// One step of "targets[0].table": a name or an index.
struct Step {
  std::string name;
  std::optional<std::size_t> index;
};

// The steps of a path; below a map of properties the rest is one name, dots and all. Empty: not a
// path.
std::vector<Step> steps_of(std::string_view path) {
  std::vector<Step> out;
  std::string pattern;
  while (!path.empty()) {
    Step step;
    const Setting* row = find_setting(pattern);
    if (path.front() == '[') {
      std::size_t index = 0;
      const std::size_t close = std::min(path.find(']'), path.size());
      const auto [end, error] = std::from_chars(path.data() + 1, path.data() + close, index);
      if (error != std::errc{} || close == path.size() || end != path.data() + close) return {};
      step.index = index;
      path.remove_prefix(close + 1);
      pattern += "[]";
    } else {
      const bool whole = row != nullptr && row->type == SettingType::properties;
      const std::size_t end = whole ? path.size() : std::min(path.find_first_of(".["), path.size());
      step.name = std::string(path.substr(0, end));
      if (step.name.empty()) return {};
      path.remove_prefix(end);
      const bool named = row != nullptr && row->type == SettingType::named;
      pattern += (pattern.empty() ? "" : ".") + (named ? "*" : step.name);
    }
    out.push_back(std::move(step));
    if (path.empty() || path.front() == '[') continue;
    if (path.front() != '.' || path.size() == 1) return {};
    path.remove_prefix(1);
  }
  return out;
}

class Setter {
 public:
  Setter(YamlTree& tree, int set) : tree_(tree), place_{0, 0, set} {}

  void apply(const std::string& path, const std::string& text) {
    const std::vector<Step> steps = steps_of(path);
    if (steps.empty() || steps.front().index) {
      return fault(shown_value(path) +
                   " is not a path such as source.batch.records or targets[0].table");
    }
    YamlNode* value = value_of(text);
    if (value == nullptr) return;
    YamlNode** at = &tree_.root;
    std::string walked;
    for (const Step& step : steps) {
      at = step.index ? item(at, *step.index, walked) : entry(at, step.name, walked);
      if (at == nullptr) return;
    }
    *at = value;
  }

 private:
  void fault(std::string message) { tree_.faults.push_back({place_, std::move(message)}); }

  // Lists and maps are read as YAML; everything else is one value, whatever signs it holds.
  YamlNode* value_of(const std::string& text) {
    const bool list = text.size() > 1 && text.front() == '[' && text.back() == ']';
    const bool map = text.size() > 1 && text.front() == '{' && text.back() == '}';
    if (!list && !map) {
      YamlNode* node = tree_.add(YamlKind::scalar, place_);
      node->text = text;
      node->loose = true;
      return node;
    }
    YamlTree value = read_yaml(text);
    for (const YamlFault& f : value.faults) fault(f.message);
    if (!value.faults.empty() || value.root == nullptr) return nullptr;
    return adopt(*value.root);
  }

  // A copy in this tree, so that its owner is the tree.
  YamlNode* adopt(const YamlNode& from) {
    YamlNode* node = tree_.add(from.kind, place_);
    node->quoted = from.quoted;
    node->text = from.text;
    for (const YamlNode* child : from.items) node->items.push_back(adopt(*child));
    for (const YamlEntry& e : from.entries)
      node->entries.push_back({e.key, place_, adopt(*e.value)});
    return node;
  }

  // The node at `at` as one of `kind` that nothing else shares (an anchor's other uses stay as they
  // are). nullptr: the file has something else there.
  YamlNode* own(YamlNode** at, YamlKind kind, const std::string& walked) {
    if (*at == nullptr || (*at)->kind == YamlKind::null) {
      *at = tree_.add(kind, place_);
    } else if ((*at)->kind == kind) {
      tree_.nodes.push_back(**at);
      *at = &tree_.nodes.back();
    } else {
      fault((walked.empty() ? "the file" : walked) + " is not a " +
            (kind == YamlKind::map ? "map of settings" : "list"));
      return nullptr;
    }
    return *at;
  }

  YamlNode** entry(YamlNode** at, const std::string& name, std::string& walked) {
    YamlNode* map = own(at, YamlKind::map, walked);
    if (map == nullptr) return nullptr;
    walked += (walked.empty() ? "" : ".") + name;
    auto found = std::find_if(map->entries.begin(), map->entries.end(),
                              [&name](const YamlEntry& e) { return e.key == name; });
    if (found == map->entries.end()) {
      found = map->entries.insert(found, {name, place_, nullptr});
    }
    found->place = place_;
    return &found->value;
  }

  YamlNode** item(YamlNode** at, std::size_t index, std::string& walked) {
    YamlNode* list = own(at, YamlKind::list, walked);
    if (list == nullptr) return nullptr;
    if (index > list->items.size()) {
      fault("there is no " + walked + "[" + std::to_string(index) + "]; the file has " +
            std::to_string(list->items.size()) + " of them, counted from 0");
      return nullptr;
    }
    if (index == list->items.size()) list->items.push_back(nullptr);
    walked += "[" + std::to_string(index) + "]";
    return &list->items[index];
  }

  YamlTree& tree_;
  YamlPlace place_;
};

}  // namespace

void apply_sets(YamlTree& tree, const std::vector<std::string>& sets) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::size_t equals = sets[i].find('=');
    if (equals == std::string::npos) {
      tree.faults.push_back({{0, 0, static_cast<int>(i) + 1}, "must be path=value"});
      continue;
    }
    Setter(tree, static_cast<int>(i) + 1)
        .apply(sets[i].substr(0, equals), sets[i].substr(equals + 1));
  }
}

}  // namespace flow
