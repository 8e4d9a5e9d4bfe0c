#pragma once
// The in-memory twin of StateStore. Several stores over one MemoryStateData are several processes.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/state.h"

namespace flow::test {

struct MemoryStateData {
  std::mutex mutex;
  std::condition_variable freed;
  std::vector<RunRow> runs;
  std::map<std::string, std::map<PartitionId, Span>> positions;
  std::map<std::string, std::map<std::string, TargetMark>> marks;
  std::map<std::string, std::map<std::tuple<PartitionId, std::int64_t, std::string>, Attempts>>
      attempts;
  std::map<std::string, std::map<PartitionId, InFlight>> in_flight;
  std::set<std::string> held;
};

class MemoryLock final : public Lock {
 public:
  MemoryLock(std::shared_ptr<MemoryStateData> data, std::string name)
      : data_(std::move(data)), name_(std::move(name)) {}
  ~MemoryLock() override {
    {
      const std::lock_guard guard(data_->mutex);
      data_->held.erase(name_);
    }
    data_->freed.notify_all();
  }

 private:
  std::shared_ptr<MemoryStateData> data_;
  std::string name_;
};

class MemoryState final : public StateStore {
 public:
  explicit MemoryState(std::shared_ptr<MemoryStateData> data = std::make_shared<MemoryStateData>())
      : data_(std::move(data)) {}

  std::string id() const override { return "memory"; }
  std::string location() const override { return "memory:"; }

  Result<void> open_run(const RunRow& run) override {
    auto held = lock(run_lock_name(run.id), Millis{0});
    if (*held == nullptr) {
      return Failure{.cls = FailureClass::setup,
                     .what = "run " + run.id + " is open already",
                     .exit = ExitCode::temporary};
    }
    run_locks_[run.id] = std::move(held).value();
    return save(run);
  }
  Result<void> heartbeat(const RunRow& run) override { return save(run); }
  Result<void> close_run(const RunRow& run) override {
    auto saved = save(run);
    run_locks_.erase(run.id);
    return saved;
  }
  Result<std::vector<RunRow>> runs(const std::string& pipeline, std::size_t limit) override {
    const std::lock_guard guard(data_->mutex);
    std::vector<RunRow> found;
    for (const RunRow& run : data_->runs) {
      if (!pipeline.empty() && run.pipeline != pipeline) continue;
      found.push_back(run);
      if (run.status != RunStatus::running || data_->held.contains(run_lock_name(run.id))) continue;
      found.back().status = RunStatus::interrupted;
      found.back().ended_ms = run.heartbeat_ms;
    }
    std::stable_sort(found.begin(), found.end(), [](const RunRow& a, const RunRow& b) {
      return a.started_ms != b.started_ms ? a.started_ms > b.started_ms : a.id > b.id;
    });
    if (found.size() > limit) found.resize(limit);
    return found;
  }

  Result<Spans> positions(const std::string& pipeline) override {
    const std::lock_guard guard(data_->mutex);
    Spans spans;
    for (const auto& [partition, span] : data_->positions[pipeline]) spans.push_back(span);
    return spans;
  }
  Result<std::vector<TargetMark>> marks(const std::string& pipeline) override {
    const std::lock_guard guard(data_->mutex);
    std::vector<TargetMark> marks;
    for (const auto& [target, mark] : data_->marks[pipeline]) marks.push_back(mark);
    return marks;
  }
  Result<void> commit_positions(const std::string& pipeline, const std::string&, const Spans& spans,
                                const std::vector<TargetMark>& marks) override {
    const std::lock_guard guard(data_->mutex);
    for (Span span : spans) {
      span.from = span.next;
      data_->positions[pipeline][span.partition] = span;
    }
    for (const TargetMark& mark : marks) data_->marks[pipeline][mark.target] = mark;
    return {};
  }

  Result<std::vector<Attempts>> attempts(const std::string& pipeline) override {
    const std::lock_guard guard(data_->mutex);
    std::vector<Attempts> found;
    for (const auto& [key, kept] : data_->attempts[pipeline]) found.push_back(kept);
    return found;
  }
  Result<void> keep_attempts(const std::string& pipeline,
                             const std::vector<Attempts>& attempts) override {
    const std::lock_guard guard(data_->mutex);
    for (const Attempts& a : attempts) {
      const std::tuple key{a.origin, a.offset.value, a.target};
      if (a.made == 0) data_->attempts[pipeline].erase(key);
      if (a.made > 0) data_->attempts[pipeline][key] = a;
    }
    return {};
  }
  Result<std::vector<InFlight>> in_flight(const std::string& pipeline) override {
    const std::lock_guard guard(data_->mutex);
    std::vector<InFlight> found;
    for (const auto& [partition, kept] : data_->in_flight[pipeline]) found.push_back(kept);
    return found;
  }
  Result<void> keep_in_flight(const std::string& pipeline,
                              const std::vector<InFlight>& in_flight) override {
    const std::lock_guard guard(data_->mutex);
    for (const InFlight& f : in_flight) {
      if (f.records == 0) data_->in_flight[pipeline].erase(f.span.partition);
      if (f.records > 0) data_->in_flight[pipeline][f.span.partition] = f;
    }
    return {};
  }

  Result<std::unique_ptr<Lock>> lock(const std::string& name, Millis wait) override {
    std::unique_lock guard(data_->mutex);
    const bool free =
        data_->freed.wait_for(guard, wait, [&] { return !data_->held.contains(name); });
    if (!free) return std::unique_ptr<Lock>();
    data_->held.insert(name);
    return std::unique_ptr<Lock>(std::make_unique<MemoryLock>(data_, name));
  }

 private:
  Result<void> save(const RunRow& run) {
    const std::lock_guard guard(data_->mutex);
    for (RunRow& kept : data_->runs) {
      if (kept.id != run.id) continue;
      kept = run;
      return {};
    }
    data_->runs.push_back(run);
    return {};
  }

  std::shared_ptr<MemoryStateData> data_;
  std::map<std::string, std::unique_ptr<Lock>> run_locks_;
};

}  // namespace flow::test
