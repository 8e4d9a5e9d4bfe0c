#include "connectors/registry.h"

#include <string>

#include "connectors/kafka_letters.h"

namespace flow {

namespace {

Failure unknown(std::string_view role, const std::string& kind) {
  return {.cls = FailureClass::setup,
          .where = std::string(role),
          .what = "no " + std::string(role) + " of kind " + kind,
          .hint = "see flow-pipeline(5) for the kinds"};
}

}  // namespace

Result<SourceParts> make_source(const Context& context) {
  const std::string& kind = context.pipeline->source.kind;
  if (kind == "kafka") return make_kafka_source(context);
  if (kind == "file") return make_file_source(context);
  return unknown("source", kind);
}

Result<std::unique_ptr<Target>> make_target(const Context& context, const TargetSpec& spec) {
  if (spec.kind == "postgres") return make_postgres_target(context, spec);
  if (spec.kind == "sqlite") return make_sqlite_target(context, spec);
  if (spec.kind == "kafka") return make_kafka_target(context, spec);
  if (spec.kind == "file" || spec.kind == "stdout") return make_file_target(context, spec);
  return unknown("target", spec.kind);
}

std::unique_ptr<Decoder> make_decoder(const Pipeline& pipeline) {
  switch (pipeline.format) {
    case FormatKind::json: return make_json_decoder();
    case FormatKind::csv: return make_csv_decoder(pipeline.csv);
    case FormatKind::raw: return make_raw_decoder();
  }
  return make_raw_decoder();
}

Result<std::unique_ptr<RowTransform>> make_transform(const TransformSpec& spec) {
  return make_sql_transform(spec);
}

Result<std::vector<OffsetRow>> inspect_offsets(const Context& context,
                                               const std::string& topic_filter) {
  if (context.pipeline->source.kind == "kafka") return inspect_kafka(context, topic_filter);
  return inspect_files(context);
}

Result<std::vector<std::string>> check_source(const Context& context) {
  if (context.pipeline->source.kind == "kafka") return check_kafka_source(context);
  return check_file_source(context);
}

Result<std::unique_ptr<DeadLetterStore>> open_dead_letters(const Context& context,
                                                           StateStore& state) {
  const bool topic = context.pipeline != nullptr && context.pipeline->dlq.in_topic();
  return topic ? make_kafka_letters(context, state) : state.dead_letters();
}

Result<void> check_dead_letters(const Context& context) {
  const Pipeline& pipeline = *context.pipeline;
  const bool topic = pipeline.on_error == OnError::dlq && pipeline.dlq.in_topic();
  return topic ? check_letter_topic(context) : Result<void>();
}

}  // namespace flow
