// The file and stdout targets: what is in the output after success, failure and restart.
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connectors/registry.h"
#include "core/failure_point.h"
#include "tests/support/loop_doubles.h"
#include "tests/support/state_double.h"
#include "tests/support/temp_dir.h"

using namespace flow;
using namespace flow::test;
namespace fs = std::filesystem;

namespace {

const Columns columns = [] {
  Columns c(2);
  c[0].name = "id";
  c[1].name = "note";
  return c;
}();

// One pipeline with one file target; start() is a new run.
struct Output {
  explicit Output(const std::string& path, OutputFormat format = OutputFormat::jsonl,
                  const std::string& kind = "file") {
    pipeline.name = "p";
    spec.kind = kind;
    spec.label = "out";
    spec.path = path;
    spec.format = format;
  }

  Result<void> start(const Columns& plan = columns) {
    target.reset();
    auto made = make_file_target(
        {.pipeline = &pipeline, .log = &log, .state = &state, .run_id = "r", .instance_id = {}},
        spec);
    REQUIRE(made.ok());
    target = std::move(*made);
    auto schema = target->prepare({});
    if (!schema) return schema.failure();
    CHECK(schema->passthrough);
    CHECK_FALSE(schema->fixed);
    std::optional<TargetMark> mark;
    const auto marks = state.marks("p");
    REQUIRE(marks.ok());
    if (!marks.value().empty()) mark = marks.value().front();
    return target->start(plan, mark);
  }

  Result<void> write(const std::vector<std::pair<int, std::string>>& rows) {
    Batch batch;
    RowSet set;
    set.width = 2;
    for (const auto& [id, note] : rows) {
      batch.records.emplace_back();
      Value* cells = set.add(static_cast<std::uint32_t>(batch.records.size() - 1));
      cells[0] = Value::int64(id);
      cells[1] = note == "null" ? Value::null() : Value::text(note);
      set.order.push_back(static_cast<std::uint32_t>(set.rows() - 1));
    }
    return target->write(batch, set);
  }

  Result<void> write_records(const std::vector<std::string>& records,
                             const std::string& header = "") {
    Batch batch;
    RowSet set;
    batch.span_of({"in", 0}, {0});
    if (!header.empty()) batch.headers.push_back({"csv.header", header});
    for (const std::string& r : records) {
      Record& record = batch.records.emplace_back();
      if (r != "(none)") record.value = r;
      if (!header.empty()) record.header_count = 1;
      set.add(static_cast<std::uint32_t>(batch.records.size() - 1));
      set.order.push_back(static_cast<std::uint32_t>(set.rows() - 1));
    }
    return target->write(batch, set);
  }

  void commit() { CHECK(state.commit_positions("p", "r", {}, {{"out", *target->mark()}}).ok()); }

  Pipeline pipeline;
  TargetSpec spec;
  RecordingLog log;
  MemoryState state;
  std::unique_ptr<Target> target;
};

}  // namespace

TEST_CASE("rows become JSON lines in a file that only its owner can read") {
  TempDir dir;
  Output out(dir / "out.jsonl");
  REQUIRE(out.start().ok());
  CHECK(out.write({{1, "a\nb"}, {2, "null"}}).ok());
  CHECK(out.write({{3, ""}}).ok());
  CHECK(read_file(dir / "out.jsonl") ==
        "{\"id\":1,\"note\":\"a\\nb\"}\n{\"id\":2,\"note\":null}\n{\"id\":3,\"note\":\"\"}\n");
  struct stat st {};
  REQUIRE(::stat((dir / "out.jsonl").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777U) == 0600U);
}

TEST_CASE("CSV has its header once, at byte 0, through restarts") {
  TempDir dir;
  Output out(dir / "out.csv", OutputFormat::csv);
  REQUIRE(out.start().ok());
  CHECK(out.write({{1, "a,b"}}).ok());
  out.commit();
  REQUIRE(out.start().ok());
  CHECK(out.write({{2, "null"}, {3, ""}}).ok());
  out.commit();
  CHECK(read_file(dir / "out.csv") == "id,note\n1,\"a,b\"\n2,\n3,\"\"\n");
  Columns other = columns;
  other[1].name = "text";
  const auto changed = out.start(other);
  REQUIRE_FALSE(changed.ok());
  CHECK(changed.failure().exit_code() == ExitCode::configuration);
}

