// Files that are read on as they grow, are rotated, truncated, replaced and come into being.
#include <algorithm>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "tests/connectors/file/file_help.h"

using namespace flow;
using namespace flow::test;
using Values = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

void truncate_to(const fs::path& path, const std::string& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC);
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

Values lines(int first, int count) {
  Values out;
  for (int i = 0; i < count; ++i) out.push_back("{\"n\":" + std::to_string(first + i) + "}");
  return out;
}

Values operator+(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("follow: what is written is read; a torn last line waits until it is completed") {
  TempDir dir;
  FileRuns runs({dir.write("in.jsonl", json_lines(1, 2) + "{\"n\"")});
  runs.start_following();
  runs.follow_until(2);
  dir.append("in.jsonl", ":3");
  dir.write("other.jsonl", "x");  // time passes
  runs.follow_until(2);
  CHECK(runs.position(dir / "in.jsonl") == 16);
  dir.append("in.jsonl", "}\n");
  runs.follow_until(3);
  CHECK(runs.followed == std::vector<Taken>{{"in.jsonl", 0, "{\"n\":1}"},
                                            {"in.jsonl", 8, "{\"n\":2}"},
                                            {"in.jsonl", 16, "{\"n\":3}"}});
  runs.stop_following();
  CHECK(runs.run().empty());
}

TEST_CASE("follow: a line that comes byte by byte comes once and whole") {
  TempDir dir;
  FileRuns runs({dir.write("in.csv", "")}, FormatKind::csv);
  runs.start_following();
  for (const char c : std::string("\xEF\xBB\xBFid,note\r\n1,\"a\r\nb\"\r\n2,c\r\n")) {
    dir.append("in.csv", std::string(1, c));
    runs.follow_until(0);
  }
  runs.follow_until(2);
  CHECK(runs.followed == std::vector<Taken>{{"in.csv", 12, "1,\"a\r\nb\""}, {"in.csv", 22, "2,c"}});
  CHECK(runs.headers == Values{"id,note", "id,note"});
}

TEST_CASE("follow: files that come later are read; a pattern without files waits for them") {
  TempDir dir;
  FileRuns runs({dir / "*.jsonl"});
  runs.start_following();
  runs.follow_until(0);
  dir.write("b.jsonl", json_lines(1, 2));
  runs.follow_until(2);
  dir.write("a.jsonl", json_lines(10, 1));
  runs.follow_until(3);
  CHECK(values(runs.followed) == lines(1, 2) + lines(10, 1));
}

TEST_CASE(
    "follow: rotation, with and without a pattern for the old name: each record once, old first") {
  for (const std::string pattern : {"app.log", "app.log*"}) {
    CAPTURE(pattern);
    TempDir dir;
    dir.write("app.log", json_lines(1, 20));
    FileRuns runs({dir / pattern});
    runs.start_following();
    runs.follow_until(20);
    dir.append("app.log", json_lines(21, 3));
    fs::rename(dir / "app.log", dir / "app.log.1");
    dir.append("app.log.1", json_lines(24, 1));
    dir.write("app.log", json_lines(100, 2));
    runs.follow_until(26);
    CHECK(values(runs.followed) == lines(1, 24) + lines(100, 2));
    CHECK(runs.log.has("file.rotated"));
    fs::rename(dir / "app.log.1", dir / "app.log.2");
    fs::rename(dir / "app.log", dir / "app.log.1");
    dir.write("app.log", json_lines(200, 1));
    runs.follow_until(27);
    CHECK(runs.followed.back() == Taken{"app.log", 0, "{\"n\":200}"});
    runs.stop_following();
    CHECK(runs.run().empty());
  }
}

TEST_CASE("follow: the unfinished last line of a rotated file is read when its writer is done") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 2) + "{\"n\":3}");
  FileRuns runs({dir / "app.log"});
  runs.start_following();
  runs.follow_until(2);
  fs::rename(dir / "app.log", dir / "app.log.1");
  dir.write("app.log", json_lines(4, 1));
  runs.follow_until(4);
  CHECK(values(runs.followed) == lines(1, 4));
}

