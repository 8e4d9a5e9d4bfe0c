// The file source: files (and stdin) in order, record by record, positions in the state.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "connectors/file_agenda.h"
#include "connectors/file_positions.h"
#include "connectors/registry.h"

namespace flow {

namespace files {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds read_patience{100};
constexpr milliseconds idle_pause{20};
constexpr std::size_t max_spans = 256;  // files in one batch

class FileSource final : public Source {
 public:
  explicit FileSource(const Context& context) : context_(context) {
    const Pipeline& p = *context.pipeline;
    setup_ = {.format = p.format,
              .delimiter = p.csv.delimiter,
              .header = p.format == FormatKind::csv && p.csv.header,
              .compression = p.source.file.compression,
              .log = context.log};
  }

  Result<void> open(PartitionListener& listener) override;
  Result<ReadOutcome> read(Batch& batch, const BatchLimits& limits, ReadControl& control) override;
  Result<void> keep_alive() override { return {}; }
  SourceProgress progress() const override;
  void close() override;

 private:
  enum class Next : std::uint8_t { go_on, hand_over, nothing, end };
  Result<Next> start_pass(Batch& batch);
  Result<Next> step(Batch& batch, const BatchLimits& limits);
  Result<ReadOutcome> leave(Batch& batch, ReadOutcome outcome);
  Result<ReadOutcome> fail(Batch& batch, Failure failure);
  bool waited(const Batch& batch, const BatchLimits& limits);

  Context context_;
  ReaderSetup setup_;
  std::unique_ptr<Agenda> agenda_;
  Window window_;
  FileReader* active_ = nullptr;
  std::optional<Failure> failure_;  // handed over after the records before it
  std::optional<Clock::time_point> first_record_;
  mutable std::mutex progress_mutex_;
  AgendaProgress progress_;
};

Result<void> FileSource::open(PartitionListener&) {
  auto known = load_known(context_);
  if (!known) return std::move(known).failure();
  AgendaSetup setup{&context_.pipeline->source.file, setup_, std::move(*known)};
  const bool follow = context_.follow && !context_.until_end;
  auto agenda =
      follow ? make_follow_agenda(std::move(setup)) : make_bounded_agenda(std::move(setup));
  if (!agenda) return std::move(agenda).failure();
  agenda_ = std::move(*agenda);
  progress_ = agenda_->progress();
  return {};
}

Result<ReadOutcome> FileSource::read(Batch& batch, const BatchLimits& limits,
                                     ReadControl& control) {
  if (failure_) return *std::exchange(failure_, std::nullopt);
  if (batch.records.empty()) first_record_.reset();
  const auto until = Clock::now() + read_patience;
  for (;;) {
    const bool full = batch.records.size() >= limits.records || batch.bytes >= limits.bytes;
    if (full || control.stopping() || waited(batch, limits)) {
      return leave(batch, ReadOutcome::more);
    }
    auto next = active_ == nullptr ? start_pass(batch) : step(batch, limits);
    if (!next) return fail(batch, std::move(next).failure());
    switch (*next) {
      case Next::go_on: continue;
      case Next::hand_over: return leave(batch, ReadOutcome::more);
      case Next::end: return leave(batch, ReadOutcome::end);
      case Next::nothing: break;
    }
    const bool in_hand = !batch.spans.empty() && control.writer_idle();
    if (in_hand || Clock::now() >= until) return leave(batch, ReadOutcome::more);
    if (active_ == nullptr) std::this_thread::sleep_for(idle_pause);
  }
}

bool FileSource::waited(const Batch& batch, const BatchLimits& limits) {
  if (batch.records.empty()) return false;
  const auto now = Clock::now();
  if (!first_record_) first_record_ = now;
  return now - *first_record_ >= limits.wait;
}

// A batch holds one stretch of a partition: a name that now stands for other bytes starts a new
// batch.
Result<FileSource::Next> FileSource::start_pass(Batch& batch) {
  if (batch.spans.size() >= max_spans) return Next::hand_over;
  auto turn = agenda_->next();
  if (!turn) return std::move(turn).failure();
  for (Span& s : agenda_->take_relocated()) {
    const std::uint32_t span = batch.span_of(s.partition, s.from);
    batch.spans[span].identity = std::move(s.identity);
  }
  if (turn->reader == nullptr) return agenda_->finished() ? Next::end : Next::nothing;
  active_ = turn->reader;
  if (auto r = active_->begin(window_, turn->tail); !r) return std::move(r).failure();
  for (const Span& s : batch.spans) {
    if (s.partition == active_->partition() && s.next.next != active_->position()) {
      return Next::hand_over;
    }
  }
  return Next::go_on;
}

Result<FileSource::Next> FileSource::step(Batch& batch, const BatchLimits& limits) {
  auto framed = active_->frame(window_, batch, limits);
  if (!framed) return std::move(framed).failure();
  if (*framed == FileReader::Step::full) return Next::go_on;
  if (*framed == FileReader::Step::done) {
    active_->finish(batch);
    active_->settle(batch);
    agenda_->passed(*std::exchange(active_, nullptr));
    return Next::go_on;
  }
  auto got = active_->fill(window_);
  if (!got) return std::move(got).failure();
  return got->bytes > 0 || got->end ? Next::go_on : Next::nothing;
}

Result<ReadOutcome> FileSource::leave(Batch& batch, ReadOutcome outcome) {
  if (active_ != nullptr) active_->settle(batch);
  const std::scoped_lock lock(progress_mutex_);
  progress_ = agenda_->progress();
  return outcome;
}

// What was read before the failure goes its way first.
Result<ReadOutcome> FileSource::fail(Batch& batch, Failure failure) {
  if (batch.spans.empty()) return failure;
  failure_ = std::move(failure);
  return leave(batch, ReadOutcome::more);
}

SourceProgress FileSource::progress() const {
  const std::scoped_lock lock(progress_mutex_);
  SourceProgress p;
  p.total = progress_.total;
  p.done = progress_.done;
  p.unit = "bytes";
  p.waiting_for = progress_.waiting_for;
  return p;
}

void FileSource::close() {
  active_ = nullptr;
  agenda_.reset();
}

}  // namespace

}  // namespace files

Result<SourceParts> make_file_source(const Context& context) {
  SourceParts parts;
  parts.source = std::make_unique<files::FileSource>(context);
  parts.own_positions = std::make_unique<files::FilePositions>(context);
  parts.positions = parts.own_positions.get();
  return parts;
}

}  // namespace flow
