// Compressed input, pipes and stdin.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "connectors/file_io.h"
#include "tests/connectors/file/file_help.h"

using namespace flow;
using namespace flow::test;
using Values = std::vector<std::string>;

namespace {

// Bytes that do not compress away.
std::string noisy_lines(int count) {
  std::string out;
  std::uint64_t x = 88172645463325252ULL;
  for (int i = 0; i < count; ++i) {
    out += "{\"n\":" + std::to_string(i) + ",\"x\":\"";
    for (int k = 0; k < 4; ++k) {
      x ^= x << 13U;
      x ^= x >> 7U;
      x ^= x << 17U;
      out += std::to_string(x);
    }
    out += "\"}\n";
  }
  return out;
}

Values lines_of(const std::string& bytes) {
  Values out;
  std::size_t at = 0;
  for (std::size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n', at)) {
    out.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Puts another descriptor in stdin's place while it lives.
class StdinFrom {
 public:
  explicit StdinFrom(int fd) : kept_(::dup(STDIN_FILENO)) {
    ::dup2(fd, STDIN_FILENO);
    ::close(fd);
  }
  ~StdinFrom() {
    ::dup2(kept_, STDIN_FILENO);
    ::close(kept_);
  }
  StdinFrom(const StdinFrom&) = delete;
  StdinFrom& operator=(const StdinFrom&) = delete;

 private:
  int kept_;
};

void send(int fd, const std::string& bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + at, bytes.size() - at);
    REQUIRE(n > 0);
    at += static_cast<std::size_t>(n);
  }
}

}  // namespace

TEST_CASE("compressed files give the records of the plain one, with their places in it") {
  const std::string bytes = noisy_lines(40'000);
  const std::size_t half = bytes.size() / 2;
  TempDir dir;
  const auto plain = FileRuns({dir.write("in", bytes)}).run();
  REQUIRE(values(plain) == lines_of(bytes));
  const auto a = bytes.substr(0, half);
  const auto b = bytes.substr(half);
  const std::string padded = gzip(a) + gzip(b) + std::string(700, '\0');
  for (const std::string& packed : {gzip(bytes), gzip(a) + gzip(b), padded, zstd(bytes),
                                    zstd(a) + zstd("") + zstd(b), gzip("") + gzip(bytes)}) {
    FileRuns runs({dir.write("in", packed)});
    CHECK((runs.run() == plain));
    CHECK(runs.run().empty());
    CHECK(runs.commits > 0);
  }
}

TEST_CASE("a finished compressed file is not unpacked again, a grown one goes on") {
  TempDir dir;
  FileRuns runs({dir.write("in.gz", gzip(json_lines(1, 3)))});
  CHECK(runs.run().size() == 3);
  const std::size_t commits = runs.commits;
  CHECK(runs.run().empty());
  CHECK(runs.commits == commits);
  dir.append("in.gz", gzip(json_lines(4, 2)));
  CHECK(runs.run() == std::vector<Taken>{{"in.gz", 24, "{\"n\":4}"}, {"in.gz", 32, "{\"n\":5}"}});
}

TEST_CASE("what is cut short or damaged fails naming file and byte, after the records before it") {
  const std::string bytes = noisy_lines(20'000);
  for (const bool gz : {true, false}) {
    const std::string packed = gz ? gzip(bytes) : zstd(bytes);
    for (const std::size_t cut : {packed.size() / 2, packed.size() - 1}) {
      CAPTURE(cut);
      TempDir dir;
      const std::string path = dir.write("in", packed.substr(0, cut));
      std::vector<Taken> before;
      FileRuns runs({path});
      const Failure f = runs.failing_run(&before);
      CHECK(f.exit_code() == ExitCode::data);
      CHECK(f.where == path + " byte " + std::to_string(cut));
      CHECK(f.what.find("cut short") != std::string::npos);
      REQUIRE(before.size() > 1000);
      const auto all = lines_of(bytes);
      CHECK((values(before) ==
             Values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before.size()))));
      dir.write("in", packed);  // the whole file arrives: the rest is read
      const auto rest = values(runs.run());
      CHECK((rest == Values(all.begin() + static_cast<std::ptrdiff_t>(before.size()), all.end())));
    }
    std::string damaged = packed;
    for (std::size_t i = 0; i < 64; ++i) damaged[packed.size() / 2 + i] ^= 0x5a;
    TempDir dir;
    const Failure f = FileRuns({dir.write("in", damaged)}).failing_run();
    CHECK(f.exit_code() == ExitCode::data);
    CHECK(f.where.starts_with((dir / "in").string() + " byte "));
  }
  TempDir dir;
  const Failure f = FileRuns({dir.write("in", gzip("a\n") + "garbage")}).failing_run();
  CHECK(f.what.find("not a gzip member") != std::string::npos);
}

TEST_CASE("compression: none reads the bytes as they are, gzip insists") {
  TempDir dir;
  FileRuns none({dir.write("in", "\x1f\x8bnot packed\n")}, FormatKind::raw);
  none.pipeline.source.file.compression = Compression::none;
  CHECK(values(none.run()) == Values{"\x1f\x8bnot packed"});
  FileRuns insists({dir.write("in2", "{}\n")});
  insists.pipeline.source.file.compression = Compression::gzip;
  CHECK(insists.failing_run().exit_code() == ExitCode::data);
}

TEST_CASE("stdin is read to its end, keeps no position, and is waited for without blocking") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const StdinFrom in(ends[0]);
  FileRuns runs({"-"});
  std::thread writer([&] {
    send(ends[1], "{\"n\":1}\n{\"n\"");
    ::usleep(150'000);
    send(ends[1], ":2}\n{\"n\":3}");
    ::close(ends[1]);
  });
  CHECK(runs.run() ==
        std::vector<Taken>{{"-", 0, "{\"n\":1}"}, {"-", 8, "{\"n\":2}"}, {"-", 16, "{\"n\":3}"}});
  writer.join();
  CHECK(runs.data->positions["files"].empty());
}

TEST_CASE("compressed stdin") {
  for (const std::string& packed : {gzip(json_lines(1, 3)), zstd(json_lines(1, 3))}) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const StdinFrom in(ends[0]);
    FileRuns runs({"-"});
    std::thread writer([&] {
      for (const char c : packed) send(ends[1], std::string(1, c));
      ::close(ends[1]);
    });
    CHECK(values(runs.run()) == Values{"{\"n\":1}", "{\"n\":2}", "{\"n\":3}"});
    writer.join();
  }
}

TEST_CASE("a named pipe is waited for and read to its end") {
  TempDir dir;
  const std::string path = dir / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  FileRuns runs({path});
  std::thread writer([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    send(fd, json_lines(1, 2));
    ::close(fd);
  });
  CHECK(values(runs.run()) == Values{"{\"n\":1}", "{\"n\":2}"});
  writer.join();
  CHECK(runs.data->positions["files"].empty());
}

TEST_CASE("errno decides the class and the exit code") {
  CHECK(files::io_failure("f", "write", ENOSPC).cls == FailureClass::transient);
  CHECK(files::io_failure("f", "write", EDQUOT).cls == FailureClass::transient);
  CHECK(files::io_failure("f", "read", EIO).exit_code() == ExitCode::io);
  CHECK(files::io_failure("f", "open", EACCES).exit_code() == ExitCode::configuration);
  CHECK(files::io_failure("f", "open", ENOENT).text() ==
        "f: cannot open: No such file or directory [ENOENT]; check that the path is still there");
}
