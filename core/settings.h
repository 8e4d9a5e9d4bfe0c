#pragma once
// The settings of a pipeline file: one table that the parser, `flow check`, the JSON Schema and the
// manual's reference are made from.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/pipeline.h"

namespace flow {

enum class SettingType : std::uint8_t {
  section,       // a map with settings of its own
  list,          // a list of sections (path ends with [])
  named,         // a map from names that the file chooses to sections (path ends with .*)
  text,          // one line, not blank
  sql,           // text of several lines
  character,     // one ASCII character, or the word tab
  text_list,     // at least one text, no two alike
  text_or_list,  // a text, or such a list
  choice,        // one of `choices`
  boolean,
  integer,
  real,
  duration,       // milliseconds; range in ms
  size,           // bytes
  percent,        // a whole number of percent: 50%
  field,          // $.path, @meta or a constant
  default_value,  // a constant, whose text needs no quotes, or a field
  column_type,    // bigint, numeric(10,2), ...
  properties,     // a map of librdkafka properties
};
std::string_view name_of(SettingType type);  // for people: "a duration", "a list of texts"

// url: may hold a password, which is shown as ***. Secret librdkafka properties are known by name
// (core/mask.h).
enum class Secrecy : std::uint8_t { open, url };
enum class Need : std::uint8_t { optional, required };

// A checked value on its way into the pipeline. Which part is set follows from the type.
struct SettingValue {
  std::string text;
  std::vector<std::string> list;
  std::int64_t number =
      0;  // integer, boolean (0, 1), size, percent, duration in ms, index of the choice
  double real = 0;
  std::optional<FieldSource> field;
  Type type = Type::any;
  Limits limits;
  std::map<std::string, std::string> properties;
};

// Where a value goes: the pipeline, and the list item or named section it belongs to.
struct SettingScope {
  Pipeline* pipeline = nullptr;
  TransformSpec* transform = nullptr;
  TargetSpec* target = nullptr;
  ColumnSpec* column = nullptr;
};

// One row. path: "source.batch.records", "targets[].table", "columns.*.type". kinds: the kinds (or
// formats) it belongs to, "|" between them; empty: all. fallback: the default as the file would
// write it; empty: none. choices: "|" between them. refused: choices of the design that this
// version turns down, "name=why". dynamic_default: how the default is found, for the manual, where
// it is no fixed text.
struct Setting {
  std::string_view path;
  SettingType type = SettingType::section;
  std::string_view kinds = "";
  Need need = Need::optional;
  std::string_view fallback = "";
  std::string_view dynamic_default = "";
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::string_view choices = "";
  std::string_view refused = "";
  Secrecy secrecy = Secrecy::open;
  std::string_view doc = "";
  void (*set)(const SettingScope&, const SettingValue&) = nullptr;
  std::string_view since = "0.1";

  std::string_view name() const;    // last step: "records", "[]", "*"
  std::string_view parent() const;  // "source.batch"; "" for the root
  bool belongs_to(std::string_view kind) const;
};

std::span<const Setting> settings();
const Setting* find_setting(std::string_view path);
std::vector<const Setting*> settings_below(
    std::string_view parent);  // direct children, in table order

// The setting that decides which rows apply below `parent`: "source.kind", "targets[].kind",
// "format" for csv; empty: all apply.
std::string_view kind_setting_of(std::string_view parent);

std::vector<std::string_view> split_words(std::string_view words);  // at "|"
std::string words_or(std::string_view words);                       // "a, b or c" of "a|b|c"

// librdkafka properties that flow sets itself. `instead`: the setting that does it, or why there is
// none.
enum class KafkaRole : std::uint8_t { source, target };
std::optional<std::string_view> owned_kafka_property(KafkaRole role, std::string_view name);

}  // namespace flow
