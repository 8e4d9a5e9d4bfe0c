// Where records begin and end.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "connectors/file_framing.h"
#include "connectors/file_window.h"
#include "tests/connectors/file/file_help.h"

using namespace flow;
using namespace flow::test;
using Values = std::vector<std::string>;

namespace {

// What a framer finds when the bytes come in pieces of `piece`.
std::vector<Taken> framed(const std::string& bytes, std::size_t piece, FormatKind format) {
  files::Framer framer(format, ',');
  std::vector<Taken> out;
  std::size_t at = 0;
  std::size_t known = 0;
  for (;;) {
    const bool last = known == bytes.size();
    files::Frame f;
    if (framer.next(std::string_view(bytes).substr(at, known - at), last, f)) {
      if (!f.blank) out.push_back({"", static_cast<std::int64_t>(at), std::string(f.value)});
      at += f.size;
      continue;
    }
    if (last) return out;
    known = std::min(bytes.size(), known + piece);
  }
}

std::vector<Taken> read_whole(const std::string& bytes, FormatKind format = FormatKind::json) {
  TempDir dir;
  FileRuns runs({dir.write("in", bytes)}, format);
  return runs.run();
}

}  // namespace

TEST_CASE(
    "a byte order mark, CRLF, blank lines, spaces and a last line without line feed give "
    "just the records, and a second run gives none") {
  TempDir dir;
  const std::string bytes = "\xEF\xBB\xBF{\"a\":1}\r\n\r\n{\"a\":2}\r\n   \t \r\n\n{\"a\":3}";
  FileRuns runs({dir.write("in.jsonl", bytes)});
  CHECK(runs.run() == std::vector<Taken>{{"in.jsonl", 3, "{\"a\":1}"},
                                         {"in.jsonl", 14, "{\"a\":2}"},
                                         {"in.jsonl", 31, "{\"a\":3}"}});
  CHECK(runs.lines == std::vector<std::uint32_t>{1, 3, 6});
  CHECK(runs.position(dir / "in.jsonl") == static_cast<std::int64_t>(bytes.size()));
  CHECK(runs.run().empty());
}

TEST_CASE("a file without bytes, and one that is only a byte order mark, hold no records") {
  CHECK(read_whole("").empty());
  CHECK(read_whole("\xEF\xBB\xBF").empty());
  CHECK(read_whole("\xEF\xBB").size() == 1);  // not a mark: the bytes are a record
  CHECK(read_whole("\xEF\xBB\xBF", FormatKind::raw).empty());
  CHECK(read_whole("\xEF\xBB\xBF", FormatKind::csv).empty());
}

TEST_CASE("raw lines are kept as they are, empty ones too") {
  CHECK(values(read_whole("a\n\n  \nb\r\n", FormatKind::raw)) == Values{"a", "", "  ", "b"});
}

TEST_CASE("quoted CSV fields may hold line ends, quotes and delimiters; bare quotes are text") {
  const std::string bytes =
      "h1,h2\r\n\"a\r\nb\",\"say \"\"hi\"\"\"\r\n\n5\" pipe,x\nlast,\"y,\nz\"";
  TempDir dir;
  FileRuns runs({dir.write("in.csv", bytes)}, FormatKind::csv);
  CHECK(values(runs.run()) ==
        Values{"\"a\r\nb\",\"say \"\"hi\"\"\"", "5\" pipe,x", "last,\"y,\nz\""});
  CHECK(runs.headers == Values(3, "h1,h2"));
  CHECK(runs.lines == std::vector<std::uint32_t>{2, 5, 6});
}

TEST_CASE("records are the same however the bytes come in pieces") {
  const std::string lines = "{\"a\":1}\r\n\r\n  \n{\"b\":\"x\"}\n\r\n{\"c\":3}\r\n{\"d\":4}";
  const std::string csv =
      "a,b\r\n\"q\"\"\r\n,\",2\n\n\"\",\"\"\n5\" x,\"\r\n\"\r\n\"a\"b,c\"\nlast,\"one\"";
  for (const auto& [bytes, format] :
       {std::pair(lines, FormatKind::json), std::pair(lines, FormatKind::raw),
        std::pair(csv, FormatKind::csv)}) {
    const auto whole = framed(bytes, bytes.size(), format);
    REQUIRE(whole.size() >= 4);
    for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
      CHECK(framed(bytes, piece, format) == whole);
    }
  }
}

