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
#include "tests/support/letters_double.h"

namespace flow::test {

class MemoryLog final : public Log {
 public:
  void event(Level, std::string_view noun_verb, const Fields& fields) override {
    const std::scoped_lock lock(mutex_);
    std::string line(noun_verb);
    for (const auto& [name, value] : fields) line += " " + std::string(name) + "=" + value;
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> lines() const {
    const std::scoped_lock lock(mutex_);
    return lines_;
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
  std::set<std::string> refuses;  // the records at these places are refused
  FailureClass refusal = FailureClass::invalid;
  std::string kills;                         // a write with the record at this place is a defect
  std::map<std::string, int> heals;          // at this place: refused that often, then taken
  bool merge = false;                        // the value up to ':' is the key
  std::map<std::string, std::string> table;  // merge: key to the place of its version
  MemoryLetters* own_letters = nullptr;      // keeps the letters with its rows

  const TargetSpec& spec() const override { return spec_; }
  bool keeps_letters() const override { return own_letters != nullptr; }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>&) override {
    if (!merge)
      return TargetSchema{
          .passthrough = true, .fixed = false, .columns = {}, .key = {}, .notes = {}};
    Column key;
    key.name = "key";
    key.type = Type::text;
    return TargetSchema{
        .passthrough = false, .fixed = true, .columns = {key}, .key = {"key"}, .notes = {}};
  }
  Result<void> start(const Columns&, const std::optional<TargetMark>&) override { return {}; }
  Result<void> write(const Batch& batch, const RowSet& rows) override {
    return apply(batch, rows, nullptr).ok() ? Result<void>() : *failed_;
  }
  Result<std::vector<RecordFailure>> write_around(const Batch& batch, const RowSet& rows,
                                                  const Aside& aside) override {
    return apply(batch, rows, &aside);
  }
  void cancel() noexcept override { cancelled = true; }
  void close() override {}
  std::vector<std::string> written_so_far() {
    const std::scoped_lock lock(mutex_);
    return written;
  }

 private:
  // aside null: the first refused row is the failure.
  Result<std::vector<RecordFailure>> apply(const Batch& batch, const RowSet& rows,
                                           const Aside* aside) {
    ++attempts;
    failed_.reset();
    if (before_write) {
      if (auto r = before_write(attempts); !r) return *(failed_ = r.failure());
    }
    for (const std::uint32_t r : rows.order) {
      if (batch.where(rows.record[r]) == kills)
        return *(failed_ = Failure{.cls = FailureClass::defect, .what = "died"});
    }
    std::vector<RecordFailure> refused;
    std::vector<DeadLetter> letters;
    std::vector<std::uint32_t> taken;
    if (aside != nullptr) letters.assign(aside->letters.begin(), aside->letters.end());
    for (const std::uint32_t r : rows.order) {
      const std::string place = batch.where(rows.record[r]);
      const bool heals_yet = heals.contains(place) && heals[place]-- > 0;
      if (!refuses.contains(place) && !heals_yet) {
        taken.push_back(r);
        continue;
      }
      Failure f{.cls = refusal, .code = "refused", .where = place, .what = "refused"};
      f.record = rows.record[r];
      if (aside == nullptr) return *(failed_ = f);
      refused.push_back({rows.record[r], 0, f});
      auto letter = aside->refused(refused.back());
      if (!letter) return letter.failure();
      if (*letter) letters.push_back(std::move(**letter));
    }
    if (own_letters != nullptr && !letters.empty()) {
      if (auto put = own_letters->put(letters); !put) return put.failure();
    }
    const std::scoped_lock lock(mutex_);
    for (const std::uint32_t r : taken) {
      written.push_back(batch.where(rows.record[r]));
      if (merge) table[std::string(rows.row(r)[0].text())] = written.back();
    }
    return refused;
  }

  TargetSpec spec_;
  std::mutex mutex_;
  std::optional<Failure> failed_;
};

// Takes every record; its field is the value up to ':'. A value that starts with "bad" does not
// decode.
class MemoryDecoder final : public Decoder {
 public:
  Result<void> bind(const std::vector<FieldSource>& fields) override {
    has_key_ = !fields.empty();
    return {};
  }
  bool decode(const Record& record, Arena&, Value* cells, Failure& failure) override {
    if (has_key_) cells[0] = Value::text(record.value.substr(0, record.value.find(':')));
    if (!record.value.starts_with("bad")) return true;
    failure = {.cls = FailureClass::invalid, .code = "decode.memory", .what = "is bad"};
    return false;
  }

 private:
  bool has_key_ = false;
};

}  // namespace flow::test
