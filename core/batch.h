#pragma once
// A batch: what is finished together. Owns the bytes of its records (arena), the records, the spans
// and, per target, the rows. Batches are reused: clear() keeps the memory. Units: bytes, records.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/types.h"
#include "core/value.h"

namespace flow {

// Bump allocator with stable addresses. Every copy is followed by at least `padding` readable bytes
// (what simdjson wants). Threads: one at a time.
class Arena {
 public:
  static constexpr std::size_t padding = 64;
  static constexpr std::size_t block_bytes = std::size_t{1} << 20;

  char* allocate(std::size_t bytes) {
    if (left_ < bytes + padding) next_block(bytes);
    char* p = at_;
    at_ += bytes;
    left_ -= bytes;
    used_ += bytes;
    return p;
  }
  // An empty view keeps a non-null pointer, so that empty and absent differ.
  std::string_view copy(std::string_view bytes) {
    char* p = allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(p, bytes.data(), bytes.size());
    return {p, bytes.size()};
  }
  std::size_t used() const { return used_; }
  void clear();

 private:
  void next_block(std::size_t bytes);
  struct Block {
    std::unique_ptr<char[]> data;
    std::size_t size = 0;
  };
  std::vector<Block> blocks_;
  std::size_t next_ = 0;
  char* at_ = nullptr;
  std::size_t left_ = 0;
  std::size_t used_ = 0;
};

struct Header {
  std::string_view name;
  std::string_view value;  // data() == nullptr: null
};

// One message, borrowing from its batch's arena. key, value: data() == nullptr means null (a
// tombstone), empty means empty. timestamp_ms: -1 when the source has none. span: index into
// Batch::spans.
struct Record {
  std::string_view value;
  std::string_view key;
  Offset offset;
  std::int64_t timestamp_ms = -1;
  std::uint32_t span = 0;
  std::uint32_t header_first = 0;
  std::uint32_t header_count = 0;
  std::uint32_t line = 0;  // file sources: line number in this run, 0 = unknown
};

// What a row does to a merge target. append targets see upsert only.
enum class RowOp : std::uint8_t { upsert, erase };

// The rows that one target gets from a batch. Row r: cells[r*width .. ), made from
// records[record[r]]. `order`: which rows to write, in which order. append: all, in record order.
// merge: the last row of each key, sorted by key. Rows left out of `order` were superseded inside
// the batch (they count as written). `done`: rows that an earlier pass of the same write made
// durable; empty: none.
struct RowSet {
  std::size_t width = 0;
  std::vector<Value> cells;
  std::vector<std::uint32_t> record;
  std::vector<RowOp> op;
  std::vector<std::uint32_t> order;
  std::vector<char> done;

  std::size_t rows() const { return record.size(); }
  const Value* row(std::size_t r) const { return cells.data() + r * width; }
  Value* add(std::uint32_t record_index, RowOp row_op = RowOp::upsert) {
    cells.resize(cells.size() + width);
    record.push_back(record_index);
    op.push_back(row_op);
    return cells.data() + cells.size() - width;
  }
  void drop_last() {
    cells.resize(cells.size() - width);
    record.pop_back();
    op.pop_back();
  }
  void clear() {
    cells.clear();
    record.clear();
    op.clear();
    order.clear();
    done.clear();
  }
};

// Where on its way a record failed. cast: required columns and tombstones included.
enum class Stage : std::uint8_t { decode, transform, cast, target };
std::string_view name_of(Stage stage);

// A record that cannot become a row of target `target` (index).
struct RecordFailure {
  std::uint32_t record = 0;
  std::uint32_t target = 0;
  Failure failure;
  Stage stage = Stage::target;
  std::int64_t attempts = 1;
};

struct Batch {
  Arena arena;
  std::vector<Record> records;
  std::vector<Header> headers;
  Spans spans;
  std::vector<RowSet> rows;             // one per target
  std::vector<RecordFailure> failures;  // one at most per record and target
  std::vector<std::uint32_t> filtered;  // per target: records that a transform left out
  std::optional<Failure> stop;          // the record after the last one ends the run with this
  std::size_t bytes = 0;                // payload bytes, what batch.bytes bounds

  void clear();
  // Index of the span of `partition`, created at `from` when new. Linear: a batch has few
  // partitions.
  std::uint32_t span_of(const PartitionId& partition, Position from);
  // Forgets everything of the spans for which `gone` is true: their records, rows and failures.
  void abandon(const std::vector<char>& gone);
  // Keeps records [0, count) only; each span then ends just before its first record left out.
  void truncate(std::size_t count);
  // Takes the rows of these records out of their target (the same for all), for these failures.
  void set_aside(std::vector<RecordFailure> refused);
  // "topic/partition@offset" (files: "path:line"), for messages.
  std::string where(std::uint32_t record) const;
};

}  // namespace flow
