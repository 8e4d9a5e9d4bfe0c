#include "tests/connectors/file/file_help.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <zlib.h>
#include <zstd.h>

namespace flow::test {

FileRuns::FileRuns(std::vector<std::string> paths, FormatKind format) {
  pipeline.name = "files";
  pipeline.format = format;
  pipeline.source.kind = "file";
  pipeline.source.file.paths = std::move(paths);
}

Context FileRuns::context() {
  return {.pipeline = &pipeline, .log = &log, .state = &state_, .run_id = "run", .instance_id = {}};
}

std::unique_ptr<FileRuns::Running> FileRuns::open() {
  auto running = std::make_unique<Running>();
  auto parts = make_file_source(context());
  REQUIRE(parts.ok());
  running->parts = std::move(*parts);
  return running;
}

Result<bool> FileRuns::turn(Running& running, std::vector<Taken>& out, bool commit) {
  Batch& batch = running.batch;
  batch.clear();
  auto outcome = running.parts.source->read(batch, limits, control);
  if (!outcome) return std::move(outcome).failure();
  largest_batch = std::max(largest_batch, batch.bytes);
  for (const Record& r : batch.records) {
    const Span& span = batch.spans.at(r.span);
    CHECK(r.offset.value >= span.from.next);
    CHECK(r.offset.value < span.next.next);
    CHECK(r.value.data() != nullptr);
    const std::string name = std::filesystem::path(span.partition.topic).filename();
    out.push_back({name, r.offset.value, std::string(r.value)});
    lines.push_back(r.line);
    if (r.header_count == 0) continue;
    CHECK(r.header_count == 1);
    CHECK(batch.headers.at(r.header_first).name == "csv.header");
    headers.emplace_back(batch.headers.at(r.header_first).value);
  }
  if (!batch.spans.empty()) ++commits;
  if (commit && !batch.spans.empty()) {
    auto committed = running.parts.positions->commit(batch.spans, {});
    REQUIRE(committed.ok());
  }
  return *outcome == ReadOutcome::more;
}

std::vector<Taken> FileRuns::run() {
  std::vector<Taken> out;
  auto running = open();
  auto opened = running->parts.source->open(listener_);
  REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.failure().text()));
  for (;;) {
    auto more = turn(*running, out, true);
    REQUIRE_MESSAGE(more.ok(), (more.ok() ? "" : more.failure().text()));
    if (!*more) break;
  }
  running->parts.source->close();
  return out;
}

Failure FileRuns::failing_run(std::vector<Taken>* before) {
  std::vector<Taken> out;
  auto running = open();
  auto opened = running->parts.source->open(listener_);
  if (!opened) return opened.failure();
  for (;;) {
    auto more = turn(*running, out, true);
    if (before != nullptr) *before = out;
    if (!more) return more.failure();
    REQUIRE(*more);
  }
}

std::vector<Taken> FileRuns::killed_run(std::size_t batches) {
  std::vector<Taken> out;
  auto running = open();
  REQUIRE(running->parts.source->open(listener_).ok());
  for (std::size_t i = 0; i < batches; ++i) {
    auto more = turn(*running, out, true);
    REQUIRE(more.ok());
    if (!*more) return out;
  }
  std::vector<Taken> lost;
  REQUIRE(turn(*running, lost, false).ok());
  return out;
}

void FileRuns::start_following() {
  following_ = std::make_unique<Running>();
  Context c = context();
  c.follow = true;
  auto parts = make_file_source(c);
  REQUIRE(parts.ok());
  following_->parts = std::move(*parts);
  auto opened = following_->parts.source->open(listener_);
  REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.failure().text()));
}

void FileRuns::follow_until(std::size_t records) {
  const bool there = wait_for(std::chrono::seconds(30), [&] {
    auto more = turn(*following_, followed, true);
    REQUIRE_MESSAGE(more.ok(), (more.ok() ? "" : more.failure().text()));
    CHECK(*more);
    return followed.size() >= records;
  });
  CHECK_MESSAGE(there, "only " << followed.size() << " records came");
}

void FileRuns::follow_until_log(const std::string& part) {
  const bool there = wait_for(std::chrono::seconds(30), [&] {
    auto more = turn(*following_, followed, true);
    REQUIRE_MESSAGE(more.ok(), (more.ok() ? "" : more.failure().text()));
    return log.has(part);
  });
  CHECK_MESSAGE(there, "not in the log: " << part);
}

Failure FileRuns::follow_to_failure() {
  std::optional<Failure> failure;
  const bool failed = wait_for(std::chrono::seconds(30), [&] {
    auto more = turn(*following_, followed, true);
    if (!more) failure = more.failure();
    return failure.has_value();
  });
  REQUIRE(failed);
  return *failure;
}

std::int64_t FileRuns::position(const std::string& path) const {
  const auto& spans = data->positions[pipeline.name];
  const auto at = spans.find(PartitionId{path, 0});
  return at == spans.end() ? -1 : at->second.next.next;
}

std::string gzip(const std::string& bytes) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, bytes.size()) + 64, '\0');
  std::string in = bytes;
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

std::string zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  REQUIRE(ZSTD_isError(n) == 0U);
  out.resize(n);
  return out;
}

std::string json_lines(int first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += "{\"n\":" + std::to_string(first + i) + "}\n";
  return out;
}

std::vector<std::string> values(const std::vector<Taken>& taken) {
  std::vector<std::string> out;
  for (const Taken& t : taken) out.push_back(t.value);
  return out;
}

}  // namespace flow::test
