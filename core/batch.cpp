#include "core/batch.h"

#include <algorithm>

namespace flow {

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::decode: return "decode";
    case Stage::transform: return "transform";
    case Stage::cast: return "cast";
    case Stage::target: return "target";
  }
  return "target";
}

void Arena::next_block(std::size_t bytes) {
  const std::size_t want = std::max(block_bytes, bytes + padding);
  // A block too small for this piece is skipped until the next clear().
  while (next_ < blocks_.size() && blocks_[next_].size < want) ++next_;
  if (next_ == blocks_.size()) blocks_.push_back({std::make_unique<char[]>(want), want});
  at_ = blocks_[next_].data.get();
  left_ = blocks_[next_].size;
  ++next_;
}

void Arena::clear() {
  // Large single pieces are given back, so that one huge record does not keep its memory for ever.
  std::erase_if(blocks_, [](const Block& b) { return b.size > block_bytes; });
  next_ = 0;
  at_ = nullptr;
  left_ = 0;
  used_ = 0;
}

void Batch::clear() {
  arena.clear();
  records.clear();
  headers.clear();
  spans.clear();
  for (RowSet& set : rows) set.clear();
  failures.clear();
  stop.reset();
  std::fill(filtered.begin(), filtered.end(), 0U);
  bytes = 0;
}

std::uint32_t Batch::span_of(const PartitionId& partition, Position from) {
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].partition == partition) return static_cast<std::uint32_t>(i);
  }
  spans.push_back({partition, from, from, {}});
  return static_cast<std::uint32_t>(spans.size() - 1);
}

namespace {

constexpr std::uint32_t left_out = ~std::uint32_t{0};

// Keeps the rows whose record stays; renumbers them by `moved` (left_out = the record is gone).
void keep_rows(RowSet& set, const std::vector<std::uint32_t>& moved) {
  std::vector<std::uint32_t> row_moved(set.rows(), left_out);
  std::size_t kept = 0;
  for (std::size_t r = 0; r < set.rows(); ++r) {
    const std::uint32_t record = moved[set.record[r]];
    if (record == left_out) continue;
    std::copy_n(set.cells.begin() + static_cast<std::ptrdiff_t>(r * set.width), set.width,
                set.cells.begin() + static_cast<std::ptrdiff_t>(kept * set.width));
    set.record[kept] = record;
    set.op[kept] = set.op[r];
    if (!set.done.empty()) set.done[kept] = set.done[r];
    row_moved[r] = static_cast<std::uint32_t>(kept++);
  }
  set.cells.resize(kept * set.width);
  set.record.resize(kept);
  set.op.resize(kept);
  if (!set.done.empty()) set.done.resize(kept);
  std::size_t out = 0;
  for (const std::uint32_t r : set.order) {
    if (row_moved[r] != left_out) set.order[out++] = row_moved[r];
  }
  set.order.resize(out);
}

void keep_failures(std::vector<RecordFailure>& failures, const std::vector<std::uint32_t>& moved) {
  std::erase_if(failures, [&](RecordFailure& f) {
    f.record = moved[f.record];
    return f.record == left_out;
  });
}

// Per target every record is a row, a failure or filtered; the last is what is left.
void recount_filtered(Batch& batch) {
  for (std::size_t t = 0; t < batch.filtered.size(); ++t) {
    const auto failed = std::count_if(batch.failures.begin(), batch.failures.end(),
                                      [&](const RecordFailure& f) { return f.target == t; });
    batch.filtered[t] = static_cast<std::uint32_t>(batch.records.size() - batch.rows[t].rows() -
                                                   static_cast<std::size_t>(failed));
  }
}

}  // namespace

void Batch::abandon(const std::vector<char>& gone) {
  if (std::none_of(gone.begin(), gone.end(), [](char g) { return g != 0; })) return;
  std::vector<std::uint32_t> span_moved(spans.size(), left_out);
  std::size_t spans_kept = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (gone[i] != 0) continue;
    if (spans_kept != i) spans[spans_kept] = std::move(spans[i]);
    span_moved[i] = static_cast<std::uint32_t>(spans_kept++);
  }
  spans.resize(spans_kept);
  std::vector<std::uint32_t> moved(records.size(), left_out);
  std::size_t kept = 0;
  bytes = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::uint32_t span = span_moved[records[i].span];
    if (span == left_out) continue;
    records[kept] = records[i];
    records[kept].span = span;
    bytes += records[kept].value.size() + records[kept].key.size();
    moved[i] = static_cast<std::uint32_t>(kept++);
  }
  records.resize(kept);
  for (RowSet& set : rows) keep_rows(set, moved);
  keep_failures(failures, moved);
  recount_filtered(*this);
}

void Batch::truncate(std::size_t count) {
  if (count >= records.size()) return;
  std::vector<char> seen(spans.size(), 0);
  for (std::size_t i = count; i < records.size(); ++i) {
    Span& span = spans[records[i].span];
    if (seen[records[i].span] == 0) span.next = position_at(records[i].offset);
    seen[records[i].span] = 1;
  }
  std::vector<std::uint32_t> moved(records.size(), left_out);
  for (std::size_t i = 0; i < count; ++i) moved[i] = static_cast<std::uint32_t>(i);
  records.resize(count);
  for (RowSet& set : rows) keep_rows(set, moved);
  keep_failures(failures, moved);
  recount_filtered(*this);
}

void Batch::set_aside(std::vector<RecordFailure> refused) {
  if (refused.empty()) return;
  std::vector<std::uint32_t> moved(records.size());
  for (std::uint32_t i = 0; i < records.size(); ++i) moved[i] = i;
  for (const RecordFailure& f : refused) moved[f.record] = left_out;
  keep_rows(rows[refused.front().target], moved);
  for (RecordFailure& f : refused) failures.push_back(std::move(f));
}

std::string Batch::where(std::uint32_t record) const {
  const Record& r = records[record];
  const PartitionId& p = spans[r.span].partition;
  if (r.line != 0) return p.topic + ":" + std::to_string(r.line);
  return p.text() + "@" + std::to_string(r.offset.value);
}

}  // namespace flow
