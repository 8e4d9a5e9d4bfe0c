#pragma once
// A YAML document as a tree with places. Reads YAML 1.2 from yaml-cpp's events: duplicate keys are
// faults that name both lines, merge keys (<<) are resolved, aliases are shared and bounded, one
// document only.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// Where something stands. line, column: from 1, column in characters; 0: the file as a whole.
// set: from 1, the --set that gave it; 0: the file did.
struct YamlPlace {
  int line = 0;
  int column = 0;
  int set = 0;
};

struct YamlFault {
  YamlPlace place;
  std::string message;
};

struct YamlNode;

enum class YamlKind : std::uint8_t { null, scalar, list, map, broken };

struct YamlEntry {
  std::string key;
  YamlPlace place;  // of the key
  YamlNode* value = nullptr;
};

// Shape: by kind: scalar has text; list has items; map has entries, merged ones last.
// broken: a fault was already reported here. loose: from the command line, typed as the setting
// wants. quoted: text whatever it looks like ('..', "..", |, >,
// !!str). Owner: the tree.
struct YamlNode {
  YamlKind kind = YamlKind::null;
  bool quoted = false;
  bool loose = false;
  bool open = false;  // being read
  YamlPlace place;
  std::string text;
  std::vector<YamlNode*> items;
  std::vector<YamlEntry> entries;
  std::size_t weight = 1;  // values in it with every alias written out

  YamlNode* find(std::string_view key) const;
};

struct YamlTree {
  std::deque<YamlNode> nodes;
  YamlNode* root =
      nullptr;  // null: an empty file, or one that cannot be read (then there are faults)
  std::vector<YamlFault> faults;

  YamlNode* add(YamlKind kind, YamlPlace place);
};

// Errors: in `faults`; the tree holds what could be read all the same. Bounds: 1 MiB of text,
// 100000 values.
YamlTree read_yaml(std::string_view text);

}  // namespace flow
