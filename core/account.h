#pragma once
// The account of a run: read = written + filtered + dropped + dead + pending, per target, checked
// at every commit.
#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/state.h"

namespace flow {

// Dead letters by failure class, indexed by it.
using DeadCounts = std::array<std::uint64_t, 8>;

// Shape: one Counts a target plus what is in flight. Units: records. Threads: any. Errors: a sum
// that does not add up is a defect and ends the program (exit 70).
class Account {
 public:
  Account(std::vector<std::string> targets, OnError on_error);

  void read(std::size_t records);  // the reading thread took them in
  // A batch is durable everywhere and its position committed: books it and checks the sums.
  void finished(const Batch& batch, std::size_t taken);
  // Records given up (revoked partition, drain): read again by whoever owns them next; they stay
  // pending.
  void abandoned(std::size_t records);
  void repeat(std::size_t target, std::uint64_t rows);
  void retry(std::size_t target);

  std::vector<TargetCounts> counts() const;
  DeadCounts dead() const;  // of this run, all targets
  std::uint64_t read_total() const;

 private:
  OnError on_error_;
  mutable std::mutex mutex_;
  DeadCounts dead_{};
  std::vector<TargetCounts> targets_;
  std::uint64_t read_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t abandoned_ = 0;
  std::uint64_t in_flight_ = 0;  // read, neither finished nor abandoned
};

}  // namespace flow
