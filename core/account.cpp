#include "core/account.h"

#include <algorithm>

namespace flow {

Account::Account(std::vector<std::string> targets, OnError on_error) : on_error_(on_error) {
  for (std::string& t : targets) targets_.push_back({std::move(t), {}});
}

void Account::read(std::size_t records) {
  const std::scoped_lock lock(mutex_);
  read_ += records;
  in_flight_ += records;
}

void Account::finished(const Batch& batch, std::size_t taken) {
  const std::scoped_lock lock(mutex_);
  FLOW_CHECK(batch.records.size() <= taken && taken <= in_flight_,
             "more records finished than read");
  const std::size_t given_up = taken - batch.records.size();
  if (on_error_ == OnError::dlq) {
    for (const RecordFailure& f : batch.failures) ++dead_[static_cast<std::size_t>(f.failure.cls)];
  }
  finished_ += batch.records.size();
  abandoned_ += given_up;
  in_flight_ -= taken;
  FLOW_CHECK(read_ == finished_ + abandoned_ + in_flight_, "records read do not add up");
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    Counts& c = targets_[t].counts;
    c.read = read_;
    c.written += batch.rows[t].rows();
    c.filtered += batch.filtered[t];
    const auto failed = static_cast<std::uint64_t>(
        std::count_if(batch.failures.begin(), batch.failures.end(),
                      [&](const RecordFailure& f) { return f.target == t; }));
    (on_error_ == OnError::dlq ? c.dead : c.dropped) += failed;
    c.pending = in_flight_ + abandoned_;
    FLOW_CHECK(c.written + c.filtered + c.dropped + c.dead == finished_,
               "read = written + filtered + dropped + dead + pending does not hold");
  }
}

void Account::abandoned(std::size_t records) {
  const std::scoped_lock lock(mutex_);
  FLOW_CHECK(records <= in_flight_, "more records given up than read");
  in_flight_ -= records;
  abandoned_ += records;
}

void Account::repeat(std::size_t target, std::uint64_t rows) {
  const std::scoped_lock lock(mutex_);
  targets_[target].counts.repeats += rows;
}

void Account::retry(std::size_t target) {
  const std::scoped_lock lock(mutex_);
  ++targets_[target].counts.retries;
}

std::vector<TargetCounts> Account::counts() const {
  const std::scoped_lock lock(mutex_);
  std::vector<TargetCounts> out = targets_;
  for (TargetCounts& t : out) {
    t.counts.read = read_;
    t.counts.pending = in_flight_ + abandoned_;
  }
  return out;
}

DeadCounts Account::dead() const {
  const std::scoped_lock lock(mutex_);
  return dead_;
}

std::uint64_t Account::read_total() const {
  const std::scoped_lock lock(mutex_);
  return read_;
}

}  // namespace flow
