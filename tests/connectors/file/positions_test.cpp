// Where reading goes on: never a record twice, never one left out, whatever happened to the file in
// between.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "connectors/file_identity.h"
#include "tests/connectors/file/file_help.h"

using namespace flow;
using namespace flow::test;
using Values = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

// Overwrites the content, keeping the inode.
void rewrite(const fs::path& path, const std::string& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC);
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

// A new inode under this name, whatever the file system reuses.
void replace(const fs::path& path, const std::string& bytes) {
  const fs::path other = path.string() + ".new";
  const int fd = ::open(other.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  ::close(fd);
  fs::rename(other, path);
}

}  // namespace

TEST_CASE("files come in byte order of their names, path by path, none twice") {
  TempDir dir;
  for (const std::string name : {"b", "a10", "a2", "B", "a1"}) dir.write(name, name + "\n");
  dir.write("other", "other\n");
  FileRuns runs({dir / "other", dir / "[aB]*", dir / "*"}, FormatKind::raw);
  CHECK(values(runs.run()) == Values{"other", "B", "a1", "a10", "a2", "b"});
  CHECK(runs.run().empty());
}

TEST_CASE("a name with wildcard characters in it that exists is that file") {
  TempDir dir;
  FileRuns runs({dir.write("x[1].jsonl", json_lines(1, 1))});
  CHECK(values(runs.run()) == Values{"{\"n\":1}"});
}

TEST_CASE("a file under two names is read once, through a symlink too") {
  TempDir dir;
  dir.write("a.jsonl", json_lines(1, 2));
  fs::create_symlink(dir / "a.jsonl", dir / "current.jsonl");
  FileRuns runs({dir / "*.jsonl"});
  CHECK(values(runs.run()) == Values{"{\"n\":1}", "{\"n\":2}"});
}

TEST_CASE("nothing to read, a directory and an unknown file are refused before the first read") {
  TempDir dir;
  fs::create_directory(dir / "sub");
  const Failure none = FileRuns({dir / "*.jsonl"}).failing_run();
  CHECK(none.exit_code() == ExitCode::configuration);
  CHECK(none.where.find((dir / "*.jsonl").string()) != std::string::npos);
  const Failure missing = FileRuns({dir / "in.jsonl"}).failing_run();
  CHECK(missing.exit_code() == ExitCode::configuration);
  CHECK(missing.what == "there is no such file");
  const Failure directory = FileRuns({dir / "sub"}).failing_run();
  CHECK(directory.exit_code() == ExitCode::configuration);
  CHECK(directory.what == "is a directory, not a file");
}

TEST_CASE("a run resumed at every record gives what one straight run gives") {
  std::string bytes = "\xEF\xBB\xBFname,note\r\n";
  for (int i = 0; i < 40; ++i) {
    bytes += std::to_string(i) + (i % 5 == 0 ? ",\"two\r\nlines\"" : ",x");
    bytes += i % 3 == 0 ? "\r\n" : "\n";
    if (i % 7 == 0) bytes += "\n";
  }
  bytes += "last,line";
  for (const std::string name : {"in.csv", "in.csv.gz", "in.csv.zst"}) {
    for (const FormatKind format : {FormatKind::csv, FormatKind::raw, FormatKind::json}) {
      TempDir dir;
      const bool gz = name.ends_with(".gz");
      const bool zst = name.ends_with(".zst");
      dir.write(name, gz ? gzip(bytes) : zst ? zstd(bytes) : bytes);
      const auto straight = FileRuns({dir / name}, format).run();
      REQUIRE(straight.size() >= 41);
      for (std::size_t records = 1; records <= straight.size(); ++records) {
        FileRuns runs({dir / name}, format);
        runs.limits.records = records;
        auto taken = runs.killed_run(1);
        runs.limits.records = 7;
        for (;;) {
          const auto more = runs.killed_run(1);
          if (more.empty()) break;
          taken.insert(taken.end(), more.begin(), more.end());
        }
        CHECK(taken == straight);
        for (const std::string& header : runs.headers) CHECK(header == "name,note");
      }
    }
  }
}

TEST_CASE("a file that has grown goes on where it stopped") {
  TempDir dir;
  FileRuns runs({dir.write("in.jsonl", json_lines(1, 2))});
  CHECK(runs.run().size() == 2);
  dir.append("in.jsonl", json_lines(3, 2));
  CHECK(runs.run() ==
        std::vector<Taken>{{"in.jsonl", 16, "{\"n\":3}"}, {"in.jsonl", 24, "{\"n\":4}"}});
  CHECK(runs.run().empty());
}

TEST_CASE("a last line that was read without line feed: its line feed is no record") {
  for (const std::string end : {"\n", "\r\n"}) {
    TempDir dir;
    FileRuns runs({dir.write("in", "a\nb")}, FormatKind::raw);
    CHECK(values(runs.run()) == Values{"a", "b"});
    CHECK(runs.run().empty());
    dir.append("in", end + "c\n");
    CHECK(values(runs.run()) == Values{"c"});
  }
}

