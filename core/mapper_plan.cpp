#include <algorithm>

#include "core/mapper.h"
#include "core/suggest.h"

namespace flow {

namespace {

Failure setup(std::string where, std::string what, std::string hint) {
  return {.cls = FailureClass::setup,
          .where = std::move(where),
          .what = std::move(what),
          .hint = std::move(hint)};
}

// A hint for people: the nearest right name, or nothing.
std::string nearest_hint(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = nearest_name(name, {names.begin(), names.end()});
  return near.empty() ? "" : "did you mean " + near + "?";
}

FieldSource path_field(const std::string& name) {
  FieldSource f;
  f.path = {name};
  f.text = "$." + name;
  return f;
}

std::size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

Columns TargetPlan::columns() const {
  Columns out;
  for (const Caster& c : casts) out.push_back(c.column());
  return out;
}

Result<Mapper> Mapper::make(const Pipeline& pipeline, const std::vector<TargetSchema>& schemas,
                            std::unique_ptr<Decoder> decoder,
                            std::vector<std::unique_ptr<RowTransform>> transforms) {
  Mapper m(pipeline);
  m.decoder_ = std::move(decoder);
  m.transforms_ = std::move(transforms);
  if (auto r = m.plan_fields(schemas); !r) return r.failure();
  for (std::size_t t = 0; t < schemas.size(); ++t) {
    if (auto r = m.plan_target(t, schemas[t]); !r) return r.failure();
  }
  std::vector<FieldSource> paths = m.fields_;
  if (auto r = m.decoder_->bind(paths); !r) return r.failure();
  m.decode_ = pipeline.format != FormatKind::raw;
  m.cells_.resize(m.fields_.size());
  return m;
}

// The natural cells: what the pipeline names, else what the SQL reads, else what the tables hold.
Result<void> Mapper::plan_fields(const std::vector<TargetSchema>& schemas) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    names.push_back(name);
    const auto spec = std::find_if(pipeline_->columns.begin(), pipeline_->columns.end(),
                                   [&](const ColumnSpec& c) { return c.name == name; });
    const bool found = spec != pipeline_->columns.end();
    field_specs_.push_back(found ? &*spec : nullptr);
    fields_.push_back(found ? spec->from : path_field(name));
    // "$" of a JSON record is its value as JSON, not as text.
    FieldSource& field = fields_.back();
    if (field.from == FieldSource::From::value && pipeline_->format == FormatKind::json) {
      field.from = FieldSource::From::path;
    }
  };
  if (!transforms_.empty()) {
    for (const std::string& name : transforms_.front()->inputs()) add(name);
    for (std::size_t k = 1; k < transforms_.size(); ++k) {
      for (const std::string& name : transforms_[k]->inputs()) {
        const auto& given = transforms_[k - 1]->outputs();
        if (index_of(given, name) == given.size()) {
          return setup("transform[" + std::to_string(k) + "]",
                       "no column " + name + " comes from the step before",
                       nearest_hint(name, given));
        }
      }
    }
    names_ = transforms_.back()->outputs();
    return {};
  }
  if (!pipeline_->columns.empty()) {
    for (const ColumnSpec& c : pipeline_->columns) add(c.name);
  } else {
    for (const TargetSchema& s : schemas) {
      if (!s.fixed) continue;
      for (const Column& c : s.columns) {
        if (!c.generated) add(c.name);
      }
    }
  }
  for (std::size_t t = 0; t < schemas.size(); ++t) {
    const auto& key = pipeline_->targets[t].message_key;
    if (key && key->from == FieldSource::From::path && schemas[t].passthrough && names.empty()) {
      names.push_back(key->text);
      field_specs_.push_back(nullptr);
      fields_.push_back(*key);
    }
  }
  names_ = std::move(names);
  return {};
}

namespace {

// How the pipeline says that a column is cast; the type counts where the store defines none.
CastRule rule_for(const Pipeline& pipeline, const std::string& name) {
  CastRule rule;
  rule.column.name = name;
  for (const ColumnSpec& c : pipeline.columns) {
    if (c.name != name) continue;
    rule.unit = c.unit;
    rule.zone = c.zone;
    rule.column.type = c.type.value_or(Type::any);
    rule.column.limits = c.limits;
  }
  return rule;
}

void add_column(TargetPlan& plan, const TargetSchema& schema, std::size_t natural, CastRule rule) {
  const bool key =
      std::find(schema.key.begin(), schema.key.end(), rule.column.name) != schema.key.end();
  if (key) plan.key.push_back(plan.casts.size());
  plan.required_not_null.push_back(!rule.column.nullable || key ? 1 : 0);
  plan.natural.push_back(natural);
  plan.casts.emplace_back(std::move(rule));
}

}  // namespace

// The pipeline names the columns: each must be one of the table's, and together they fill it.
Result<void> Mapper::plan_named(TargetPlan& plan, const TargetSchema& schema) const {
  const std::string where = "target " + plan.label;
  std::vector<std::string> have;
  for (const Column& c : schema.columns) have.push_back(c.name);
  for (std::size_t n = 0; n < names_.size(); ++n) {
    const std::size_t c = index_of(have, names_[n]);
    if (c == have.size()) {
      return setup(where, "the table has no column " + names_[n], nearest_hint(names_[n], have));
    }
    if (schema.columns[c].generated) {
      return setup(where, "column " + names_[n] + " is computed by the table",
                   "leave it out of columns");
    }
    CastRule rule = rule_for(*pipeline_, names_[n]);
    rule.column = schema.columns[c];
    add_column(plan, schema, n, std::move(rule));
  }
  for (const Column& c : schema.columns) {
    const bool filled = index_of(names_, c.name) != names_.size();
    if (filled || c.nullable || c.has_default || c.generated) continue;
    return setup(where, "column " + c.name + " is NOT NULL without a default and nothing fills it",
                 "name it under columns");
  }
  return {};
}

Result<void> Mapper::plan_target(std::size_t t, const TargetSchema& schema) {
  const TargetSpec& spec = pipeline_->targets[t];
  const bool named = !pipeline_->columns.empty() || !transforms_.empty();
  const bool whole = schema.passthrough && !named;  // the records' own bytes
  TargetPlan plan;
  plan.label = spec.label;
  plan.mode = spec.mode;
  plan.on_tombstone = spec.on_tombstone;
  plan.tombstones_pass = spec.kind == "kafka" || whole;
  if (schema.fixed && named) {
    if (auto r = plan_named(plan, schema); !r) return r;
  } else if (schema.fixed) {
    for (const Column& c : schema.columns) {
      if (c.generated) continue;
      CastRule rule;
      rule.column = c;
      add_column(plan, schema, index_of(names_, c.name), std::move(rule));
    }
  } else {
    for (std::size_t n = 0; n < names_.size(); ++n) {
      const bool message_key = spec.message_key && spec.message_key->text == names_[n];
      if (!whole || message_key) add_column(plan, schema, n, rule_for(*pipeline_, names_[n]));
    }
  }
  for (const std::string& k : schema.key) {
    const bool found = std::any_of(plan.casts.begin(), plan.casts.end(),
                                   [&](const Caster& c) { return c.column().name == k; });
    if (found) continue;
    return setup("target " + spec.label, "key column " + k + " is not among the columns",
                 nearest_hint(k, names_));
  }
  plans_.push_back(std::move(plan));
  return {};
}

}  // namespace flow
