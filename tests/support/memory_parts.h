#pragma once
// In-memory twins of the ports, for tests of the loop. A scripted source of numbered records, a
// target that keeps what it was given, a position store; each can fail, block or be watched.
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/ports.h"

namespace flow::test {

class MemoryLog final : public Log {
 public:
  void event(Level, std::string_view noun_verb, const Fields& fields) override {
    const std::scoped_lock lock(mutex_);
    std::string line(noun_verb);
    for (const auto& [name, value] : fields) line += " " + std::string(name) + "=" + value;
    lines_.push_back(std::move(line));
  }
  bool has(std::string_view start) const {
    const std::scoped_lock lock(mutex_);
    for (const std::string& l : lines_) {
      if (l.starts_with(start)) return true;
    }
    return false;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// Partitions of numbered values; ends at their end when `bounded`. `before_read` runs on the
// reading thread at the start of each read and may call the listener (a rebalance).
class MemorySource final : public Source {
 public:
  std::map<PartitionId, std::vector<std::string>> data;
  std::map<PartitionId, std::int64_t> at;
  bool bounded = true;
  std::function<void(PartitionListener&)> before_read;
  std::set<PartitionId> gone;  // released partitions are no longer read
  std::atomic<int> kept_alive{0};
  bool closed = false;

  Result<void> open(PartitionListener& listener) override {
    listener_ = &listener;
    return {};
  }
  Result<ReadOutcome> read(Batch& batch, const BatchLimits& limits, ReadControl& control) override {
    if (before_read) before_read(*listener_);
    bool left = false;
    for (auto& [id, values] : data) {
      if (gone.contains(id)) continue;
      std::int64_t& next = at[id];
      while (next < static_cast<std::int64_t>(values.size()) &&
             batch.records.size() < limits.records && !control.stopping()) {
        const std::uint32_t span = batch.span_of(id, {next});
        Record r;
        const std::string& v = values[static_cast<std::size_t>(next)];
        r.value = batch.arena.copy(v);
        r.offset = {next};
        r.span = span;
        batch.bytes += v.size();
        batch.records.push_back(r);
        batch.spans[span].next = position_after(r.offset);
        ++next;
      }
      left = left || next < static_cast<std::int64_t>(values.size());
    }
    return left || !bounded ? ReadOutcome::more : ReadOutcome::end;
  }
  Result<void> keep_alive() override {
    ++kept_alive;
    return {};
  }
  SourceProgress progress() const override { return {}; }
  void close() override { closed = true; }

 private:
  PartitionListener* listener_ = nullptr;
};

class MemoryPositions final : public PositionStore {
 public:
  std::map<PartitionId, std::int64_t> next;
  std::vector<TargetMark> marks;
  std::function<Result<void>(const Spans&)> before_commit;
  std::function<void()> after_commit;

  Result<Spans> load() override { return Spans{}; }
  Result<std::vector<TargetMark>> load_marks() override { return marks; }
  Result<void> commit(const Spans& spans, const std::vector<TargetMark>& now) override {
    if (before_commit) {
      if (auto r = before_commit(spans); !r) return r;
    }
    for (const Span& s : spans) next[s.partition] = s.next.next;
    marks = now;
    if (after_commit) after_commit();
    return {};
  }
};

// Keeps "partition@offset" of each row in the order written.
class MemoryTarget final : public Target {
 public:
  explicit MemoryTarget(TargetSpec spec) : spec_(std::move(spec)) {}
  std::vector<std::string> written;
  std::function<Result<void>(int attempt)> before_write;
  std::atomic<bool> cancelled{false};
  int attempts = 0;
  std::string refuses;  // the record at this place is refused

  const TargetSpec& spec() const override { return spec_; }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>&) override {
    return TargetSchema{.passthrough = true, .fixed = false, .columns = {}, .key = {}, .notes = {}};
  }
  Result<void> start(const Columns&, const std::optional<TargetMark>&) override { return {}; }
  Result<void> write(const Batch& batch, const RowSet& rows) override {
    ++attempts;
    if (before_write) {
      if (auto r = before_write(attempts); !r) return r;
    }
    for (const std::uint32_t r : rows.order) {
      if (batch.where(rows.record[r]) != refuses) continue;
      Failure f{.cls = FailureClass::invalid, .what = "refused"};
      f.record = rows.record[r];
      return f;
    }
    const std::scoped_lock lock(mutex_);
    for (const std::uint32_t r : rows.order) written.push_back(batch.where(rows.record[r]));
    return {};
  }
  void cancel() noexcept override { cancelled = true; }
  void close() override {}
  std::vector<std::string> written_so_far() {
    const std::scoped_lock lock(mutex_);
    return written;
  }

 private:
  TargetSpec spec_;
  std::mutex mutex_;
};

// Takes every record; a value that starts with "bad" does not decode.
class MemoryDecoder final : public Decoder {
 public:
  Result<void> bind(const std::vector<FieldSource>&) override { return {}; }
  bool decode(const Record& record, Arena&, Value*, Failure& failure) override {
    if (!record.value.starts_with("bad")) return true;
    failure = {.cls = FailureClass::invalid, .what = "is bad"};
    return false;
  }
};

}  // namespace flow::test
