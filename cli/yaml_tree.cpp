#include "cli/yaml_tree.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "cli/yaml_text.h"

namespace flow {
namespace {

constexpr std::size_t weight_max = 100'000;
constexpr std::string_view core_tag = "tag:yaml.org,2002:";

// Builds the tree. Owner: read_yaml.
class Builder : public YAML::EventHandler {
 public:
  Builder(YamlTree& tree, const YamlText& text) : tree_(tree), text_(text) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // An absent value is marked where the next token stands.
    const YamlPlace place = place_of(mark);
    const bool written =
        text_.at(place.line, mark.column) == '~' || text_.word_at(place.line, mark.column, "null");
    attach(make(YamlKind::null, written ? place : absent_place(mark), anchor));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const YamlPlace place = place_of(mark);
    const auto found = anchors_.find(anchor);
    YamlNode* node = found == anchors_.end() ? nullptr : found->second;
    if (node == nullptr || node->open) {
      fault(place, "an alias inside the very value that it repeats");
      node = nullptr;
    } else if (total_ + node->weight > weight_max) {
      if (!unusable_) fault(place, "the aliases write out to more than 100000 values");
      unusable_ = true;
      node = nullptr;
    }
    attach(node != nullptr ? node : make(YamlKind::broken, place, YAML::NullAnchor), place);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode* node = make(YamlKind::scalar, place_of(mark), anchor);
    node->text = value;
    node->quoted = tag != "?" && !tag.empty();
    if (node->quoted && !text_.quote_closed(node->place.line, mark.column)) {
      fault(node->place, "a quote is opened here and never closed");
      unusable_ = true;
    }
    if (node->quoted && tag != "!" && tag != std::string(core_tag) + "str") refuse_tag(node);
    attach(node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(YamlKind::list, mark, tag, anchor, "seq");
  }
  void OnSequenceEnd() override { finish(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(YamlKind::map, mark, tag, anchor, "map");
  }
  void OnMapEnd() override { finish(); }

  bool unusable() const { return unusable_; }

 private:
  // A list or map being read. key: of the map, waiting for its value. merges: values of its "<<".
  struct Open {
    YamlNode* node = nullptr;
    YamlNode* key = nullptr;
    YamlPlace key_place;
    std::vector<std::pair<YamlPlace, YamlNode*>> merges;
  };

  YamlPlace place_of(const YAML::Mark& mark) const { return text_.place(mark.line, mark.column); }

  // Of a value that is left out: its key, or the "-" of its item.
  YamlPlace absent_place(const YAML::Mark& mark) const {
    if (open_.empty()) return place_of(mark);
    const Open& open = open_.back();
    if (open.key != nullptr) return open.key_place;
    return text_.dash_before(mark.line, mark.column).value_or(open.node->place);
  }

  void fault(YamlPlace place, std::string message) {
    tree_.faults.push_back({place, std::move(message)});
  }

  YamlNode* make(YamlKind kind, YamlPlace place, YAML::anchor_t anchor) {
    YamlNode* node = tree_.add(kind, place);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    return node;
  }

  void refuse_tag(YamlNode* node) {
    fault(node->place, "tags other than !!str are not read; write the value alone");
    node->kind = YamlKind::broken;
  }

  void start(YamlKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             std::string_view core_name) {
    YamlNode* node = make(kind, place_of(mark), anchor);
    node->open = true;
    const bool plain = tag.empty() || tag == "?" || tag == "!" ||
                       tag == std::string(core_tag) + std::string(core_name);
    if (!plain) refuse_tag(node);
    open_.push_back({node, nullptr, {}, {}});
  }

  void finish() {
    Open done = std::move(open_.back());
    open_.pop_back();
    for (const auto& [place, merged] : done.merges) merge(done.node, place, merged);
    done.node->open = false;
    attach(done.node);
  }

  void attach(YamlNode* value) { attach(value, value->place); }

  // `place`: where the value is used, which for an alias is not where it stands.
  void attach(YamlNode* value, YamlPlace place) {
    total_ += value->weight;
    if (open_.empty()) {
      if (tree_.root == nullptr) tree_.root = value;
      return;
    }
    Open& open = open_.back();
    open.node->weight += value->weight;
    if (open.node->kind == YamlKind::list) {
      open.node->items.push_back(value);
    } else if (open.key == nullptr) {
      open.key = value;
      open.key_place = place;
    } else {
      add_entry(open, value);
    }
  }

  void add_entry(Open& open, YamlNode* value) {
    const YamlNode* key = open.key;
    const YamlPlace place = open.key_place;
    open.key = nullptr;
    if (open.node->kind == YamlKind::broken) return;
    if (key->kind != YamlKind::scalar) {
      if (key->kind != YamlKind::broken) fault(place, "a key must be a name; this one is not text");
      return;
    }
    if (key->text == "<<" && !key->quoted) {
      if (!open.merges.empty()) {
        fault(place, "\"<<\" stands twice in one map, first in line " +
                         std::to_string(open.merges.front().first.line) +
                         "; write one with a list: <<: [*a, *b]");
      }
      open.merges.emplace_back(place, value);
      return;
    }
    const auto& entries = open.node->entries;
    const auto first = std::find_if(entries.begin(), entries.end(),
                                    [key](const YamlEntry& e) { return e.key == key->text; });
    if (first != entries.end()) {
      fault(place, "\"" + key->text + "\" stands twice in one map, first in line " +
                       std::to_string(first->place.line) + ", again in line " +
                       std::to_string(place.line) + "; remove one");
      return;
    }
    open.node->entries.push_back({key->text, place, value});
  }

  // What the map says itself comes first, then the merged maps in their order.
  void merge(YamlNode* into, YamlPlace place, const YamlNode* from) {
    if (from->kind == YamlKind::broken) return;
    if (from->kind == YamlKind::list) {
      for (const YamlNode* item : from->items) {
        if (item->kind == YamlKind::map) {
          merge(into, place, item);
        } else if (item->kind != YamlKind::broken) {
          fault(place, "\"<<\" takes a map or a list of maps");
        }
      }
      return;
    }
    if (from->kind != YamlKind::map) {
      fault(place, "\"<<\" takes a map or a list of maps");
      return;
    }
    for (const YamlEntry& entry : from->entries) {
      if (into->find(entry.key) == nullptr) into->entries.push_back(entry);
    }
  }

  YamlTree& tree_;
  const YamlText& text_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, YamlNode*> anchors_;
  std::size_t total_ = 0;
  bool unusable_ = false;
};

// Takes a further document only to find out whether there is one.
class Sink : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { start = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  YAML::Mark start;
};

}  // namespace

YamlNode* YamlNode::find(std::string_view key) const {
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [key](const YamlEntry& e) { return e.key == key; });
  return entry == entries.end() ? nullptr : entry->value;
}

YamlNode* YamlTree::add(YamlKind kind, YamlPlace place) {
  YamlNode& node = nodes.emplace_back();
  node.kind = kind;
  node.place = place;
  return &node;
}

YamlTree read_yaml(std::string_view raw) {
  YamlTree tree;
  const YamlText text(raw);
  if (auto fault = text.unreadable()) {
    tree.faults.push_back(*std::move(fault));
    return tree;
  }
  Builder builder(tree, text);
  Sink sink;
  try {
    std::istringstream in{std::string(text.text())};
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) return tree;
    if (parser.HandleNextDocument(sink)) {
      tree.faults.push_back({text.place(sink.start.line, sink.start.column),
                             "a second document begins here; a file holds one pipeline"});
    }
  } catch (const YAML::Exception& e) {
    tree.root = nullptr;
    tree.faults.push_back(text.syntax_fault(e.mark.line, e.mark.column, e.msg));
  }
  if (builder.unusable()) tree.root = nullptr;
  return tree;
}

}  // namespace flow
