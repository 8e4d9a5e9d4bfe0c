#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "cli/column_type.h"
#include "cli/pipeline_reader.h"
#include "cli/yaml_scalar.h"
#include "core/field_source.h"
#include "core/mask.h"
#include "core/suggest.h"
#include "core/units.h"

namespace flow {
namespace {

// A scalar with its ${...} filled in. loose: its text counts, however YAML would type it. kind:
// what YAML says.
struct Scalar {
  std::string text;
  bool loose = false;
  ScalarKind kind = ScalarKind::text;
};

// One value on its way: what it is for and where its faults go.
class Value {
 public:
  Value(const Setting& setting, const std::string& path, PipelineReading& reading,
        SettingValue& out)
      : setting_(setting), path_(path), reading_(reading), out_(out) {}

  bool read(const YamlNode& node) {
    switch (setting_.type) {
      case SettingType::properties: return read_properties(setting_, node, path_, reading_, out_);
      case SettingType::text_list: return texts(node);
      case SettingType::text_or_list:
        if (node.kind == YamlKind::list) return texts(node);
        return text_into(node, out_.text) && (out_.list = {out_.text}, true);
      case SettingType::text: return text_into(node, out_.text);
      default: break;
    }
    Scalar scalar;
    return take(node, path_, scalar) && typed(node, scalar);
  }

 private:
  bool fault(const YamlNode& node, const std::string& path, std::string message) {
    reading_.fault(node.place, path, std::move(message));
    return false;
  }
  bool fault(const YamlNode& node, std::string message) {
    return fault(node, path_, std::move(message));
  }
  bool fault(const YamlNode& node, const Failure& failure) {
    return fault(node, failure.what + "; " + failure.hint);
  }

  bool take(const YamlNode& node, const std::string& path, Scalar& out) {
    const std::string wanted(name_of(setting_.type));
    switch (node.kind) {
      case YamlKind::broken: return false;
      case YamlKind::null: return fault(node, path, "needs a value: " + wanted);
      case YamlKind::list: return fault(node, path, "must be " + wanted + ", not a list");
      case YamlKind::map: return fault(node, path, "must be " + wanted + ", not a map");
      case YamlKind::scalar: break;
    }
    const FillAs as = setting_.secrecy == Secrecy::url ? FillAs::url : FillAs::text;
    Filled filled = fill_in(node.text, as, reading_.sources);
    reading_.secrets.insert(reading_.secrets.end(), filled.secrets.begin(), filled.secrets.end());
    for (std::string& message : filled.faults) fault(node, path, std::move(message));
    if (!filled.faults.empty()) return false;
    out.text = std::move(filled.text);
    out.loose = node.loose || filled.filled;
    out.kind = node.quoted || out.loose ? ScalarKind::text : scalar_kind(out.text);
    return true;
  }

  bool typed(const YamlNode& node, const Scalar& scalar) {
    switch (setting_.type) {
      case SettingType::sql: return sql(node, scalar);
      case SettingType::character: return character(node, scalar);
      case SettingType::choice: return choice(node, scalar);
      case SettingType::boolean: return boolean(node, scalar);
      case SettingType::integer: return integer(node, scalar);
      case SettingType::real: return real(node, scalar);
      case SettingType::duration: return duration(node, scalar);
      case SettingType::size: return size(node, scalar);
      case SettingType::percent: return percent(node, scalar);
      case SettingType::field:
      case SettingType::default_value: return field(node, scalar);
      case SettingType::column_type: return column_type(node, scalar);
      default: return false;
    }
  }

  // ---- text
  // ----------------------------------------------------------------------------------------

  bool text_into(const YamlNode& node, std::string& out) { return text_into(node, path_, out); }

