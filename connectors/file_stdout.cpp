#include "connectors/file_stdout.h"

#include <atomic>
#include <cerrno>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connectors/file_io.h"
#include "connectors/file_output.h"
#include "core/failure_point.h"

namespace flow::files {

namespace {

constexpr int poll_ms = 100;

class StdoutTarget final : public Target {
 public:
  StdoutTarget(const Context& context, const TargetSpec& spec)
      : spec_(spec), lines_(*context.pipeline, spec) {}

  const TargetSpec& spec() const override { return spec_; }

  Result<TargetSchema> prepare(const std::vector<ColumnSpec>&) override {
    TargetSchema schema;
    schema.passthrough = true;
    return schema;
  }

  Result<void> start(const Columns& plan, const std::optional<TargetMark>&) override {
    return lines_.plan(plan);
  }

  Result<void> write(const Batch& batch, const RowSet& rows) override;
  void cancel() noexcept override { cancelled_.store(true, std::memory_order_relaxed); }
  void close() override {}

 private:
  Result<void> send(std::string_view bytes);
  Failure stopped(Failure failure) const;

  TargetSpec spec_;
  LineWriter lines_;
  std::string buffer_;
  bool begun_ = false;  // something was written: the header among it
  bool torn_ = false;   // a part of this batch was written
  std::atomic<bool> cancelled_{false};
};

Result<void> StdoutTarget::write(const Batch& batch, const RowSet& rows) {
  if (auto f = reach(Point::target_write_before)) return *std::move(f);
  const auto start = begun_ ? LineWriter::Start::filled : LineWriter::Start::empty;
  if (auto r = lines_.write(batch, rows, start, buffer_); !r) return r;
  torn_ = false;
  const std::string_view bytes = buffer_;
  if (auto r = send(bytes.substr(0, bytes.size() / 2)); !r) return r;
  if (auto f = reach(Point::target_write_torn)) return stopped(*std::move(f));
  if (auto f = reach(Point::target_commit_before)) return stopped(*std::move(f));
  if (auto r = send(bytes.substr(bytes.size() / 2)); !r) return r;
  if (auto f = reach(Point::target_commit_applied)) return stopped(*std::move(f));
  if (auto f = reach(Point::target_commit_after)) return stopped(*std::move(f));
  return {};
}

// In pieces that a pipe takes without blocking once it says that it can be written to, so that
// cancel() is heard.
Result<void> StdoutTarget::send(std::string_view bytes) {
  struct stat st {};
  const bool file = ::fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
  while (!bytes.empty()) {
    pollfd ready{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (!file && ::poll(&ready, 1, poll_ms) <= 0) {
      if (!cancelled_.load(std::memory_order_relaxed)) continue;
      return stopped({.cls = FailureClass::transient,
                      .where = "target " + spec_.label,
                      .what = "the reader of standard output takes nothing",
                      .hint = "look at the program behind the pipe"});
    }
    const std::size_t piece = file ? bytes.size() : std::min<std::size_t>(bytes.size(), PIPE_BUF);
    const ssize_t n = ::write(STDOUT_FILENO, bytes.data(), piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0 && errno == EPIPE) {
      return stopped({.cls = FailureClass::setup,
                      .code = "EPIPE",
                      .where = "target " + spec_.label,
                      .what = "the reader of standard output has gone",
                      .hint = "what it did not take is read again by the next run",
                      .exit = ExitCode::io});
    }
    if (n < 0) return stopped(io_failure("standard output", "write to", errno));
    begun_ = torn_ = true;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

// What has gone out cannot be taken back.
Failure StdoutTarget::stopped(Failure failure) const {
  if (torn_) failure.effect = Effect::unknown;
  return failure;
}

}  // namespace

std::unique_ptr<Target> make_stdout_target(const Context& context, const TargetSpec& spec) {
  return std::make_unique<StdoutTarget>(context, spec);
}

}  // namespace flow::files
