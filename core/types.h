#pragma once
// The words of the position: offset, position, partition, span. DESIGN calls them by the same
// names.
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace flow {

// Names one record inside its partition. Units: Kafka offset, or the byte at which a file record
// starts.
struct Offset {
  std::int64_t value = 0;
  auto operator<=>(const Offset&) const = default;
};

// Where to resume: the next offset to read. Never mixes with Offset by accident.
struct Position {
  std::int64_t next = 0;
  auto operator<=>(const Position&) const = default;
};

// The only conversion: to resume after a Kafka record is to start at the next offset.
constexpr Position position_after(Offset offset) { return {offset.value + 1}; }
// To resume *at* a record (it is read again): used when a record stops the run.
constexpr Position position_at(Offset offset) { return {offset.value}; }

// One ordered stream of records. Kafka: topic and partition. File: path and 0.
struct PartitionId {
  std::string topic;
  std::int32_t partition = 0;
  auto operator<=>(const PartitionId&) const = default;
  std::string text() const { return topic + "/" + std::to_string(partition); }
};

// What a batch covers of one partition: [from, next). Offsets inside may skip (compaction,
// transaction markers, aborted records); `next` is the truth about where to resume. `identity`:
// what the position belongs to, opaque to the loop (file: device, inode, digest of the head).
struct Span {
  PartitionId partition;
  Position from;
  Position next;
  std::string identity;
};

using Spans = std::vector<Span>;

}  // namespace flow
