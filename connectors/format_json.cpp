#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "connectors/format_json_keys.h"
#include "connectors/format_json_scan.h"
#include "connectors/registry.h"
#include "core/cast_text.h"

namespace flow {

namespace {

using json::Keys;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// A step of the asked paths: the cells that take the value here, and the steps below it.
struct Node {
  std::vector<std::uint32_t> cells;
  Keys keys;
  std::vector<Node> fields;          // by the number that `keys` gives
  std::vector<std::size_t> indexes;  // of the asked array elements
  std::vector<Node> elements;        // one for each of these

  Node& field(std::string_view name) {
    const std::uint32_t number = keys.want(name);
    if (fields.size() <= number) fields.resize(number + 1);
    return fields[number];
  }
  Node* element(std::size_t index) {
    const auto found = std::find(indexes.begin(), indexes.end(), index);
    return found == indexes.end() ? nullptr
                                  : &elements[static_cast<std::size_t>(found - indexes.begin())];
  }
  Node& add_element(std::size_t index) {
    if (Node* known = element(index)) return *known;
    indexes.push_back(index);
    return elements.emplace_back();
  }
};

std::optional<std::size_t> array_index(std::string_view step) {
  if (step.size() < 3 || step.front() != '[' || step.back() != ']') return std::nullopt;
  std::size_t index = 0;
  const char* const end = step.data() + step.size() - 1;
  const auto [at, error] = std::from_chars(step.data() + 1, end, index);
  if (error != std::errc() || at != end) return std::nullopt;
  return index;
}

class JsonDecoder final : public Decoder {
 public:
  Result<void> bind(const std::vector<FieldSource>& fields) override {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].from != FieldSource::From::path) continue;
      Node* node = &root_;
      for (const std::string& step : fields[i].path) {
        const auto index = array_index(step);
        node = index ? &node->add_element(*index) : &node->field(step);
      }
      node->cells.push_back(static_cast<std::uint32_t>(i));
      bound_.push_back(static_cast<std::uint32_t>(i));
    }
    return {};
  }

  bool decode(const Record& record, Arena& arena, Value* cells, Failure& failure) override {
    for (const std::uint32_t cell : bound_) cells[cell] = Value();
    std::string_view text = record.value;
    if (text.substr(0, byte_order_mark.size()) == byte_order_mark) {
      text.remove_prefix(byte_order_mark.size());
    }
    arena_ = &arena;
    cells_ = cells;
    if (scan_.start(text) && root()) return true;
    failure = Failure{};
    failure.cls = FailureClass::invalid;
    failure.code = "decode.json";
    failure.what = "the record is not the JSON that is wanted: " + scan_.problem();
    failure.hint = "look at the record, and at what wrote it";
    return false;
  }

 private:
  bool root() {
    const char c = scan_.peek();
    if (!root_.fields.empty() && c != '{') return scan_.fail("it is not an object");
    if (!root_.elements.empty() && c != '{' && c != '[') {
      return scan_.fail("it is neither an object nor an array");
    }
    // The outermost object is walked by name even when no column is asked for: its names must
    // differ.
    if (!(c == '{' ? bracket(root_, 0) : value(root_, 0))) return false;
    return scan_.at_end() || scan_.fail("there is something after its end");
  }

  bool value(Node& node, std::size_t depth) {
    const char c = scan_.peek();
    if (c == '{' || c == '[') {
      const bool walk = c == '{' ? !node.fields.empty() : !node.elements.empty();
      return walk ? bracket(node, depth) : whole(node, depth);
    }
    Value found;
    if (!scan_.take_scalar(*arena_, found)) return false;
    for (const std::uint32_t cell : node.cells) cells_[cell] = found;
    return true;
  }

  bool whole(Node& node, std::size_t depth) {
    const char* const first = scan_.position();
    if (!scan_.skip(depth)) return false;
    keep(node, first);
    return true;
  }

  // An object or array whose insides are asked for.
  bool bracket(Node& node, std::size_t depth) {
    if (depth >= json::depth_max) return scan_.fail("it is nested too deeply");
    const char* const first = scan_.position();
    if (!(scan_.peek() == '{' ? object(node, depth + 1) : array(node, depth + 1))) return false;
    keep(node, first);
    return true;
  }

  void keep(const Node& node, const char* first) {
    if (node.cells.empty()) return;
    const auto size = static_cast<std::size_t>(scan_.behind_bracket() - first);
    for (const std::uint32_t cell : node.cells) {
      cells_[cell] = Value::text({first, size}, Kind::json);
    }
  }

  bool object(Node& node, std::size_t depth) {
    node.keys.begin_object();
    scan_.advance();
    if (scan_.peek() == '}') {
      scan_.advance();
      return true;
    }
    while (true) {
      if (!member(node, depth)) return false;
      const char c = scan_.peek();
      if (c != ',' && c != '}') return no_comma();
      scan_.advance();
      if (c == ',') continue;
      const std::string_view twice = node.keys.end_object();
      return twice.data() == nullptr || duplicate(twice);
    }
  }

  bool member(Node& node, std::size_t depth) {
    std::string_view name;
    if (scan_.peek() != '"') return scan_.fail("a name is missing");
    if (!scan_.take_string(*arena_, name)) return false;
    if (scan_.peek() != ':') return scan_.fail("a colon is missing");
    scan_.advance();
    std::uint32_t number = 0;
    switch (node.keys.look_up(name, number)) {
      case Keys::Answer::wanted: return value(node.fields[number], depth);
      case Keys::Answer::other: return scan_.skip(depth);
      case Keys::Answer::duplicate: break;
    }
    return duplicate(name);
  }

  bool no_comma() {
    return scan_.fail(scan_.at_end() ? "it ends too early"
                                     : "a comma or a closing bracket is missing");
  }

  bool duplicate(std::string_view name) {
    return scan_.fail("an object has the name " + shown(name) + " twice");
  }

  bool array(Node& node, std::size_t depth) {
    scan_.advance();
    if (scan_.peek() == ']') {
      scan_.advance();
      return true;
    }
    for (std::size_t index = 0;; ++index) {
      Node* const asked = node.element(index);
      if (!(asked != nullptr ? value(*asked, depth) : scan_.skip(depth))) return false;
      const char c = scan_.peek();
      if (c != ',' && c != ']') return no_comma();
      scan_.advance();
      if (c == ']') return true;
    }
  }

  json::Scan scan_;
  Node root_;
  std::vector<std::uint32_t> bound_;
  Arena* arena_ = nullptr;
  Value* cells_ = nullptr;
};

}  // namespace

std::unique_ptr<Decoder> make_json_decoder() { return std::make_unique<JsonDecoder>(); }

}  // namespace flow
