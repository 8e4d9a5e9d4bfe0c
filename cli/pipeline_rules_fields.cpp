#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cli/pipeline_reader.h"
#include "connectors/registry.h"
#include "core/batch.h"
#include "core/cast.h"
#include "core/cast_zone.h"
#include "core/suggest.h"

namespace flow {
namespace {

using From = FieldSource::From;

bool is_time(Type type) { return type == Type::timestamp || type == Type::timestamptz; }

Value constant_value(const FieldSource& constant) {
  const std::string& text = constant.name;
  switch (constant.constant_type) {
    case Type::boolean: return Value::boolean(text == "true");
    case Type::int64: return Value::int64(std::strtoll(text.c_str(), nullptr, 10));
    case Type::decimal: return Value::text(text, Kind::decimal);
    default: return Value::text(text);
  }
}

class FieldRules {
 public:
  explicit FieldRules(PipelineReading& reading) : reading_(reading), pipeline_(reading.pipeline) {}

  void column(const ColumnSpec& column) {
    const std::string path = "columns." + column.name;
    const std::string from = reading_.has(path + ".from") ? path + ".from" : path;
    if (reading_.sound(from)) field(column.from, from);
    if (column.fallback) field(*column.fallback, path + ".default");
    constant(column, column.from, from);
    if (column.fallback) constant(column, *column.fallback, path + ".default");
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
    } else if (!Zone::named(column.zone)) {
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

  // A constant that the column's own type cannot hold.
  void constant(const ColumnSpec& column, const FieldSource& source, const std::string& path) {
    const bool typed = column.type && reading_.sound("columns." + column.name + ".type");
    if (!typed || source.from != From::constant || !reading_.sound(path)) return;
    CastRule rule{{}, column.unit, column.zone};
    rule.column.name = column.name;
    rule.column.type = *column.type;
    rule.column.limits = column.limits;
    Arena arena;
    Value value = constant_value(source);
    std::string reason;
    if (!Caster(std::move(rule)).cast(value, arena, reason)) fault(path, std::move(reason));
  }

  // The SQL, step by step; reading.outputs gets the columns of the last.
  void transforms() {
    std::vector<std::string> given;
    bool good = true;
    for (std::size_t i = 0; i < pipeline_.transform.size(); ++i) {
      const std::string path = "transform[" + std::to_string(i) + "].sql";
      const auto made = pipeline_.transform[i].sql.empty()
                            ? Result<std::unique_ptr<RowTransform>>(Failure{})
                            : make_transform(pipeline_.transform[i]);
      if (!made) {
        const Failure& failure = made.failure();
        if (!failure.what.empty()) {
          fault(path, failure.what + (failure.hint.empty() ? "" : "; " + failure.hint));
        }
        good = false;
        continue;
      }
      if (i > 0 && good) missing_inputs(*made.value(), given, path);
      given = made.value()->outputs();
    }
    if (!good) return;
    if (pipeline_.transform.empty()) {
      for (const ColumnSpec& column : pipeline_.columns) given.push_back(column.name);
    }
    reading_.outputs = std::move(given);
  }

  void missing_inputs(const RowTransform& step, const std::vector<std::string>& given,
                      const std::string& path) {
    const std::vector<std::string_view> names(given.begin(), given.end());
    for (const std::string& input : step.inputs()) {
      if (std::find(given.begin(), given.end(), input) != given.end()) continue;
      fault(path,
            "the step before gives no column " + shown_value(input) + did_you_mean(input, names));
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

  PipelineReading& reading_;
  const Pipeline& pipeline_;
};

}  // namespace

void check_field_rules(PipelineReading& reading) {
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