TEST_CASE("a last line that was read cut and goes on later is read again whole, and it is said") {
  for (const bool compressed : {false, true}) {
    TempDir dir;
    FileRuns runs({dir.write("in", compressed ? gzip("a\nbb") : "a\nbb")}, FormatKind::raw);
    CHECK(values(runs.run()) == Values{"a", "bb"});
    dir.append("in", compressed ? gzip("bcc\nd\n") : "bcc\nd\n");
    CHECK(runs.run() == std::vector<Taken>{{"in", 2, "bbbcc"}, {"in", 8, "d"}});
    CHECK(runs.log.has("file.record_continued"));
    CHECK(runs.run().empty());
  }
}

TEST_CASE("a renamed file is the same file") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 50));
  FileRuns runs({dir / "app.log*"});
  CHECK(runs.run().size() == 50);
  fs::rename(dir / "app.log", dir / "app.log.1");
  CHECK(runs.run().empty());
  CHECK(runs.log.has("file.rotated path=" + (dir / "app.log.1").string()));
  dir.append("app.log.1", json_lines(51, 1));
  CHECK(values(runs.run()) == Values{"{\"n\":51}"});
}

TEST_CASE("a rotated file's rest comes before the file that took its name, each record once") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 30));
  for (const std::string pattern : {"app.log*", "app.log"}) {
    CAPTURE(pattern);
    FileRuns runs({dir / pattern});
    runs.run();
    dir.append("app.log", json_lines(100, 2));
    fs::rename(dir / "app.log", dir / "app.log.1");
    dir.write("app.log", json_lines(200, 30));
    auto taken = values(runs.run());
    REQUIRE(taken.size() == 32);
    CHECK(taken[0] == "{\"n\":100}");
    CHECK(taken[1] == "{\"n\":101}");
    CHECK(taken[2] == "{\"n\":200}");
    CHECK_FALSE(runs.log.has("file.replaced"));
    CHECK(runs.run().empty());
    fs::remove(dir / "app.log");
    fs::rename(dir / "app.log.1", dir / "app.log");
  }
}

TEST_CASE("a crash in the middle of a rotation repeats nothing that was committed") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 30));
  FileRuns runs({dir / "app.log*"});
  runs.run();
  fs::rename(dir / "app.log", dir / "app.log.1");
  dir.write("app.log", json_lines(200, 30));
  runs.limits.records = 4;
  Values all;
  for (;;) {
    const auto taken = values(runs.killed_run(1));
    if (taken.empty()) break;
    all.insert(all.end(), taken.begin(), taken.end());
  }
  std::string lines;
  for (const auto& v : all) lines += v + "\n";
  CHECK(lines == json_lines(200, 30));
}

TEST_CASE("a rotated and compressed file is known by its content") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 30));
  FileRuns runs({dir / "app.log*"});
  runs.run();
  dir.write("app.log.1.gz", gzip(json_lines(1, 31)));
  fs::remove(dir / "app.log");
  dir.write("app.log", json_lines(200, 1));
  CHECK(values(runs.run()) == Values{"{\"n\":31}", "{\"n\":200}"});
  CHECK(runs.log.has("file.copied"));
  CHECK(runs.run().empty());
}

TEST_CASE("a file that was cut below the position is refused with the ways out") {
  TempDir dir;
  dir.write("in.jsonl", json_lines(1, 100));
  FileRuns runs({dir / "*.jsonl"});
  runs.run();
  fs::resize_file(dir / "in.jsonl", 500);
  dir.write("first.jsonl", json_lines(900, 1));
  std::vector<Taken> before;
  const Failure f = runs.failing_run(&before);
  CHECK(before.empty());  // refused before anything is read
  CHECK(f.exit_code() == ExitCode::configuration);
  CHECK(f.where == (dir / "in.jsonl").string());
  CHECK(f.what.find("500 bytes") != std::string::npos);
  CHECK(f.hint.find("copy it to a new name") != std::string::npos);
  fs::copy_file(dir / "in.jsonl", dir / "again.jsonl");
  fs::remove(dir / "in.jsonl");
  fs::remove(dir / "first.jsonl");
  const auto again = runs.run();  // the way out works
  REQUIRE(again.size() > 50);
  CHECK(again[0] == Taken{"again.jsonl", 0, "{\"n\":1}"});
}

TEST_CASE("other content in the same inode is read from its start, and it is said") {
  for (const int lines : {0, 1, 10, 300}) {
    CAPTURE(lines);
    TempDir dir;
    dir.write("in.jsonl", json_lines(1, 100));
    FileRuns runs({dir / "in.jsonl"});
    runs.run();
    rewrite(dir / "in.jsonl", json_lines(5000, lines));
    CHECK(runs.run().size() == static_cast<std::size_t>(lines));
    CHECK(runs.log.has("file.truncated"));
    dir.append("in.jsonl", json_lines(9000, 1));
    CHECK(values(runs.run()) == Values{"{\"n\":9000}"});
  }
}

