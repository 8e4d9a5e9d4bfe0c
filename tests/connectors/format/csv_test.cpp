#include <doctest/doctest.h>
#include <string>

#include "tests/connectors/format/decoded.h"

using namespace flow;
using flow::test::Decoded;
using flow::test::path;

namespace {

Decoded csv(const std::vector<FieldSource>& fields, const CsvSpec& spec = {}) {
  return {make_csv_decoder(spec), fields};
}

Decoded csv_abc() {
  Decoded d = csv({path({"a"}), path({"b"}), path({"c"})});
  d.header = "a,b,c";
  return d;
}

}  // namespace

TEST_CASE("CSV fields are found by the names of the header line, in its order") {
  Decoded d = csv({path({"amount"}), path({"id"}), path({"absent"})});
  d.header = "id,note,amount";
  REQUIRE(d.read("7,hello,1.10"));
  CHECK(d.row() == "text 1.10 | text 7 | missing");
}

TEST_CASE("in CSV nothing is null, and quoted nothing is empty text") {
  Decoded d = csv_abc();
  REQUIRE(d.read(R"(,"",null)"));
  CHECK(d.row() == "null | text  | text null");
  REQUIRE(d.read(",,"));
  CHECK(d.row() == "null | null | null");
}

TEST_CASE("quoted CSV fields may hold delimiters, quotes and line ends") {
  Decoded d = csv_abc();
  REQUIRE(d.read("\"x,y\",\"say \"\"hi\"\"\",\"two\r\nlines\""));
  CHECK(d.cells[0].text() == "x,y");
  CHECK(d.cells[1].text() == "say \"hi\"");
  CHECK(d.cells[2].text() == "two\r\nlines");
  REQUIRE(d.read("\"\"\"\",\"\"\"a\"\"\", b "));
  CHECK(d.cells[0].text() == "\"");
  CHECK(d.cells[1].text() == "\"a\"");
  CHECK(d.cells[2].text() == " b ");
}

TEST_CASE("a CSV record with too few or too many fields is refused with both counts") {
  Decoded d = csv_abc();
  CHECK_FALSE(d.read("1,2"));
  CHECK(d.failure.what == "the record has 2 fields, and 3 columns are named");
  CHECK_FALSE(d.read("1,2,3,4"));
  CHECK(d.failure.what == "the record has 4 fields, and 3 columns are named");
  CHECK(d.failure.cls == FailureClass::invalid);
}

TEST_CASE("damaged CSV is refused and the next record is read") {
  Decoded d = csv_abc();
  for (const std::string record :
       {"\"open,2,3", "\"a\"x,2,3", "a\"b,2,3", "1,2,\"3\" ", "1,2,\xFF", "1,2,\xED\xA0\x80"}) {
    CAPTURE(record);
    CHECK_FALSE(d.read(record));
    CHECK(d.read("1,2,3"));
  }
}

TEST_CASE("a CSV header that names a column twice is refused") {
  Decoded d = csv({path({"a"})});
  d.header = "a,b,a";
  CHECK_FALSE(d.read("1,2,3"));
  CHECK(d.failure.what == "the header line names \"a\" twice");
  CHECK_FALSE(d.read("1,2,3"));
  d.header = "a,b,c";
  CHECK(d.read("1,2,3"));
}

TEST_CASE("each CSV record goes by the header of its own file") {
  Decoded d = csv({path({"a"}), path({"b"})});
  d.header = "a,b";
  REQUIRE(d.read("1,2"));
  CHECK(d.row() == "text 1 | text 2");
  d.header = "b,a";
  REQUIRE(d.read("1,2"));
  CHECK(d.row() == "text 2 | text 1");
}

TEST_CASE("a byte order mark is no part of the first CSV name, and stays in a field") {
  Decoded d = csv({path({"a"})});
  d.header = "\xEF\xBB\xBF\"a\",b";
  REQUIRE(d.read("1,2"));
  CHECK(d.row() == "text 1");
  REQUIRE(d.read("\xEF\xBB\xBF,2"));
  CHECK(d.row() == "text \xEF\xBB\xBF");
}

TEST_CASE("CSV columns can be named by the pipeline, with another delimiter") {
  CsvSpec spec;
  spec.header = false;
  spec.columns = {"id", "name"};
  spec.delimiter = ';';
  Decoded d = csv({path({"name"}), path({"id"})}, spec);
  REQUIRE(d.read("1;a,b"));
  CHECK(d.row() == "text a,b | text 1");
}

TEST_CASE("a CSV record without any names is refused with the way out") {
  Decoded d = csv({path({"a"})});
  CHECK_FALSE(d.read("1,2"));
  CHECK(d.failure.hint.find("columns") != std::string::npos);
}

TEST_CASE("CSV has no nested fields") {
  Decoded d = csv({path({"a", "b"})});
  CHECK_FALSE(d.bound);
}

TEST_CASE("a line end left on a CSV record is no part of its last field") {
  Decoded d = csv_abc();
  REQUIRE(d.read("1,2,3\r\n"));
  CHECK(d.cells[2].text() == "3");
  REQUIRE(d.read("1,2,\"3\"\n"));
  CHECK(d.cells[2].text() == "3");
}
