#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "cli/pipeline_reader.h"
#include "connectors/registry.h"

namespace flow {
namespace {

using From = FieldSource::From;

constexpr std::string_view zones_dir = "/usr/share/zoneinfo";

bool is_time(Type type) { return type == Type::timestamp || type == Type::timestamptz; }

// "+05:30"
bool is_offset(const std::string& zone) {
  const auto digit = [&zone](std::size_t i) {
    return std::isdigit(static_cast<unsigned char>(zone[i])) != 0;
  };
  return zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && digit(1) && digit(2) &&
         zone[3] == ':' && digit(4) && digit(5) && zone.substr(1, 2) <= "14" &&
         zone.substr(4) <= "59";
}

bool is_zone(const std::string& zone) {
  if (zone == "UTC" || is_offset(zone)) return true;
  const bool signs = std::all_of(zone.begin(), zone.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '-' ||
           c == '+';
  });
  if (!signs || zone.front() == '/') return false;
  std::error_code error;
  const std::filesystem::path dir(zones_dir);
  if (!std::filesystem::is_directory(dir, error)) return zone.find('/') != std::string::npos;
  return std::filesystem::is_regular_file(dir / zone, error);
}

class FieldRules {
 public:
  explicit FieldRules(Reading& reading) : reading_(reading), pipeline_(reading.pipeline) {}

  void column(const ColumnSpec& column) {
    const std::string path = "columns." + column.name;
    const std::string from = reading_.has(path + ".from") ? path + ".from" : path;
    if (reading_.sound(from)) field(column.from, from);
    if (column.fallback) field(*column.fallback, path + ".default");
    if (column.required && column.fallback) {
      fault(path + ".default", "a required column has no default; remove one of the two");
    }
    if (column.type && column.unit != TimeUnit::none && !is_time(*column.type)) {
      fault(path + ".unit", "a unit belongs to timestamp and timestamptz, not to " +
                                std::string(name_of(*column.type)));
    }
    if (column.zone.empty()) return;
    if (column.type && !is_time(*column.type)) {
      fault(path + ".zone", "a zone belongs to timestamp and timestamptz, not to " +
                                std::string(name_of(*column.type)));
    } else if (!is_zone(column.zone)) {
      fault(path + ".zone", shown_value(column.zone) +
                                " is not a zone; write UTC, +05:30 or a name such as Europe/Paris");
    }
  }

  // A field that the source or the format does not have.
  void field(const FieldSource& source, const std::string& path) {
    const bool file = pipeline_.source.kind == "file";
    if (file && (source.from == From::key || source.from == From::header)) {
      fault(path, shown_value(source.text) + ": a line of a file has no key and no headers");
    }
    if (file && source.from == From::timestamp) {
      fault(path, shown_value(source.text) + ": a line of a file has no timestamp of its own");
    }
    if (source.from != From::path) return;
    if (pipeline_.format == FormatKind::raw) {
      fault(path,
            shown_value(source.text) +
                ": format raw has no fields; $ is the whole value, and format json has fields");
    }
    const bool nested = source.path.size() > 1 || source.path.front().front() == '[';
    if (pipeline_.format == FormatKind::csv && nested) {
      fault(path,
            shown_value(source.text) + ": a CSV line has no fields inside fields; write $.column");
    }
    const auto& names = pipeline_.csv.columns;
    const bool named =
        pipeline_.format == FormatKind::csv && !pipeline_.csv.header && !names.empty() && !nested;
    if (named && std::find(names.begin(), names.end(), source.path.front()) == names.end()) {
      fault(path, shown_value(source.path.front()) + " is not in csv.columns");
    }
  }

  void transforms() {
    for (std::size_t i = 0; i < pipeline_.transform.size(); ++i) {
      const TransformSpec& spec = pipeline_.transform[i];
      if (spec.sql.empty()) continue;
      const auto made = make_transform(spec);
      if (made) continue;
      const Failure& failure = made.failure();
      fault("transform[" + std::to_string(i) + "].sql",
            failure.what + (failure.hint.empty() ? "" : "; " + failure.hint));
    }
  }

  void raw() {
    if (pipeline_.format != FormatKind::raw || !pipeline_.columns.empty() ||
        reading_.has("columns"))
      return;
    const bool rows =
        std::any_of(pipeline_.targets.begin(), pipeline_.targets.end(),
                    [](const TargetSpec& t) { return t.kind == "postgres" || t.kind == "sqlite"; });
    if (rows || !pipeline_.transform.empty()) {
      fault("format",
            "format raw has no fields to make columns from; name them, as in columns: {value: $}");
    }
  }

 private:
  void fault(const std::string& path, std::string message) {
    reading_.fault(reading_.place_of(path), path, std::move(message));
  }

  Reading& reading_;
  const Pipeline& pipeline_;
};

}  // namespace

void check_field_rules(Reading& reading) {
  FieldRules rules(reading);
  for (const ColumnSpec& column : reading.pipeline.columns) rules.column(column);
  for (std::size_t i = 0; i < reading.pipeline.targets.size(); ++i) {
    const auto& key = reading.pipeline.targets[i].message_key;
    if (key) rules.field(*key, "targets[" + std::to_string(i) + "].message_key");
  }
  rules.transforms();
  rules.raw();
}

}  // namespace flow