TEST_CASE("another file under a known name is read from its start, and it is said") {
  TempDir dir;
  dir.write("in.jsonl", json_lines(1, 100));
  FileRuns runs({dir / "in.jsonl"});
  runs.run();
  replace(dir / "in.jsonl", json_lines(5000, 3));
  CHECK(runs.run().size() == 3);
  CHECK(runs.log.has("file.replaced"));
  CHECK(runs.run().empty());
}

TEST_CASE("the same head with other content behind it is another file") {
  TempDir dir;
  const std::string head = json_lines(1, 300);
  dir.write("in.jsonl", head + json_lines(1000, 10));
  FileRuns runs({dir / "in.jsonl"});
  runs.run();
  replace(dir / "in.jsonl", head + json_lines(2000, 20));
  CHECK(runs.run().size() == 320);
  CHECK(runs.log.has("file.replaced"));
}

TEST_CASE("a restored copy of a file goes on where the file stood, and it is said") {
  TempDir dir;
  dir.write("in.jsonl", json_lines(1, 100));
  FileRuns runs({dir / "in.jsonl"});
  runs.run();
  replace(dir / "in.jsonl", json_lines(1, 102));
  CHECK(values(runs.run()) == Values{"{\"n\":101}", "{\"n\":102}"});
  CHECK(runs.log.has("file.copied"));
}

TEST_CASE("a second file with the same content is a file of its own while the first is there") {
  TempDir dir;
  dir.write("a.jsonl", json_lines(1, 100));
  FileRuns runs({dir / "*.jsonl"});
  runs.run();
  dir.write("b.jsonl", json_lines(1, 100));
  CHECK(runs.run().size() == 100);
}

TEST_CASE("copytruncate: the copy goes on where the file stood, the file starts over") {
  TempDir dir;
  dir.write("app.log", json_lines(1, 100));
  FileRuns runs({dir / "app.log*"});
  runs.run();
  dir.append("app.log", json_lines(101, 1));
  fs::copy_file(dir / "app.log", dir / "app.log.1");
  rewrite(dir / "app.log", json_lines(7000, 2));
  CHECK(values(runs.run()) == Values{"{\"n\":101}", "{\"n\":7000}", "{\"n\":7001}"});
  CHECK(runs.run().empty());
}

TEST_CASE("a file that is gone is said to be gone") {
  TempDir dir;
  dir.write("a.jsonl", json_lines(1, 3));
  dir.write("b.jsonl", json_lines(4, 3));
  FileRuns runs({dir / "*.jsonl"});
  runs.run();
  fs::remove(dir / "a.jsonl");
  CHECK(runs.run().empty());
  CHECK(runs.log.has("file.gone files=1 first=" + (dir / "a.jsonl").string()));
}

TEST_CASE("a dry run commits nothing") {
  TempDir dir;
  FileRuns runs({dir.write("in.jsonl", json_lines(1, 3))});
  Context context = runs.context();
  context.dry_run = true;
  auto parts = make_file_source(context);
  REQUIRE(parts.ok());
  const Span span{{dir / "in.jsonl", 0}, {0}, {8}, "v1:1:2:-:-:-:-"};
  CHECK(parts->positions->commit({span}, {{"t", "m"}}).ok());
  CHECK(runs.data->positions["files"].empty());
  CHECK(runs.data->marks["files"].empty());
}

TEST_CASE("a stored identity of another version is refused, not guessed at") {
  TempDir dir;
  FileRuns runs({dir.write("in.jsonl", json_lines(1, 3))});
  runs.data->positions["files"][{dir / "in.jsonl", 0}] = {{dir / "in.jsonl", 0}, {8}, {8}, "v2:x"};
  CHECK(runs.failing_run().exit_code() == ExitCode::configuration);
}

TEST_CASE("an identity survives its text") {
  files::Identity id;
  id.device = 2049;
  id.inode = ~std::uint64_t{0};
  CHECK(files::Identity::parse(id.text())->text() == id.text());
  id.set_heads(std::string(700, 'x'));
  id.tail_at = 1234567890123;
  id.tail_digest = 42;
  id.open_record = 0;
  id.ended = {99, 12};
  const auto again = files::Identity::parse(id.text());
  REQUIRE(again);
  CHECK(again->text() == id.text());
  CHECK(again->heads.size() == 3);
  CHECK(again->heads.back().size == 700);
  CHECK(again->open_record == 0);
  for (const std::string bad :
       {"", "v1", "v1:1:2:-:-:-", "v1:x:2:-:-:-:-", "v1:1:2:64.zz:-:-:-", "v1:1:2:64.1,64.2:-:-:-",
        "v1:1:2:-:0.1:-:-", "v1:1:2:-:-:-:-:", "v2:1:2:-:-:-:-", "v1:1:2:9999.1:-:-:-"}) {
    CAPTURE(bad);
    CHECK_FALSE(files::Identity::parse(bad));
  }
}
