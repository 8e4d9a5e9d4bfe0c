#include "core/breaker.h"

namespace flow {

std::optional<Failure> Breaker::begin(const Batch& batch) {
  dead_.assign(batch.records.size(), 0);
  dead_count_ = 0;
  std::optional<Failure> past;
  for (const RecordFailure& f : batch.failures) {
    if (auto failure = dead(f.record); failure && !past) past = std::move(failure);
  }
  return past;
}

std::optional<Failure> Breaker::dead(std::uint32_t record) {
  if (dead_[record] != 0) return std::nullopt;
  dead_[record] = 1;
  ++dead_count_;
  const std::string count = std::to_string(dead_count_);
  const std::size_t all = dead_.size();
  if (spec_.of_batch_percent > 0 && all >= records_judged_min &&
      dead_count_ * 100 > all * static_cast<std::uint64_t>(spec_.of_batch_percent)) {
    return tripped("more than " + std::to_string(spec_.of_batch_percent) + " % of a batch of " +
                       std::to_string(all) + " records would become dead letters",
                   "of_batch");
  }
  if (spec_.in_a_row > 0 && row_around(record) > spec_.in_a_row) {
    return tripped("more than " + std::to_string(spec_.in_a_row) +
                       " records in a row would become dead letters",
                   "in_a_row");
  }
  if (spec_.per_run > 0 && before_ + dead_count_ > spec_.per_run) {
    return tripped("more than " + std::to_string(spec_.per_run) +
                       " records of this run would become dead letters",
                   "per_run");
  }
  return std::nullopt;
}

// Looks no further than the limit needs.
std::uint64_t Breaker::row_around(std::uint32_t record) const {
  std::uint64_t row = 1;
  std::size_t first = record;
  while (first > 0 && dead_[first - 1] != 0 && row <= spec_.in_a_row) {
    --first;
    ++row;
  }
  if (first == 0) row += row_before_;
  for (std::size_t i = record + 1; i < dead_.size() && dead_[i] != 0 && row <= spec_.in_a_row; ++i)
    ++row;
  return row;
}

void Breaker::commit() {
  before_ += dead_count_;
  std::size_t first = dead_.size();
  while (first > 0 && dead_[first - 1] != 0) --first;
  row_before_ = (first == 0 ? row_before_ : 0) + (dead_.size() - first);
  dead_.clear();
  dead_count_ = 0;
}

Failure Breaker::tripped(const std::string& what, const std::string& setting) const {
  return {.cls = FailureClass::invalid,
          .code = "dlq_limit." + setting,
          .where = "flood breaker",
          .what = what + ": that is an outage or a deploy, not bad records",
          .hint =
              "nothing of this batch was set aside and the position stands before it: look at "
              "a record with transform_on_error: fail, or raise dlq_limit." +
              setting,
          .exit = ExitCode::data};
}

}  // namespace flow
