// The file target: lines, synced at each batch, cut back at a restart to what was stored as
// written.
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connectors/file_catalog.h"
#include "connectors/file_io.h"
#include "connectors/file_output.h"
#include "connectors/file_stdout.h"
#include "connectors/registry.h"
#include "core/failure_point.h"

namespace flow {

namespace files {

namespace {

// How far the output had got: file and size. Text: v1:dev:ino:size.
struct Mark {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;

  std::string text() const {
    return "v1:" + std::to_string(device) + ":" + std::to_string(inode) + ":" +
           std::to_string(size);
  }
  static std::optional<Mark> parse(std::string_view text) {
    Mark m;
    if (!text.starts_with("v1:")) return std::nullopt;
    const char* at = text.data() + 3;
    const char* end = text.data() + text.size();
    const auto number = [&](auto& n) {
      const auto r = std::from_chars(at, end, n);
      at = r.ptr == end ? end : r.ptr + 1;
      return r.ec == std::errc() && (r.ptr == end || *r.ptr == ':');
    };
    const bool read = number(m.device) && number(m.inode) && number(m.size);
    return read && at == end && m.size >= 0 ? std::optional(m) : std::nullopt;
  }
};

class FileTarget final : public Target {
 public:
  FileTarget(const Context& context, const TargetSpec& spec)
      : context_(context), spec_(spec), lines_(*context.pipeline, spec) {}

  const TargetSpec& spec() const override { return spec_; }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& columns) override;
  Result<void> start(const Columns& plan, const std::optional<TargetMark>& mark) override;
  Result<void> write(const Batch& batch, const RowSet& rows) override;
  std::optional<std::string> mark() const override;
  void cancel() noexcept override {}
  void close() override { fd_ = Fd(); }

 private:
  Failure setup(std::string what, std::string hint) const {
    return {.cls = FailureClass::setup,
            .where = "target " + spec_.label + " (" + spec_.path + ")",
            .what = std::move(what),
            .hint = std::move(hint)};
  }
  Result<void> open();
  Result<void> go_on(const Mark& mark);
  Result<void> begin_new();
  Result<void> check_header();
  Result<void> cut_back();
  Result<void> append(std::string_view bytes, std::int64_t at);
  Failure undo(Failure failure);

