#pragma once
// Makes the connectors that a pipeline names.
#include <memory>
#include <vector>

#include "core/registry.h"

namespace flow {

Result<SourceParts> make_source(const Context& context);
Result<std::unique_ptr<Target>> make_target(const Context& context, const TargetSpec& spec);
std::unique_ptr<Decoder> make_decoder(const Pipeline& pipeline);
Result<std::unique_ptr<RowTransform>> make_transform(const TransformSpec& spec);
Result<std::vector<OffsetRow>> inspect_offsets(const Context& context,
                                               const std::string& topic_filter);
// Checks that need the source's system but read no record (flow check --connect).
Result<std::vector<std::string>> check_source(const Context& context);
// Where the pipeline keeps its dead letters: the table of the state, or its dead-letter topic.
// Without a pipeline: the table. The state outlives the store. Errors: a topic that cannot serve.
Result<std::unique_ptr<DeadLetterStore>> open_dead_letters(const Context& context,
                                                           StateStore& state);
// Finds a dead-letter topic at fault (flow check --connect); nothing to do for the table.
Result<void> check_dead_letters(const Context& context);

// Per connector (each in its own file), what registry.cpp lists:
Result<SourceParts> make_kafka_source(const Context& context);
Result<SourceParts> make_file_source(const Context& context);
Result<std::unique_ptr<Target>> make_postgres_target(const Context& context,
                                                     const TargetSpec& spec);
Result<std::unique_ptr<Target>> make_sqlite_target(const Context& context, const TargetSpec& spec);
Result<std::unique_ptr<Target>> make_kafka_target(const Context& context, const TargetSpec& spec);
Result<std::unique_ptr<Target>> make_file_target(const Context& context,
                                                 const TargetSpec& spec);  // and stdout
std::unique_ptr<Decoder> make_json_decoder();
std::unique_ptr<Decoder> make_csv_decoder(const CsvSpec& spec);
std::unique_ptr<Decoder> make_raw_decoder();
Result<std::unique_ptr<RowTransform>> make_sql_transform(const TransformSpec& spec);
Result<std::vector<OffsetRow>> inspect_kafka(const Context& context,
                                             const std::string& topic_filter);
Result<std::vector<OffsetRow>> inspect_files(const Context& context);
Result<std::vector<std::string>> check_kafka_source(const Context& context);
Result<std::vector<std::string>> check_file_source(const Context& context);

// Unknown librdkafka properties and values it refuses, for offline checks: empty text = fine.
std::string check_kafka_property(const std::string& name, const std::string& value);

}  // namespace flow
