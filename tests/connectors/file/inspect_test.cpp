// What offsets inspect and check say of files.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "tests/connectors/file/file_help.h"

using namespace flow;
using namespace flow::test;
namespace fs = std::filesystem;

namespace {

OffsetRow row_of(FileRuns& runs, const fs::path& path) {
  auto rows = inspect_files(runs.context());
  REQUIRE(rows.ok());
  for (OffsetRow& r : *rows) {
    if (r.partition.topic == path) return r;
  }
  FAIL("no row for " << path.string());
  return {};
}

}  // namespace

TEST_CASE("inspect: size, position and lag of a file that is new, read and grown") {
  TempDir dir;
  const auto path = dir.write("in.jsonl", json_lines(1, 10));
  FileRuns runs({path});
  OffsetRow row = row_of(runs, path);
  CHECK(row.verdict == "no_position");
  CHECK(row.high == 81);
  CHECK(row.lag == 81);
  CHECK_FALSE(row.committed);
  runs.run();
  row = row_of(runs, path);
  CHECK(row.verdict == "caught_up");
  CHECK(row.committed == 81);
  CHECK(row.state == 81);
  CHECK(row.lag == 0);
  CHECK(row.reason.starts_with("same"));
  dir.append("in.jsonl", json_lines(11, 1));
  row = row_of(runs, path);
  CHECK(row.verdict == "behind");
  CHECK(row.lag == 9);
}

TEST_CASE("inspect: rotated, replaced, truncated, cut and gone files are told apart") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 100));
  FileRuns runs({dir / "app.log*"});
  runs.run();
  const std::int64_t size = runs.position(dir / "app.log");
  fs::rename(dir / "app.log", dir / "app.log.1");
  OffsetRow row = row_of(runs, dir / "app.log.1");
  CHECK(row.reason.starts_with("rotated"));
  CHECK(row.lag == 0);
  dir.write("app.log", json_lines(500, 1));
  row = row_of(runs, dir / "app.log");
  CHECK(row.reason.starts_with("replaced"));
  CHECK(row.lag == 10);
  fs::remove(dir / "app.log");
  fs::rename(dir / "app.log.1", dir / "app.log");
  fs::resize_file(dir / "app.log", 400);
  row = row_of(runs, dir / "app.log");
  CHECK(row.verdict == "blocked");
  CHECK(row.reason.starts_with("cut"));
  CHECK(row.committed == size);
  const int fd = ::open((dir / "app.log").c_str(), O_WRONLY | O_TRUNC);
  ::close(fd);
  row = row_of(runs, dir / "app.log");
  CHECK(row.reason.starts_with("truncated"));
  fs::remove(dir / "app.log");
  row = row_of(runs, dir / "app.log");
  CHECK(row.verdict == "unknown");
  CHECK(row.reason.starts_with("gone"));
  CHECK(row.committed == size);
}

TEST_CASE("inspect: what is left of a compressed file is unknown until it was read to its end") {
  TempDir dir;
  const auto path = dir.write("in.gz", gzip(json_lines(1, 100)));
  FileRuns runs({path});
  OffsetRow row = row_of(runs, path);
  CHECK_FALSE(row.lag);
  runs.run();
  row = row_of(runs, path);
  CHECK(row.lag == 0);
  CHECK(row.high == row.committed);
  CHECK(row.verdict == "caught_up");
}

TEST_CASE("check: says what is there, refuses what a run would refuse") {
  TempDir dir;
  dir.write("a.gz", gzip("x"));
  dir.write("b.jsonl", "{}\n");
  FileRuns runs({dir / "*"});
  auto notes = check_file_source(runs.context());
  REQUIRE(notes.ok());
  REQUIRE(notes->size() == 2);
  CHECK((*notes)[0].find("gzip") != std::string::npos);
  CHECK((*notes)[1] == (dir / "b.jsonl").string() + ": 3 bytes, new");
  FileRuns none({dir / "*.csv"});
  CHECK_FALSE(check_file_source(none.context()).ok());
}
