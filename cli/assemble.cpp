#include "cli/assemble.h"

#include <chrono>
#include <thread>

#include "cli/print_target.h"
#include "connectors/registry.h"
#include "core/retry.h"

namespace flow {

namespace {

// Sleeps in short pieces so that a stop is noticed. False: stopped.
bool wait_for_retry(Millis wait, const StopSignal& stop) {
  const auto until = Monotonic::now() + wait;
  while (Monotonic::now() < until) {
    if (stop.requested()) return false;
    std::this_thread::sleep_for(
        std::min<Monotonic::duration>(Millis{50}, until - Monotonic::now()));
  }
  return !stop.requested();
}

template <class F>
auto with_retry(const Context& context, const StopSignal& stop, const std::string& step, F attempt)
    -> decltype(attempt()) {
  Retry retry(context.pipeline->retry, *context.log, step);
  for (;;) {
    auto result = attempt();
    if (result) {
      retry.succeeded();
      return result;
    }
    if (!result.failure().retryable()) return result;
    const auto wait = retry.failed(result.failure());
    if (!wait || !wait_for_retry(*wait, stop)) return result;
  }
}

// A dry run creates nothing: a table that is still to be created takes the pipeline's own columns.
Result<TargetSchema> prepare_dry(Target& target, const Pipeline& pipeline, bool would_create) {
  auto schema = target.prepare(pipeline.columns);
  if (schema || !would_create || schema.failure().cls != FailureClass::setup) return schema;
  TargetSchema planned;
  planned.key = target.spec().key;
  return planned;
}

}  // namespace

std::vector<Target*> Assembly::target_pointers() const {
  std::vector<Target*> out;
  for (const auto& t : targets) out.push_back(t.get());
  return out;
}

void Assembly::close() {
  for (const auto& t : targets) t->close();
}

Result<Assembly> assemble(const Context& context, StopSignal& stop,
                          std::optional<SourceParts> given) {
  const Pipeline& pipeline = *context.pipeline;
  Assembly a;
  if (!given && pipeline.source.kind == "file" &&
      !context.follow) {  // cheap: before anything is created
    if (auto there = check_source(context); !there) return std::move(there).failure();
  }
  std::vector<TargetSchema> schemas;
  for (const TargetSpec& spec : pipeline.targets) {
    TargetSpec used = spec;
    used.create_table = spec.create_table && !context.dry_run;
    auto target = make_target(context, used);
    if (!target) return std::move(target).failure();
    const bool local = context.dry_run && (spec.kind == "file" || spec.kind == "stdout");
    auto schema = with_retry(context, stop, "prepare " + spec.label, [&]() -> Result<TargetSchema> {
      if (local)
        return TargetSchema{
            .passthrough = true, .fixed = false, .columns = {}, .key = {}, .notes = {}};
      if (context.dry_run) return prepare_dry(**target, pipeline, spec.create_table);
      return (*target)->prepare(pipeline.columns);
    });
    if (!schema) return std::move(schema).failure();
    for (const std::string& note : schema->notes) a.notes.push_back(note);
    schemas.push_back(std::move(schema).value());
    if (context.dry_run) {
      (*target)->close();
      a.targets.push_back(make_print_target(spec, pipeline.targets.size() > 1));
    } else {
      a.targets.push_back(std::move(target).value());
    }
  }
  std::vector<std::unique_ptr<RowTransform>> transforms;
  for (const TransformSpec& spec : pipeline.transform) {
    auto transform = make_transform(spec);
    if (!transform) return std::move(transform).failure();
    transforms.push_back(std::move(transform).value());
  }
  auto mapper = Mapper::make(pipeline, schemas, make_decoder(pipeline), std::move(transforms));
  if (!mapper) return std::move(mapper).failure();
  a.mapper.emplace(std::move(mapper).value());
  if (given) {
    a.source = std::move(*given);
  } else {
    auto source = make_source(context);
    if (!source) return std::move(source).failure();
    a.source = std::move(source).value();
  }
  if (!context.dry_run) {
    auto marks = a.source.positions->load_marks();
    if (!marks) return std::move(marks).failure();
    a.marks = std::move(marks).value();
  }
  for (std::size_t t = 0; t < a.targets.size(); ++t) {
    std::optional<TargetMark> mark;
    for (const TargetMark& m : a.marks) {
      if (m.target == pipeline.targets[t].label) mark = m;
    }
    const Columns plan = a.mapper->plans()[t].columns();
    auto started = with_retry(context, stop, "start " + pipeline.targets[t].label,
                              [&] { return a.targets[t]->start(plan, mark); });
    if (!started) return std::move(started).failure();
  }
  return a;
}

}  // namespace flow
