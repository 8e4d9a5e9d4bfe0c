#include "core/crash_loop.h"

#include <algorithm>

namespace flow {
namespace {

constexpr std::size_t runs_looked_at = 100;
constexpr std::size_t runs_named_bytes = 400;

std::string last_run(const std::string& runs) {
  const auto at = runs.rfind(' ');
  return at == runs.npos ? runs : runs.substr(at + 1);
}

// The last of them, whole ids.
std::string with_run(const std::string& runs, const std::string& run) {
  std::string out = runs.empty() ? run : runs + " " + run;
  while (out.size() > runs_named_bytes) out.erase(0, out.find(' ') + 1);
  return out;
}

}  // namespace

CrashLoop::CrashLoop(const Pipeline& pipeline, StateStore* state, std::string run_id)
    : pipeline_(pipeline),
      state_(pipeline.dlq.crash_loop_limit > 0 ? state : nullptr),
      run_id_(std::move(run_id)),
      marking_(state_ != nullptr) {}

// Only a run that died without a word counts: one that was stopped or failed has said why.
Result<void> CrashLoop::begin() {
  if (state_ == nullptr) return {};
  suspects_.clear();
  auto marks = state_->in_flight(pipeline_.name);
  if (!marks) return marks.failure();
  if (marks->empty()) return {};
  auto runs = state_->runs(pipeline_.name, runs_looked_at);
  if (!runs) return runs.failure();
  const auto latest = std::find_if(runs->begin(), runs->end(), [&](const RunRow& r) {
    return std::any_of(marks->begin(), marks->end(),
                       [&](const InFlight& m) { return last_run(m.runs) == r.id; });
  });  // newest first
  if (latest == runs->end() || latest->status != RunStatus::interrupted) return {};
  for (InFlight& m : *marks) {
    if (last_run(m.runs) != latest->id) continue;
    ++m.deaths;
    deaths_ = std::max(deaths_, m.deaths);
    records_ = std::max(records_, m.records);
    suspects_[m.span.partition] = std::move(m);
  }
  narrow_ = deaths_ >= pipeline_.dlq.crash_loop_limit;
  return {};
}

std::size_t CrashLoop::records_max(std::size_t limit) const {
  if (!narrow_) return limit;
  return std::min(limit, std::max<std::size_t>(1, static_cast<std::size_t>(records_ / 2)));
}

const InFlight* CrashLoop::suspect(const Span& span) const {
  const auto at = suspects_.find(span.partition);
  if (at == suspects_.end()) return nullptr;
  const InFlight& mark = at->second;
  return mark.span.from <= span.from && span.from < mark.span.next ? &mark : nullptr;
}

Result<std::optional<Failure>> CrashLoop::take(const Batch& batch) {
  if (!marking_ || batch.records.empty()) return std::optional<Failure>();
  const std::size_t records = batch.records.size();
  std::vector<InFlight> marks;
  for (const Span& span : batch.spans) {
    InFlight mark{span, records, narrow_ ? deaths_ : 0, run_id_};
    if (const InFlight* before = suspect(span); before != nullptr) {
      const bool same = before->span.from == span.from;
      if (narrow_ && same && before->records == 1 && records == 1) {
        return std::optional<Failure>(killer(*before));
      }
      if (same) {
        mark.deaths = before->deaths;
        mark.runs = with_run(before->runs, run_id_);
      }
    }
    marks.push_back(std::move(mark));
  }
  if (!narrow_) marking_ = false;  // the first batch of a run is enough
  if (auto kept = state_->keep_in_flight(pipeline_.name, marks); !kept) return kept.failure();
  return std::optional<Failure>();
}

// Committed: nothing of it can have been what the runs died of.
Result<void> CrashLoop::done(const Batch& batch) {
  if (state_ == nullptr) return {};
  std::vector<InFlight> forgotten;
  for (const Span& span : batch.spans) {
    forgotten.push_back({span, 0, 0, {}});
    pass(span);
  }
  if (auto kept = state_->keep_in_flight(pipeline_.name, forgotten); !kept) return kept;
  if (narrow_ && suspects_.empty()) narrow_ = marking_ = false;
  if (!narrow_) state_ = nullptr;
  return {};
}

void CrashLoop::pass(const Span& span) {
  const auto at = suspects_.find(span.partition);
  if (at != suspects_.end() && at->second.span.next <= span.next) suspects_.erase(at);
}

Failure CrashLoop::killer(const InFlight& mark) const {
  return {.cls = FailureClass::poison,
          .code = "crash_loop",
          .what = "the program died " + std::to_string(mark.deaths) +
                  " times before this record was finished, at last with no other in hand (runs " +
                  mark.runs + ")",
          .hint = "look for what kills the process: memory, a signal, a bug"};
}

}  // namespace flow
