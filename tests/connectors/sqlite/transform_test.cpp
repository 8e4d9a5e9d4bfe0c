#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <vector>

#include "connectors/registry.h"
#include "core/row_json.h"

using namespace flow;

namespace {

using Row = std::vector<Value>;

// Runs one statement over rows given as cells in the order of inputs().
class Select {
 public:
  explicit Select(const std::string& sql) {
    auto made = make_sql_transform({sql});
    INFO(sql);
    INFO((made.ok() ? std::string() : made.failure().text()));
    REQUIRE(made.ok());
    transform = std::move(made).value();
  }
  const std::vector<std::string>& inputs() const { return transform->inputs(); }
  const std::vector<std::string>& outputs() const { return transform->outputs(); }

  void run(const std::vector<Row>& rows) {
    in.clear();
    out.clear();
    failures.clear();
    in.width = inputs().size();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      REQUIRE(rows[r].size() == in.width);
      Value* cells = in.add(static_cast<std::uint32_t>(r * 10));
      for (std::size_t i = 0; i < in.width; ++i) cells[i] = rows[r][i];
    }
    transform->apply(batch, in, out, failures);
  }
  // Record number, kinds and contents of an output row.
  std::string row(std::size_t r) const {
    std::string text = std::to_string(out.record[r]) + ":";
    for (std::size_t i = 0; i < out.width; ++i) {
      text += " " + std::string(name_of(out.row(r)[i].kind()));
      if (out.row(r)[i].is_null()) continue;
      text += "=";
      append_text(text, out.row(r)[i]);
    }
    return text;
  }
  std::vector<std::string> rows() const {
    std::vector<std::string> all;
    for (std::size_t r = 0; r < out.rows(); ++r) all.push_back(row(r));
    return all;
  }

  std::unique_ptr<RowTransform> transform;
  Batch batch;
  RowSet in, out;
  std::vector<RecordFailure> failures;
};

std::string refusal(const std::string& sql) {
  auto made = make_sql_transform({sql});
  if (made.ok()) return "accepted";
  CHECK(made.failure().cls == FailureClass::setup);
  CHECK(made.failure().where == "transform: sql");
  CHECK_FALSE(made.failure().hint.empty());
  return made.failure().what;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Value text(std::string_view s) { return Value::text(s); }
Value decimal(std::string_view s) { return Value::text(s, Kind::decimal); }
Value json(std::string_view s) { return Value::text(s, Kind::json); }

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the columns that a statement reads and gives come from the statement") {
  Select s("SELECT order_id, upper(status) AS status, amount FROM source WHERE amount > 0");
  CHECK(s.inputs() == Names{"order_id", "status", "amount"});
  CHECK(s.outputs() == Names{"order_id", "status", "amount"});
  Select qualified("select s.a, s.[b.c] as d from source as s where source_id = s.a -- comment\n;");
  CHECK(qualified.inputs() == Names{"a", "b.c", "source_id"});
  CHECK(qualified.outputs() == Names{"a", "d"});
  Select dotted("SELECT x, [a.x], main.source.y FROM source");
  CHECK(dotted.inputs() == Names{"x", "a.x", "y"});
}

TEST_CASE("rows are computed, filtered and kept in record order") {
  Select s("SELECT order_id, upper(status) AS status, amount FROM source WHERE amount > 0");
  s.run({{text("a"), text("paid"), decimal("1.10")},
         {text("b"), text("paid"), Value::int64(0)},
         {text("c"), Value::null(), Value::int64(9007199254740993)},
         {text("d"), text("open"), Value()},
         {text("e"), text("open"), decimal("12345678901234567890.123456789012345678")}});
  CHECK(s.rows() == Names{"0: text=a text=PAID decimal=1.10",
                          "20: text=c null int64=9007199254740993",
                          "40: text=e text=OPEN decimal=12345678901234567890.123456789012345678"});
  CHECK(s.failures.empty());
}

TEST_CASE("a column that is only named is copied as it is, whatever its kind") {
  Select s("SELECT a, b AS c FROM source");
  const std::string nul("x\0y", 3);
  s.run({{decimal("1E+2"), json("{\"k\": 1.0}")},
         {Value::boolean(true), Value()},
         {Value::null(), text("")},
         {text(nul), decimal("1e400")},
         {Value::number(Kind::timestamptz, 1), Value::number(Kind::date, 2)}});
  REQUIRE(s.out.rows() == 5);
  CHECK(s.row(0) == "0: decimal=1E+2 json={\"k\": 1.0}");
  CHECK(s.row(1) == "10: boolean=true missing");
  CHECK(s.row(2) == "20: null text=");
  CHECK(s.out.row(3)[0].text() == nul);
  CHECK(s.out.row(3)[0].text().data() == nul.data());
  CHECK(s.out.row(3)[1].text() == "1e400");
  CHECK(s.out.row(4)[0].kind() == Kind::timestamptz);
}