  bool text_into(const YamlNode& node, const std::string& path, std::string& out) {
    Scalar scalar;
    if (!take(node, path, scalar)) return false;
    if (scalar.kind == ScalarKind::boolean || scalar.kind == ScalarKind::integer ||
        scalar.kind == ScalarKind::real) {
      return fault(node, path,
                   scalar.text +
                       (scalar.kind == ScalarKind::boolean ? " is a boolean" : " is a number") +
                       " in YAML and text is needed; write \"" + scalar.text + "\" in quotes");
    }
    const std::string& text = scalar.text;
    const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    if (std::all_of(text.begin(), text.end(), space)) return fault(node, path, "must not be blank");
    if (setting_.secrecy == Secrecy::url) remember_secrets(text);
    if (space(text.front()) || space(text.back())) {
      return fault(node, path, "begins or ends with a space; remove it");
    }
    if (std::any_of(text.begin(), text.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
      return fault(node, path,
                   "holds a line break or another control character; write it on one line");
    }
    out = text;
    return true;
  }

  void remember_secrets(const std::string& url) {
    for (std::string& secret : secrets_of_url(url)) reading_.secrets.push_back(std::move(secret));
  }

  // The list keeps its length: an item at fault is empty, so that the rest can still be checked.
  bool texts(const YamlNode& node) {
    if (node.kind == YamlKind::broken) return false;
    if (node.kind != YamlKind::list) {
      const bool single = node.kind == YamlKind::scalar && !node.text.empty() &&
                          node.text.find_first_of(" $,") == std::string::npos;
      return fault(node,
                   node.kind == YamlKind::null
                       ? "needs a value: a list of texts"
                       : "must be a list of texts" + (single ? "; write [" + node.text + "]" : ""));
    }
    if (node.items.empty()) return fault(node, "must not be empty; name at least one");
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const std::string path = path_ + "[" + std::to_string(i) + "]";
      reading_.given[path] = node.items[i]->place;
      std::string text;
      if (text_into(*node.items[i], path, text) &&
          std::find(out_.list.begin(), out_.list.end(), text) != out_.list.end()) {
        fault(*node.items[i], path, shown_value(text) + " stands twice in the list; remove one");
      }
      out_.list.push_back(std::move(text));
    }
    return true;
  }

  bool sql(const YamlNode& node, const Scalar& scalar) {
    if (scalar.text.find_first_not_of(" \t\r\n") == std::string::npos) {
      return fault(node, "must not be blank");
    }
    out_.text = scalar.text;
    return true;
  }

  bool character(const YamlNode& node, const Scalar& scalar) {
    out_.text = scalar.text == "tab" ? "\t" : scalar.text;
    const char c = out_.text.size() == 1 ? out_.text[0] : '\0';
    const bool printable = c == '\t' || (c >= ' ' && c < 0x7F);
    if (printable && c != '"' && std::isalnum(static_cast<unsigned char>(c)) == 0) return true;
    return fault(node, "must be one character other than a letter, a digit or a quote, not " +
                           shown_value(scalar.text) + "; for a tab write tab");
  }

  // ---- words and numbers
  // ---------------------------------------------------------------------------

  bool choice(const YamlNode& node, const Scalar& scalar) {
    const auto choices = split_words(setting_.choices);
    const auto found = std::find(choices.begin(), choices.end(), scalar.text);
    if (found != choices.end()) {
      out_.text = scalar.text;
      out_.number = found - choices.begin();
      return true;
    }
    for (const std::string_view refused : split_words(setting_.refused)) {
      const std::size_t equals = refused.find('=');
      if (refused.substr(0, equals) == scalar.text) {
        return fault(node, std::string(refused.substr(equals + 1)));
      }
    }
    return fault(node, "must be " + words_or(setting_.choices) + ", not " +
                           shown_value(scalar.text) + did_you_mean(scalar.text, choices));
  }

