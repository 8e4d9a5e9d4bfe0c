#include "cli/settings_reference.h"

#include "core/settings.h"
#include "core/units.h"

namespace flow {
namespace {

constexpr std::size_t line_about = 64;

// Text as roff shows it: no escape, no request at the start of a line, no long line.
std::string roff(std::string_view text) {
  std::string out;
  std::size_t line = 0;
  for (const char c : text) {
    if (line++ == 0 && (c == '.' || c == '\'')) out += "\\&";
    if (c == ' ' && line > line_about) {
      out += '\n';
      line = 0;
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string range_of(const Setting& setting) {
  const auto text = [&setting](std::int64_t n) {
    if (setting.type == SettingType::duration) return format_duration(Millis(n));
    if (setting.type == SettingType::size) return format_size(n);
    if (setting.type == SettingType::percent) return std::to_string(n) + "%";
    return std::to_string(n);
  };
  return text(setting.min) + " to " + text(setting.max);
}

std::string default_of(const Setting& setting) {
  if (setting.need == Need::required) return "Needed.";
  if (!setting.fallback.empty()) return "Default: " + std::string(setting.fallback) + ".";
  if (!setting.dynamic_default.empty())
    return "Default: " + std::string(setting.dynamic_default) + ".";
  return "Default: none.";
}

bool is_group(const Setting& setting) {
  return setting.type == SettingType::section || setting.type == SettingType::list ||
         setting.type == SettingType::named;
}

void append_setting(std::string& out, const Setting& setting) {
  out += ".TP\n.B " + roff(setting.path) + "\n" + roff(setting.doc) + "\n.br\n";
  std::string type(name_of(setting.type));
  if (setting.type == SettingType::choice) type = "one of " + words_or(setting.choices);
  if (setting.min != setting.max) type += ", " + range_of(setting);
  type[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(type[0])));
  std::string facts = type + ". " + default_of(setting);
  if (!setting.kinds.empty()) {
    const bool format = setting.parent() == "csv";
    facts += std::string(" For ") + (format ? "format " : "kind ") + words_or(setting.kinds) + ".";
  }
  if (setting.secrecy == Secrecy::url) facts += " A password in it is never shown.";
  facts += " Since " + std::string(setting.since) + ".";
  out += roff(facts) + "\n";
}

}  // namespace

std::string settings_reference_roff() {
  std::string out = ".SS The file\n";
  for (const Setting& setting : settings()) {
    if (!is_group(setting) && setting.parent().empty()) append_setting(out, setting);
  }
  for (const Setting& group : settings()) {
    const auto below = settings_below(group.path);
    const bool has_values =
        !below.empty() && below.front()->name() != "[]" && below.front()->name() != "*";
    if (!is_group(group) || !has_values) continue;
    // The item rows of a list speak through the list itself.
    const bool item = group.name() == "[]" || group.name() == "*";
    const Setting& titled = item ? *find_setting(group.parent()) : group;
    out += ".SS " + roff(titled.path) + "\n" + roff(titled.doc) + "\n";
    for (const Setting* setting : below) {
      if (!is_group(*setting)) append_setting(out, *setting);
    }
  }
  return out;
}

}  // namespace flow