TEST_CASE("expressions see numbers as numbers, booleans as 0 and 1, null and missing as null") {
  Select s("SELECT n + 1 AS n, d * 2 AS d, b + 0 AS b, t || '!' AS t, typeof(x) AS x FROM source");
  s.run(
      {{Value::int64(9007199254740992), decimal("1.25"), Value::boolean(true), text("a"), Value()},
       {Value::int64(-1), decimal("1E+2"), Value::boolean(false), text(""), Value::null()}});
  CHECK(s.rows() == Names{"0: int64=9007199254740993 float64=2.5 int64=1 text=a! text=null",
                          "10: int64=0 float64=200 int64=0 text=! text=null"});
}

TEST_CASE("a number too large for a double still compares, and does not pass for a result") {
  Select s("SELECT id, a * 1.0 AS a FROM source WHERE a > 5");
  s.run({{text("big"), decimal("1e400")},
         {text("small"), decimal("-1e400")},
         {text("ok"), Value::int64(6)}});
  CHECK(s.rows() == Names{"20: text=ok float64=6"});
  REQUIRE(s.failures.size() == 1);
  CHECK(s.failures[0].record == 0);
  CHECK(holds(s.failures[0].failure.what, "a is not a finite number"));
}

TEST_CASE("JSON taken out of JSON stays JSON, scalars become what they are") {
  Select s(
      "SELECT json_extract(o, '$.list') AS list, o ->> '$.n' AS n, json_array(o) AS l FROM source");
  s.run({{json(R"({"list":[1,2],"n":7})")}});
  CHECK(s.rows() == Names{R"(0: json=[1,2] int64=7 json=[{"list":[1,2],"n":7}])"});
}

TEST_CASE("a row that cannot be computed fails alone") {
  Select s("SELECT id, json_extract(o, '$.a') AS a FROM source");
  s.run({{text("1"), text("{\"a\":1}")},
         {text("2"), text("not json")},
         {text("3"), text("{\"a\":3}")},
         {text("4"), text("{")}});
  CHECK(s.rows() == Names{"0: text=1 int64=1", "20: text=3 int64=3"});
  REQUIRE(s.failures.size() == 2);
  CHECK(s.failures[0].record == 10);
  CHECK(s.failures[1].record == 30);
  CHECK(s.failures[0].failure.cls == FailureClass::invalid);
  CHECK(holds(s.failures[0].failure.what, "malformed JSON"));
  s.run({{text("5"), text("{\"a\":5}")}});
  CHECK(s.rows() == Names{"0: text=5 int64=5"});
  CHECK(s.failures.empty());
}

TEST_CASE("integer overflow and text that is not UTF-8 fail the record") {
  Select s("SELECT abs(n) AS n FROM source");
  s.run({{Value::int64(INT64_MIN)}, {Value::int64(-5)}});
  CHECK(s.rows() == Names{"10: int64=5"});
  REQUIRE(s.failures.size() == 1);
  CHECK(holds(s.failures[0].failure.what, "integer overflow"));
  Select bytes("SELECT CAST(x'ff' AS TEXT) || t AS t FROM source");
  bytes.run({{text("a")}});
  CHECK(bytes.out.rows() == 0);
  REQUIRE(bytes.failures.size() == 1);
  CHECK(holds(bytes.failures[0].failure.what, "UTF-8"));
}

TEST_CASE("a computed text outlives the statement's next row") {
  Select s("SELECT upper(t) AS t FROM source");
  std::vector<std::string> words;
  std::vector<Row> rows;
  for (int i = 0; i < 2000; ++i) words.push_back("word" + std::to_string(i));
  for (const std::string& word : words) rows.push_back({text(word)});
  s.run(rows);
  REQUIRE(s.out.rows() == 2000);
  for (std::size_t i = 0; i < 2000; ++i) {
    REQUIRE(s.out.row(i)[0].text() == "WORD" + std::to_string(i));
  }
}

TEST_CASE("fields may be called rowid, oid, date or order") {
  Select s("SELECT rowid, oid, date, [order], `group` AS g FROM source WHERE oid IS NOT NULL");
  CHECK(s.inputs() == Names{"rowid", "oid", "date", "order", "group"});
  s.run({{text("r"), text("o"), text("d"), text("n"), text("g")},
         {text("r"), Value(), text("d"), text("n"), text("g")}});
  CHECK(s.rows() == Names{"0: text=r text=o text=d text=n text=g"});
}

TEST_CASE("lists, CASE, LIKE, IS DISTINCT FROM and date functions of a field can be used") {
  Select s(
      "SELECT id, CASE WHEN s LIKE 'p%' THEN 'p' ELSE 'other' END AS c, date(t, '+1 day') AS t "
      "FROM source WHERE s IN ('paid', 'pending', 'open') AND id IS DISTINCT FROM 3");
  s.run({{Value::int64(1), text("paid"), text("2024-02-28T10:00:00Z")},
         {Value::int64(3), text("paid"), Value::null()},
         {Value::int64(4), text("lost"), Value::null()},
         {Value::int64(5), text("open"), text("now")}});
  CHECK(s.rows() == Names{"0: int64=1 text=p text=2024-02-29", "30: int64=5 text=other null"});
}