  bool boolean(const YamlNode& node, const Scalar& scalar) {
    const bool typed = scalar.kind == ScalarKind::boolean ||
                       (scalar.loose && scalar_kind(scalar.text) == ScalarKind::boolean);
    if (typed) {
      out_.number = std::tolower(static_cast<unsigned char>(scalar.text.front())) == 't' ? 1 : 0;
      return true;
    }
    std::string low = scalar.text;
    std::transform(low.begin(), low.end(), low.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string meant;
    if (low == "yes" || low == "on" || low == "y" || low == "1" || low == "true") meant = "true";
    if (low == "no" || low == "off" || low == "n" || low == "0" || low == "false") meant = "false";
    return fault(node, "must be true or false, not " + shown_value(scalar.text) +
                           (meant.empty() ? "" : "; write " + meant + " without quotes"));
  }

  // Text in quotes, or with a leading zero, where a number is wanted.
  bool misleading(const YamlNode& node, const Scalar& scalar) {
    const std::size_t sign =
        !scalar.text.empty() && (scalar.text[0] == '-' || scalar.text[0] == '+') ? 1 : 0;
    const std::string digits = scalar.text.substr(sign);
    if (digits.size() > 1 && digits[0] == '0' &&
        std::isdigit(static_cast<unsigned char>(digits[1])) != 0) {
      fault(node, scalar.text +
                      " has a leading zero, which some read as octal; write it without, or " +
                      "with 0o where octal is meant");
      return true;
    }
    return false;
  }

  bool in_range(const YamlNode& node, std::int64_t number, std::string (*format)(std::int64_t)) {
    if (number >= setting_.min && number <= setting_.max) {
      out_.number = number;
      return true;
    }
    return fault(node, "must be between " + format(setting_.min) + " and " + format(setting_.max) +
                           ", not " + format(number));
  }

  bool integer(const YamlNode& node, const Scalar& scalar) {
    const ScalarKind kind = scalar.loose ? scalar_kind(scalar.text) : scalar.kind;
    if (node.quoted && !scalar.loose && scalar_kind(scalar.text) == ScalarKind::integer) {
      return fault(node, "must be a whole number, and in quotes it is text; write " + scalar.text +
                             " without quotes");
    }
    if (kind != ScalarKind::integer) return fault(node, why_not_integer(scalar.text));
    if (misleading(node, scalar)) return false;
    const auto number = scalar_integer(scalar.text);
    if (!number) return fault(node, scalar.text + " is too large");
    return in_range(node, *number, [](std::int64_t n) { return std::to_string(n); });
  }

  bool percent(const YamlNode& node, const Scalar& scalar) {
    const char* const end = scalar.text.data() + scalar.text.size();
    int number = 0;
    const auto parsed = std::from_chars(scalar.text.data(), end, number);
    if (parsed.ec != std::errc{} || std::string_view(parsed.ptr, end) != "%") {
      return fault(node, "must be a percentage such as 50%, not " + shown_value(scalar.text));
    }
    return in_range(node, number, [](std::int64_t n) { return std::to_string(n) + "%"; });
  }

  bool real(const YamlNode& node, const Scalar& scalar) {
    const ScalarKind kind = scalar.loose ? scalar_kind(scalar.text) : scalar.kind;
    double number = 0;
    const char* end = scalar.text.data() + scalar.text.size();
    const auto parsed = std::from_chars(scalar.text.data(), end, number);
    const bool numeric = kind == ScalarKind::integer || kind == ScalarKind::real;
    if (!numeric || parsed.ec != std::errc{} || parsed.ptr != end) {
      return fault(node, "must be a number, not " + shown_value(scalar.text) +
                             (node.quoted ? "; write it without quotes" : ""));
    }
    if (number < static_cast<double>(setting_.min) || number > static_cast<double>(setting_.max)) {
      return fault(node, "must be between " + std::to_string(setting_.min) + " and " +
                             std::to_string(setting_.max) + ", not " + scalar.text);
    }
    out_.real = number;
    return true;
  }

  bool duration(const YamlNode& node, const Scalar& scalar) {
    const auto parsed = parse_duration(scalar.text);
    if (!parsed) return fault(node, parsed.failure());
    return in_range(node, parsed.value().count(),
                    [](std::int64_t n) { return format_duration(Millis(n)); });
  }

  bool size(const YamlNode& node, const Scalar& scalar) {
    if (misleading(node, scalar)) return false;
    const auto parsed = parse_size(scalar.text);
    if (!parsed) return fault(node, parsed.failure());
    return in_range(node, parsed.value(), format_size);
  }

  // ---- fields and types
  // ----------------------------------------------------------------------------

  bool field(const YamlNode& node, const Scalar& scalar) {
    auto parsed = parse_field_source(scalar.text);
    const bool marked = !scalar.text.empty() &&
                        std::string_view("$@'").find(scalar.text[0]) != std::string_view::npos;
    if (setting_.type == SettingType::default_value && !marked && (!parsed || node.quoted)) {
      out_.field = constant_field(scalar.text, Type::text);
      return true;
    }
    if (!parsed) return fault(node, parsed.failure());
    out_.field = std::move(parsed).value();
    // "1" in quotes is text in YAML, and stays so.
    if (node.quoted && !marked) out_.field->constant_type = Type::text;
    return true;
  }

  bool column_type(const YamlNode& node, const Scalar& scalar) {
    const auto parsed = parse_column_type(scalar.text);
    if (!parsed) return fault(node, parsed.failure());
    out_.type = parsed.value().type;
    out_.limits = parsed.value().limits;
    return true;
  }

  const Setting& setting_;
  const std::string& path_;
  PipelineReading& reading_;
  SettingValue& out_;
};

}  // namespace

bool read_value(const Setting& setting, const YamlNode& node, const std::string& path,
                PipelineReading& reading, SettingValue& value) {
  return Value(setting, path, reading, value).read(node);
}

}  // namespace flow