TEST_CASE("a restart cuts what was written after the last stored mark, to the byte") {
  TempDir dir;
  Output out(dir / "out.jsonl");
  REQUIRE(out.start().ok());
  CHECK(out.write({{1, "kept"}}).ok());
  out.commit();
  const std::string kept = read_file(dir / "out.jsonl");
  CHECK(out.write({{2, "lost"}}).ok());
  out.target.reset();  // dies before the position is stored
  dir.append("out.jsonl", "{\"id\":3,\"no");
  REQUIRE(out.start().ok());
  CHECK(read_file(dir / "out.jsonl") == kept);
  CHECK(out.log.has("output.cut"));
  CHECK(out.write({{2, "again"}}).ok());
  CHECK(read_file(dir / "out.jsonl") == kept + "{\"id\":2,\"note\":\"again\"}\n");
}

TEST_CASE("a crash in the very first batch leaves nothing that stops the next run") {
  TempDir dir;
  Output out(dir / "out.jsonl");
  REQUIRE(out.start().ok());
  CHECK(out.write({{1, "a"}}).ok());  // killed before any position was stored
  REQUIRE(out.start().ok());
  CHECK(read_file(dir / "out.jsonl").empty());
}

TEST_CASE("bytes that are not ours are never cut or appended to") {
  TempDir dir;
  Output out(dir.write("out.jsonl", "precious\n"));
  const auto started = out.start();
  REQUIRE_FALSE(started.ok());
  CHECK(started.failure().exit_code() == ExitCode::configuration);
  CHECK(read_file(dir / "out.jsonl") == "precious\n");
}

TEST_CASE("an output that is shorter than its mark, replaced or gone is refused") {
  const auto refused = [](const std::function<void(const TempDir&)>& change) {
    TempDir dir;
    Output out(dir / "out.jsonl");
    REQUIRE(out.start().ok());
    CHECK(out.write({{1, "a"}, {2, "b"}}).ok());
    out.commit();
    out.target.reset();
    change(dir);
    const auto started = out.start();
    REQUIRE_FALSE(started.ok());
    CHECK(started.failure().exit_code() == ExitCode::configuration);
    CHECK(started.failure().hint.find("another path") != std::string::npos);
  };
  refused([](const TempDir& dir) { fs::resize_file(dir / "out.jsonl", 10); });
  refused([](const TempDir& dir) { fs::rename(dir / "out.jsonl", dir / "moved"); });
  refused([](const TempDir& dir) {
    fs::rename(dir / "out.jsonl", dir / "moved");
    dir.write("out.jsonl", "something that is longer than what the pipeline had written there\n");
  });
}

TEST_CASE("a file that somebody else writes meanwhile is not written on") {
  TempDir dir;
  Output out(dir / "out.jsonl");
  REQUIRE(out.start().ok());
  CHECK(out.write({{1, "a"}}).ok());
  dir.append("out.jsonl", "foreign\n");
  CHECK_FALSE(out.write({{2, "b"}}).ok());
  CHECK(read_file(dir / "out.jsonl").ends_with("foreign\n"));
}

TEST_CASE("two pipelines do not write one file") {
  TempDir dir;
  Output one(dir / "out.jsonl");
  Output two(dir / "out.jsonl");
  REQUIRE(one.start().ok());
  const auto second = two.start();
  REQUIRE_FALSE(second.ok());
  CHECK(second.failure().exit_code() == ExitCode::temporary);
}

TEST_CASE("a missing directory and what is no file are refused before anything is made") {
  TempDir dir;
  Output missing(dir / "sub/out.jsonl");
  CHECK(missing.start().failure().hint.find("mkdir -p") != std::string::npos);
  CHECK_FALSE(fs::exists(dir / "sub"));
  Output device("/dev/null");
  CHECK_FALSE(device.start().ok());
}

TEST_CASE("a full disk is transient and leaves no part of the batch behind") {
  TempDir dir;
  Output out(dir / "out.jsonl");
  REQUIRE(out.start().ok());
  CHECK(out.write({{1, "first"}}).ok());
  const std::string before = read_file(dir / "out.jsonl");
  for (const Point point : {Point::target_write_before, Point::target_write_torn,
                            Point::target_commit_before, Point::target_commit_applied}) {
    REQUIRE(failure_point::arm(std::string(name_of(point)) + "=error:transient").ok());
    const auto written = out.write({{2, "second"}, {3, "third"}});
    REQUIRE_FALSE(written.ok());
    CHECK(written.failure().retryable());
    CHECK(read_file(dir / "out.jsonl") == before);
  }
  CHECK(out.write({{2, "second"}}).ok());
  CHECK(read_file(dir / "out.jsonl") == before + "{\"id\":2,\"note\":\"second\"}\n");
}

