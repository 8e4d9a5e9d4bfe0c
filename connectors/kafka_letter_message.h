#pragma once
// A dead letter as a message of a topic, and back. Key, value and headers are the record's own;
// what went wrong follows in headers of its own, all text:
//
//   flow.dlq.pipeline .version .target .topic .partition .offset .timestamp .stage .class .code
//   .error .attempts .first .last .run .operation_id, and .note on one without its value
//
// They are the last headers, from flow.dlq.pipeline on, so that a record which came out of a
// dead-letter topic keeps its own. The message's timestamp is when it was set aside: by the
// record's own, an old one would fall to the topic's retention at once.
#include <librdkafka/rdkafka.h>
#include <optional>
#include <string>
#include <vector>

#include "core/dead_letter.h"
#include "core/pipeline.h"

namespace flow::kafka {

// whole: with its value. notice: without, because the letter is kept elsewhere.
enum class LetterBody : std::uint8_t { whole, notice };

std::vector<LetterHeader> message_headers(const DeadLetter& letter, DlqSpec::Headers headers,
                                          LetterBody body);

// nullopt: not a letter of flow, or a notice. id: (partition + 1) * 2^40 + offset, so that it never
// meets an id of the state's table.
std::optional<DeadLetter> letter_of(const rd_kafka_message_t& message);
std::int64_t letter_id(std::int32_t partition, std::int64_t offset);
PartitionId letter_partition(const std::string& topic, std::int64_t id);
std::int64_t letter_offset(std::int64_t id);
inline constexpr std::int64_t first_topic_letter = std::int64_t{1} << 40;

}  // namespace flow::kafka