TEST_CASE("follow: a deleted file is read to its end through the open descriptor") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 2));
  FileRuns runs({dir / "app.log"});
  runs.start_following();
  runs.follow_until(2);
  const int writer = ::open((dir / "app.log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  fs::remove(dir / "app.log");
  dir.write("app.log", json_lines(10, 1));
  const std::string late = json_lines(3, 2);
  REQUIRE(::write(writer, late.data(), late.size()) == static_cast<ssize_t>(late.size()));
  ::close(writer);
  runs.follow_until(5);
  CHECK(values(runs.followed) == lines(1, 4) + lines(10, 1));
  CHECK(runs.position(dir / "app.log") == 9);
  runs.stop_following();
  CHECK(runs.run().empty());
}

TEST_CASE("follow: a truncated file is read from its start again, and it is said") {
  for (const int again : {1, 500}) {
    TempDir dir;
    dir.write("app.log", json_lines(1, 100));
    FileRuns runs({dir / "app.log"});
    runs.start_following();
    runs.follow_until(100);
    truncate_to(dir / "app.log", json_lines(1000, again));
    runs.follow_until(100 + static_cast<std::size_t>(again));
    CHECK((values(runs.followed) == lines(1, 100) + lines(1000, again)));
    CHECK(runs.log.has("file.truncated"));
    runs.stop_following();
    CHECK(runs.run().empty());
  }
}

TEST_CASE("follow: copytruncate repeats nothing and leaves nothing out") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 100));
  FileRuns runs({dir / "app.log*"});
  runs.start_following();
  runs.follow_until(100);
  fs::copy_file(dir / "app.log", dir / "app.log.1");  // the copy is there before the file is cut
  const auto scanned = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < scanned) runs.follow_until(100);
  dir.append("app.log.1", json_lines(101, 1));
  truncate_to(dir / "app.log", json_lines(5000, 1));
  runs.follow_until(102);
  auto all = values(runs.followed);
  std::sort(all.begin() + 100, all.end());
  CHECK(all == lines(1, 101) + lines(5000, 1));
  CHECK(runs.log.has("file.copied"));
  runs.stop_following();
  CHECK(runs.run().empty());
}

TEST_CASE("follow: a file that is cut and stays cut ends the run with the ways out") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 100));
  FileRuns runs({dir / "app.log"});
  runs.start_following();
  runs.follow_until(100);
  fs::resize_file(dir / "app.log", 300);
  const Failure f = runs.follow_to_failure();
  CHECK(f.exit_code() == ExitCode::configuration);
  CHECK(f.what.find("300 bytes") != std::string::npos);
}

TEST_CASE("follow: compressed files that come are read once") {
  TempDir dir;
  FileRuns runs({dir / "*.gz"});
  runs.start_following();
  dir.write("part", gzip(json_lines(1, 3)));
  fs::rename(dir / "part", dir / "1.gz");
  runs.follow_until(3);
  fs::remove(dir / "1.gz");
  dir.write("part", gzip(json_lines(10, 3)));
  fs::rename(dir / "part", dir / "2.gz");
  runs.follow_until(6);
  CHECK(values(runs.followed) == lines(1, 3) + lines(10, 3));
}

TEST_CASE("follow: a compressed file under a known name, with other content, is another file") {
  TempDir dir;
  FileRuns runs({dir / "*.gz"});
  runs.start_following();
  for (const int first : {1, 100, 200}) {
    dir.write("part", gzip(json_lines(first, 3)));
    fs::rename(dir / "part", dir / "1.gz");
    runs.follow_until(runs.followed.size() + 3);
  }
  CHECK(values(runs.followed) == lines(1, 3) + lines(100, 3) + lines(200, 3));
}

TEST_CASE("follow: a directory among the matches is said once and passed over") {
  TempDir dir;
  dir.write("a.jsonl", json_lines(1, 1));
  FileRuns runs({dir / "*.jsonl"});
  runs.start_following();
  fs::create_directory(dir / "b.jsonl");
  runs.follow_until_log("file.skipped");
  dir.append("a.jsonl", json_lines(2, 1));
  runs.follow_until(2);
  CHECK(values(runs.followed) == lines(1, 2));
}

TEST_CASE("follow: a run goes on from a followed file's position, and the other way round") {
  TempDir dir;
  FileRuns runs({dir.write("in.jsonl", json_lines(1, 10))});
  runs.start_following();
  runs.follow_until(10);
  runs.stop_following();
  dir.append("in.jsonl", json_lines(11, 2));
  CHECK(values(runs.run()) == lines(11, 2));
  dir.append("in.jsonl", json_lines(13, 2));
  runs.start_following();
  runs.follow_until(12);
  CHECK(values(runs.followed) == lines(1, 10) + lines(13, 2));
}
