#pragma once
// The flood breaker: so many bad records at once are an outage or a deploy, not bad records.
#include <cstdint>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "core/pipeline.h"

namespace flow {

// Counts records (not letters) that would become dead letters. Shape: one a run; begin() for each
// attempt at a batch, dead() for each record found bad in it, commit() once the batch is durable.
// Units: records. Errors: past a limit of dlq_limit it gives the failure that stops the run (exit
// 65); of_batch looks at batches of ten records or more, so that a lone bad record is none.
// Threads: one.
class Breaker {
 public:
  static constexpr std::size_t records_judged_min = 10;

  explicit Breaker(const DlqSpec& spec) : spec_(spec) {}

  // The batch as it is now, with the failures that it holds already.
  std::optional<Failure> begin(const Batch& batch);
  // One more; again for the same record counts once.
  std::optional<Failure> dead(std::uint32_t record);
  void commit();

 private:
  Failure tripped(const std::string& what, const std::string& setting) const;
  std::uint64_t row_around(std::uint32_t record) const;  // dead records in a row that hold this one

  const DlqSpec& spec_;
  std::vector<char> dead_;        // by record of the batch
  std::uint64_t dead_count_ = 0;  // of them
  std::uint64_t before_ = 0;      // dead records of the batches before
  std::uint64_t row_before_ = 0;  // dead records in a row at the end of the batch before
};

}  // namespace flow