TEST_CASE("lines that end at, just before and just behind the edge of the read buffer are whole") {
  const std::size_t edge = files::Window::usual_bytes;
  for (const std::size_t length : {edge - 2, edge - 1, edge, edge + 1, 3 * edge}) {
    for (const std::string end : {"\n", "\r\n"}) {
      const std::string first(length, 'x');
      TempDir dir;
      FileRuns runs({dir.write("in", first + end + "second" + end + "third")}, FormatKind::raw);
      runs.limits.bytes = 4 * edge;
      const auto taken = runs.run();
      REQUIRE(taken.size() == 3);
      CHECK((taken[0].value == first));
      CHECK(taken[1] == Taken{"in", static_cast<std::int64_t>(length + end.size()), "second"});
      CHECK(taken[2].value == "third");
    }
  }
}

TEST_CASE("many blocks of lines of all lengths come whole and in order") {
  std::string bytes;
  std::vector<Taken> expected;
  for (int i = 0; bytes.size() < 5 * files::Window::usual_bytes; ++i) {
    const std::string value =
        std::to_string(i) + std::string(static_cast<std::size_t>(i % 997), '.');
    expected.push_back({"in", static_cast<std::int64_t>(bytes.size()), value});
    bytes += value + (i % 3 == 0 ? "\r\n" : "\n");
  }
  TempDir dir;
  FileRuns runs({dir.write("in", bytes)}, FormatKind::raw);
  CHECK((runs.run() == expected));
  CHECK(runs.largest_batch <= runs.limits.bytes + 1000);
}

TEST_CASE("a batch holds no more records than it may") {
  TempDir dir;
  FileRuns runs({dir.write("in", json_lines(0, 10))});
  runs.limits.records = 3;
  CHECK(runs.run().size() == 10);
  CHECK(runs.commits == 4);
}

TEST_CASE("a quote that is never closed fails naming where it began, after the records before it") {
  TempDir dir;
  FileRuns runs({dir.write("in.csv", "h\n1\nx,\"abc\nd\ne\n")}, FormatKind::csv);
  std::vector<Taken> before;
  const Failure f = runs.failing_run(&before);
  CHECK(f.exit_code() == ExitCode::data);
  CHECK(f.where == (dir / "in.csv").string() + " byte 6");
  CHECK(values(before) == Values{"1"});
  CHECK(runs.position(dir / "in.csv") == 4);
}

TEST_CASE("a record without end is refused at 64 MiB, not read into memory for ever") {
  TempDir dir;
  const std::string huge(files::Window::max_record_bytes + 10, 'x');
  FileRuns runs({dir.write("in", "ok\n" + huge)}, FormatKind::raw);
  std::vector<Taken> before;
  const Failure f = runs.failing_run(&before);
  CHECK(f.exit_code() == ExitCode::data);
  CHECK(f.where == (dir / "in").string() + " byte 3");
  CHECK(values(before) == Values{"ok"});
}

TEST_CASE("each CSV file has its own header, and a batch holds it once") {
  TempDir dir;
  dir.write("a.csv", "\xEF\xBB\xBF\r\nid,name\r\n1,x\r\n2,y\r\n");
  dir.write("b.csv", "name,id\nz,3\n");
  dir.write("c.csv", "only,header\n");
  FileRuns runs({dir / "*.csv"}, FormatKind::csv);
  CHECK(runs.run() ==
        std::vector<Taken>{{"a.csv", 14, "1,x"}, {"a.csv", 19, "2,y"}, {"b.csv", 8, "z,3"}});
  CHECK(runs.headers == Values{"id,name", "id,name", "name,id"});
  CHECK(runs.position(dir / "c.csv") == 12);
  runs.headers.clear();
  dir.append("a.csv", "4,w\r\n");
  CHECK(runs.run() == std::vector<Taken>{{"a.csv", 24, "4,w"}});
  CHECK(runs.headers == Values{"id,name"});
}

TEST_CASE("without a header the first CSV line is a record") {
  TempDir dir;
  FileRuns runs({dir.write("in.csv", "1,x\n2,y\n")}, FormatKind::csv);
  runs.pipeline.csv.header = false;
  CHECK(values(runs.run()) == Values{"1,x", "2,y"});
  CHECK(runs.headers.empty());
}