  Context context_;
  TargetSpec spec_;
  LineWriter lines_;
  Fd fd_;
  Mark mark_;
  std::string buffer_;
};

Result<TargetSchema> FileTarget::prepare(const std::vector<ColumnSpec>&) {
  const std::string directory = directory_of(spec_.path);
  struct stat st {};
  if (::stat(directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
    return setup("there is no directory " + directory, "make it first: mkdir -p " + directory);
  }
  const bool there = ::stat(spec_.path.c_str(), &st) == 0;
  if (there && !S_ISREG(st.st_mode)) {
    return setup("is not an ordinary file", "use `kind: stdout` for pipes and devices");
  }
  const std::string& needed = there ? spec_.path : directory;
  if (::access(needed.c_str(), W_OK) != 0) return io_failure(needed, "write to", errno);
  TargetSchema schema;
  schema.passthrough = true;
  return schema;
}

Result<void> FileTarget::start(const Columns& plan, const std::optional<TargetMark>& mark) {
  if (auto r = lines_.plan(plan); !r) return r;
  if (auto r = open(); !r) return r;
  if (!mark) return begin_new();
  const auto known = Mark::parse(mark->mark);
  if (!known) {
    return setup("the stored mark \"" + mark->mark + "\" is not one that this flow can read",
                 "use the flow that wrote it, or a newer one");
  }
  return go_on(*known);
}

Result<void> FileTarget::open() {
  fd_ = Fd(::open(spec_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd_.is_open()) return io_failure(spec_.path, "open", errno);
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    Failure f = setup("another process writes this file", "stop it, or name another path");
    f.exit = ExitCode::temporary;
    return f;
  }
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return io_failure(spec_.path, "look at", errno);
  mark_ = {st.st_dev, st.st_ino, st.st_size};
  const Fd directory(::open(directory_of(spec_.path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() || ::fsync(directory.get()) != 0) {
    return io_failure(directory_of(spec_.path), "sync", errno);
  }
  return {};
}

// The first time. That the file is ours is stored before it holds a byte, so that a crash before
// the first stored position leaves something to cut back to.
Result<void> FileTarget::begin_new() {
  if (mark_.size > 0) {
    return setup(
        "holds " + std::to_string(mark_.size) + " bytes that this pipeline has not written",
        "move it away, or name another path");
  }
  if (context_.state == nullptr) return {};
  return context_.state->commit_positions(context_.pipeline->name, context_.run_id, {},
                                          {{spec_.label, mark_.text()}});
}

// What was written after the mark belongs to batches that are read again.
Result<void> FileTarget::go_on(const Mark& mark) {
  if (mark.size > 0 && (mark.device != mark_.device || mark.inode != mark_.inode)) {
    return setup("is not the file that the pipeline wrote " + std::to_string(mark.size) +
                     " bytes to: it was moved or replaced",
                 "put that file back under this name (move it, a copy will not do), or give the "
                 "target another path to begin anew");
  }
  if (mark_.size < mark.size) {
    return setup("has " + std::to_string(mark_.size) + " bytes, but " + std::to_string(mark.size) +
                     " were written: rows are missing",
                 "put the whole file back, or give the target another path to begin anew");
  }
  if (mark.size == 0 && mark_.size > 0 && mark.inode != mark_.inode) return begin_new();
  const std::int64_t cut = mark_.size - mark.size;
  mark_.size = mark.size;
  if (auto r = cut_back(); !r) return r;
  if (cut > 0) {
    context_.log->event(Level::info, "output.cut",
                        {{"target", spec_.label},
                         {"bytes", std::to_string(cut)},
                         {"size", std::to_string(mark_.size)},
                         {"means", "written after the last stored position; written again"}});
  }
  return check_header();
}

// A CSV file keeps one header for its whole life.
Result<void> FileTarget::check_header() {
  if (spec_.format != OutputFormat::csv || mark_.size == 0) return {};
  std::string first(
      std::min<std::size_t>(std::size_t{1} << 20, static_cast<std::size_t>(mark_.size)), '\0');
  if (read_at(fd_.get(), first.data(), first.size(), 0) < 0) {
    return io_failure(spec_.path, "read", errno);
  }
  if (lines_.header().empty()) {
    lines_.set_header(first.substr(0, first.find('\n')));
  } else if (!first.starts_with(lines_.header() + '\n')) {
    return setup("begins with other columns than the pipeline has now (" + lines_.header() + ")",
                 "give the target another path, or take the old columns back");
  }
  return {};
}

Result<void> FileTarget::cut_back() {
  while (::ftruncate(fd_.get(), mark_.size) != 0) {
    if (errno != EINTR) return io_failure(spec_.path, "cut back", errno);
  }
  return {};
}

Result<void> FileTarget::write(const Batch& batch, const RowSet& rows) {
  if (auto f = reach(Point::target_write_before)) return *std::move(f);
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return io_failure(spec_.path, "look at", errno);
  if (st.st_size != mark_.size) {
    return setup("has " + std::to_string(st.st_size) + " bytes instead of " +
                     std::to_string(mark_.size) + ": somebody else changed it",
                 "stop what else writes or cuts this file and run again");
  }
  const auto start = mark_.size == 0 ? LineWriter::Start::empty : LineWriter::Start::filled;
  if (auto r = lines_.write(batch, rows, start, buffer_); !r) return r;
  const std::size_t half = buffer_.size() / 2;
  const std::string_view bytes = buffer_;
  if (auto r = append(bytes.substr(0, half), mark_.size); !r) return undo(std::move(r).failure());
  if (auto f = reach(Point::target_write_torn)) return undo(*std::move(f));
  const auto middle = mark_.size + static_cast<std::int64_t>(half);
  if (auto r = append(bytes.substr(half), middle); !r) return undo(std::move(r).failure());
  if (auto f = reach(Point::target_commit_before)) return undo(*std::move(f));
  if (::fdatasync(fd_.get()) != 0) {
    // The kernel may have given the bytes up: only what a restart finds in the file counts.
    Failure f = io_failure(spec_.path, "sync", errno);
    if (f.retryable()) return undo(std::move(f));
    f.hint = "check the disk and run again: the file is cut back to its last stored size";
    return f;
  }
  if (auto f = reach(Point::target_commit_applied)) return undo(*std::move(f));
  mark_.size += static_cast<std::int64_t>(bytes.size());
  if (auto f = reach(Point::target_commit_after)) return *std::move(f);
  return {};
}

Result<void> FileTarget::append(std::string_view bytes, std::int64_t at) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_failure(spec_.path, "write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    at += n;
  }
  return {};
}

// A failed batch leaves nothing behind.
Failure FileTarget::undo(Failure failure) {
  if (auto r = cut_back(); !r) return std::move(r).failure();
  return failure;
}

std::optional<std::string> FileTarget::mark() const { return mark_.text(); }

}  // namespace

}  // namespace files

Result<std::unique_ptr<Target>> make_file_target(const Context& context, const TargetSpec& spec) {
  if (spec.kind == "stdout") return files::make_stdout_target(context, spec);
  return std::unique_ptr<Target>(std::make_unique<files::FileTarget>(context, spec));
}

}  // namespace flow
