#include "cli/schema.h"

#include <nlohmann/json.hpp>

#include "core/settings.h"

namespace flow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* reference_pattern = "\\$\\{";

// What is filled in by ${...} is text in the file, whatever it becomes.
Json or_reference(Json schema) {
  return {{"anyOf",
           Json::array({std::move(schema), {{"type", "string"}, {"pattern", reference_pattern}}})}};
}

Json text_schema() { return {{"type", "string"}, {"minLength", 1}}; }

Json list_schema() {
  return {{"type", "array"}, {"items", text_schema()}, {"minItems", 1}, {"uniqueItems", true}};
}

Json choice_schema(const Setting& setting) {
  Json words = Json::array();
  for (const std::string_view word : split_words(setting.choices)) words.push_back(word);
  return {{"enum", std::move(words)}};
}

Json section_schema(std::string_view pattern);

Json column_schema() {
  const Json scalar{{"type", Json::array({"string", "number", "boolean"})}};
  return {{"anyOf", Json::array({scalar, section_schema("columns.*")})}};
}

Json value_schema(const Setting& setting) {
  switch (setting.type) {
    case SettingType::section: return section_schema(setting.path);
    case SettingType::list: {
      Json out{{"type", "array"}, {"items", section_schema(std::string(setting.path) + "[]")}};
      if (setting.need == Need::required) out["minItems"] = 1;
      return out;
    }
    case SettingType::named: return {{"type", "object"}, {"additionalProperties", column_schema()}};
    case SettingType::properties:
      return {{"type", "object"},
              {"additionalProperties", {{"type", Json::array({"string", "number", "boolean"})}}}};
    case SettingType::text:
    case SettingType::sql:
    case SettingType::character:
    case SettingType::column_type: return text_schema();
    case SettingType::text_list: return list_schema();
    case SettingType::text_or_list: return {{"anyOf", Json::array({text_schema(), list_schema()})}};
    case SettingType::choice: return or_reference(choice_schema(setting));
    case SettingType::boolean: return or_reference({{"type", "boolean"}});
    case SettingType::integer:
      return or_reference(
          {{"type", "integer"}, {"minimum", setting.min}, {"maximum", setting.max}});
    case SettingType::real:
      return or_reference({{"type", "number"}, {"minimum", setting.min}, {"maximum", setting.max}});
    case SettingType::duration:
      return or_reference({{"type", "string"},
                           {"pattern", "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"}});
    case SettingType::size:
      return or_reference({{"type", Json::array({"integer", "string"})},
                           {"pattern", "^[0-9]+(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?$"}});
    case SettingType::percent: return {{"type", "string"}, {"pattern", "^[0-9]+%$"}};
    case SettingType::field:
    case SettingType::default_value:
      return {{"type", Json::array({"string", "number", "boolean"})}};
  }
  return Json::object();
}

Json described(const Setting& setting) {
  Json out = value_schema(setting);
  out["description"] = setting.doc;
  if (!setting.fallback.empty()) out["default"] = setting.fallback;
  return out;
}

// The map of settings below `pattern`; `kind`: only those that belong to it, empty: all.
Json map_schema(std::string_view pattern, std::string_view kind) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Setting* setting : settings_below(pattern)) {
    if (!kind.empty() && !setting->belongs_to(kind)) continue;
    Json schema = described(*setting);
    if (!kind.empty() && setting->path == kind_setting_of(pattern)) {
      schema = {{"const", kind}, {"description", setting->doc}};
    }
    properties[std::string(setting->name())] = std::move(schema);
    if (setting->need == Need::required) required.push_back(setting->name());
  }
  Json out{
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

// A map whose settings depend on its kind: one schema for each.
Json section_schema(std::string_view pattern) {
  const std::string_view decides = kind_setting_of(pattern);
  if (decides.empty() || pattern.empty()) return map_schema(pattern, "");
  Json kinds = Json::array();
  for (const std::string_view kind : split_words(find_setting(decides)->choices)) {
    kinds.push_back(map_schema(pattern, kind));
  }
  return {{"oneOf", std::move(kinds)}};
}

}  // namespace

std::string pipeline_schema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "flow pipeline"}};
  schema.update(map_schema("", ""));
  schema["patternProperties"] = {{"^x-", Json::object()}};
  return schema.dump(2);
}

}  // namespace flow