TEST_CASE("an empty batch gives nothing") {
  Select s("SELECT a FROM source");
  s.run({});
  CHECK(s.out.rows() == 0);
}

TEST_CASE("more than one row a record, or an order of its own, is refused with the clause") {
  CHECK(holds(refusal("SELECT DISTINCT a FROM source"), "DISTINCT"));
  CHECK(holds(refusal("SELECT a FROM source GROUP BY a"), "GROUP BY"));
  CHECK(holds(refusal("SELECT a FROM source ORDER BY a"), "ORDER BY"));
  CHECK(holds(refusal("SELECT a FROM source LIMIT 5"), "LIMIT"));
  CHECK(holds(refusal("SELECT a FROM source LIMIT 0"), "LIMIT"));
  CHECK(holds(refusal("SELECT a FROM source UNION ALL SELECT a FROM source"), "UNION"));
  CHECK(holds(refusal("SELECT a FROM source EXCEPT SELECT b FROM source"), "EXCEPT"));
  CHECK(holds(refusal("SELECT max(a) AS a FROM source"), "aggregate"));
  CHECK(holds(refusal("SELECT count(*) AS n FROM source"), "count"));
  CHECK(holds(refusal("SELECT sum(a) AS n FROM source"), "sum"));
  CHECK(holds(refusal("SELECT row_number() OVER () AS n FROM source"), "row_number"));
  CHECK(holds(refusal("SELECT max(a) OVER () AS n FROM source"), "aggregate"));
  CHECK(holds(refusal("SELECT group_concat(a) AS n FROM source"), "group_concat"));
}

TEST_CASE("other tables, joins and subqueries are refused") {
  CHECK(holds(refusal("SELECT a"), "FROM source"));
  CHECK(holds(refusal("SELECT 1 IS DISTINCT FROM 2"), "FROM source"));
  CHECK(holds(refusal("SELECT a FROM orders"), "no such table: orders"));
  CHECK(holds(refusal("SELECT name FROM sqlite_schema"), "sqlite_master"));
  CHECK(holds(refusal("SELECT s.a FROM source s, source t"), "more than the one table"));
  CHECK(holds(refusal("SELECT a FROM source JOIN source t USING (a)"), "JOIN"));
  CHECK(holds(refusal("SELECT a FROM source WHERE a IN source"), "not accepted"));
  CHECK(holds(refusal("SELECT j.value FROM source, json_each(a) AS j"), "more than SELECT from"));
  CHECK(holds(refusal("SELECT (SELECT 1) AS a FROM source"), "SELECT inside"));
  CHECK(holds(refusal("SELECT a FROM source WHERE EXISTS (SELECT 1)"), "SELECT inside"));
  CHECK(holds(refusal("WITH x AS (SELECT 1) SELECT 1 FROM x"), "begin with SELECT"));
  CHECK(holds(refusal("SELECT o.x FROM source"), "no such column: o.x"));
}

TEST_CASE("statements that write, reach out or follow another are refused") {
  CHECK(holds(refusal("DELETE FROM source"), "begin with SELECT"));
  CHECK(holds(refusal("ATTACH 'x.db' AS x"), "begin with SELECT"));
  CHECK(holds(refusal("EXPLAIN SELECT a FROM source"), "begin with SELECT"));
  CHECK(holds(refusal("SELECT a FROM source; DROP TABLE x"), "another"));
  CHECK(holds(refusal("SELECT load_extension('x') AS x FROM source"), "load_extension"));
  CHECK(holds(refusal("SELECT * FROM source"), "*"));
  CHECK(holds(refusal("SELECT s.*, a FROM source s"), "*"));
  CHECK(holds(refusal("SELECT a FROM source WHERE"), "not accepted"));
  CHECK(holds(refusal(""), "empty"));
  CHECK(holds(refusal("-- nothing"), "empty"));
  CHECK(holds(refusal("SELECT 'a FROM source"), "FROM source"));
  CHECK(holds(refusal("SELECT a, b AS a FROM source"), "name \"a\""));
  CHECK(holds(refusal("SELECT nosuch(a) AS a FROM source"), "no such function"));
}

TEST_CASE("chance and the clock are refused, for a record read again must give the same row") {
  for (const std::string call :
       {"random()", "randomblob(4)", "current_timestamp", "current_date", "datetime('now')",
        "date()", "strftime('%s', 'NOW')", "datetime(a, 'localtime')", "time(a, 'utc')",
        "CASE WHEN a > 1 THEN date('now') END", "changes()", "sqlite_version()"}) {
    CAPTURE(call);
    const std::string what = refusal("SELECT " + call + " AS x FROM source");
    CHECK((holds(what, "not allowed") || holds(what, "the machine's")));
  }
  CHECK(refusal("SELECT a FROM source WHERE a = 'now'") == "accepted");
}

TEST_CASE("text in double quotes is refused rather than taken for a column that does not exist") {
  CHECK(holds(refusal("SELECT a FROM source WHERE status = \"paid\""), "'paid'"));
  CHECK(refusal("SELECT a AS \"order id\" FROM source s WHERE s.\"x y\" = 1") == "accepted");
}