TEST_CASE("a write that hits the size limit is undone and fails as I/O") {
  TempDir dir;
  Output out(dir / "out.jsonl");
  REQUIRE(out.start().ok());
  CHECK(out.write({{1, "first"}}).ok());
  const std::string before = read_file(dir / "out.jsonl");
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{before.size() + 40, old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto written = out.write({{2, std::string(100, 'x')}});
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(written.ok());
  CHECK(written.failure().code == "EFBIG");
  CHECK(written.failure().exit_code() == ExitCode::io);
  CHECK(read_file(dir / "out.jsonl") == before);
}

TEST_CASE("without columns the records' own bytes are the lines") {
  TempDir dir;
  Output out(dir / "out.jsonl");
  REQUIRE(out.start({}).ok());
  CHECK(out.write_records({"{\"a\": 1.10}", "{\n \"b\":\r\n2}", "(none)"}).ok());
  CHECK(read_file(dir / "out.jsonl") == "{\"a\": 1.10}\n{  \"b\":  2}\nnull\n");
  Output raw(dir / "raw");
  raw.pipeline.format = FormatKind::raw;
  REQUIRE(raw.start({}).ok());
  const auto several = raw.write_records({"fine", "two\nlines"});
  REQUIRE_FALSE(several.ok());
  CHECK(several.failure().cls == FailureClass::invalid);
  CHECK(several.failure().where == "in/0@0");
  CHECK(several.failure().record == 1);
  CHECK(read_file(dir / "raw").empty());
}

TEST_CASE("CSV records without columns keep their header; another header is refused") {
  TempDir dir;
  Output out(dir / "out.csv", OutputFormat::csv);
  out.pipeline.format = FormatKind::csv;
  REQUIRE(out.start({}).ok());
  CHECK(out.write_records({"1,x", "2,\"a\nb\""}, "id,note").ok());
  out.commit();
  REQUIRE(out.start({}).ok());
  CHECK(out.write_records({"3,z"}, "id,note").ok());
  CHECK(read_file(dir / "out.csv") == "id,note\n1,x\n2,\"a\nb\"\n3,z\n");
  CHECK_FALSE(out.write_records({"4"}, "id").ok());
  Output json(dir / "other.csv", OutputFormat::csv);
  const auto started = json.start({});
  REQUIRE_FALSE(started.ok());
  CHECK(started.failure().exit_code() == ExitCode::configuration);
}

namespace {

// Puts another descriptor in stdout's place while it lives.
class StdoutTo {
 public:
  explicit StdoutTo(int fd) : kept_(::dup(STDOUT_FILENO)) {
    ::fflush(stdout);
    ::dup2(fd, STDOUT_FILENO);
    ::close(fd);
  }
  ~StdoutTo() {
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
  }
  StdoutTo(const StdoutTo&) = delete;
  StdoutTo& operator=(const StdoutTo&) = delete;

 private:
  int kept_;
};

}  // namespace

TEST_CASE("stdout gets whole batches, the CSV header once") {
  TempDir dir;
  Output out("", OutputFormat::csv, "stdout");
  {
    const StdoutTo file(::open((dir / "o").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(out.start().ok());
    CHECK(out.write({{1, "a"}}).ok());
    CHECK(out.write({{2, "b"}}).ok());
    CHECK_FALSE(out.target->mark());
  }
  CHECK(read_file(dir / "o") == "id,note\n1,a\n2,b\n");
}

TEST_CASE("a reader of stdout that goes away is a failure with exit 74, not a signal") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  Output out("", OutputFormat::jsonl, "stdout");
  Result<void> written;
  {
    const StdoutTo pipe(ends[1]);
    ::close(ends[0]);
    REQUIRE(out.start().ok());
    written = out.write({{1, "a"}});
  }
  std::signal(SIGPIPE, handler);
  REQUIRE_FALSE(written.ok());
  CHECK(written.failure().code == "EPIPE");
  CHECK(written.failure().exit_code() == ExitCode::io);
}

TEST_CASE("a reader of stdout that takes nothing does not hold up a cancel") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Output out("", OutputFormat::jsonl, "stdout");
  Result<void> written;
  {
    const StdoutTo pipe(ends[1]);
    REQUIRE(out.start().ok());
    out.target->cancel();
    written = out.write({{1, std::string(std::size_t{4} << 20, 'x')}});
  }
  ::close(ends[0]);
  REQUIRE_FALSE(written.ok());
  CHECK(written.failure().effect == Effect::unknown);
}
