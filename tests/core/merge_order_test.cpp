#include "core/merge_order.h"

#include <doctest/doctest.h>
#include <limits>
#include <random>
#include <string>

using flow::Columns;
using flow::RowSet;
using flow::Type;
using flow::Value;
using Order = std::vector<std::uint32_t>;

namespace {

Columns columns_of(std::vector<Type> types) {
  Columns columns;
  for (std::size_t i = 0; i < types.size(); ++i) {
    columns.emplace_back();
    columns.back().name = "c" + std::to_string(i);
    columns.back().type = types[i];
  }
  return columns;
}

RowSet rows_of(std::size_t width, const std::vector<std::vector<Value>>& rows) {
  RowSet set;
  set.width = width;
  for (std::uint32_t r = 0; r < rows.size(); ++r) {
    Value* cells = set.add(r);
    std::copy(rows[r].begin(), rows[r].end(), cells);
  }
  return set;
}

Order ordered(Type type, const std::vector<Value>& keys) {
  std::vector<std::vector<Value>> rows;
  for (const Value& key : keys) rows.push_back({key});
  RowSet set = rows_of(1, rows);
  flow::order_rows(set, columns_of({type}), {0});
  return set.order;
}

Value decimal(std::string_view token) { return Value::text(token, flow::Kind::decimal); }

}  // namespace

TEST_CASE("without a key every row is written in record order") {
  RowSet set = rows_of(1, {{Value::int64(3)}, {Value::int64(1)}, {Value::int64(3)}});
  set.order = {9, 9};
  flow::order_rows(set, columns_of({Type::int64}), {});
  CHECK(set.order == Order{0, 1, 2});
}

TEST_CASE("the last row of each whole-number key is kept, sorted by key") {
  const auto n = [](std::int64_t i) { return Value::int64(i); };
  CHECK(ordered(Type::int64, {n(7), n(8), n(7), n(7)}) == Order{3, 1});
  CHECK(ordered(Type::int64, {n(1), n(2), n(3)}) == Order{0, 1, 2});
  CHECK(ordered(Type::int64, {n(2), n(-5), n(0)}) == Order{1, 2, 0});
  CHECK(ordered(Type::int64, {n(9007199254740993), n(9007199254740992), n(9007199254740993)}) ==
        Order{1, 2});
  CHECK(ordered(Type::int64, {n(std::numeric_limits<std::int64_t>::max()),
                              n(std::numeric_limits<std::int64_t>::min())}) == Order{1, 0});
  CHECK(ordered(Type::int64, {}).empty());
}

TEST_CASE("decimal keys are equal as numbers and sorted as numbers") {
  CHECK(ordered(Type::decimal, {decimal("1.5"), decimal("1.50")}) == Order{1});
  CHECK(ordered(Type::decimal, {decimal("100"), decimal("1E+2"), decimal("1.00e2")}) == Order{2});
  CHECK(ordered(Type::decimal, {decimal("0.001"), decimal("1e-3"), decimal("10e-4")}) == Order{2});
  CHECK(ordered(Type::decimal, {decimal("-0.0"), decimal("0"), decimal("0e9")}) == Order{2});
  CHECK(ordered(Type::decimal, {decimal("10"), decimal("9"), decimal("-1"), decimal("-1.5"),
                                decimal("0"), decimal("0.09"), decimal("0.1"), decimal("-10"),
                                decimal("9.5")}) == Order{7, 3, 2, 4, 5, 6, 1, 8, 0});
}

TEST_CASE("text keys are equal byte by byte, also with U+0000 inside") {
  const auto t = [](std::string_view s) { return Value::text(s); };
  CHECK(ordered(Type::text, {t("b"), t("a"), t("b"), t("A")}) == Order{3, 1, 2});
  CHECK(ordered(Type::text, {t("a"), t(std::string_view("a\0", 2)), t("a")}) == Order{2, 1});
  CHECK(ordered(Type::text, {t(""), t("a"), t("")}) == Order{2, 1});
  CHECK(ordered(Type::text, {t("a"), t("a ")}) == Order{0, 1});
}

TEST_CASE("char(n) keys are equal without their trailing spaces") {
  RowSet set = rows_of(1, {{Value::text("a ")}, {Value::text("b")}, {Value::text("a")}});
  Columns columns = columns_of({Type::text});
  columns[0].type_text = "character(3)";
  flow::order_rows(set, columns, {0});
  CHECK(set.order == Order{2, 1});
}

TEST_CASE("float keys compare as numbers, so -0.0 is 0.0") {
  const auto d = [](double x) { return Value::float64(x); };
  CHECK(ordered(Type::float64, {d(0.0), d(-0.0)}) == Order{1});
  CHECK(ordered(Type::float64, {d(1.5), d(-2.0), d(-1.0), d(1.5)}) == Order{1, 2, 3});
}

TEST_CASE("a key of several columns is one key: ab+c is not a+bc") {
  const Columns columns = columns_of({Type::text, Type::text, Type::int64});
  RowSet set = rows_of(3, {{Value::text("ab"), Value::text("c"), Value::int64(1)},
                           {Value::text("a"), Value::text("bc"), Value::int64(2)},
                           {Value::text("ab"), Value::text("c"), Value::int64(3)}});
  flow::order_rows(set, columns, {0, 1});
  CHECK(set.order == Order{1, 2});
}

TEST_CASE("null is a key equal to null and sorts first") {
  CHECK(ordered(Type::int64, {Value::int64(1), Value::null(), Value::null()}) == Order{2, 0});
}

TEST_CASE("an erase after an upsert of the same key is what is kept, and the other way round") {
  RowSet set;
  set.width = 1;
  *set.add(0, flow::RowOp::upsert) = Value::int64(1);
  *set.add(1, flow::RowOp::erase) = Value::int64(1);
  *set.add(2, flow::RowOp::erase) = Value::int64(2);
  *set.add(3, flow::RowOp::upsert) = Value::int64(2);
  flow::order_rows(set, columns_of({Type::int64}), {0});
  CHECK(set.order == Order{1, 3});
}

TEST_CASE("the fast path and the general path order the same rows") {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> pick(-500, 500);
  std::vector<std::vector<Value>> rows;
  for (int i = 0; i < 3000; ++i) rows.push_back({Value::int64(pick(random)), Value::int64(0)});
  const Columns columns = columns_of({Type::int64, Type::int64});
  RowSet fast = rows_of(2, rows);
  RowSet general = rows_of(2, rows);
  flow::order_rows(fast, columns, {0});
  flow::order_rows(general, columns, {0, 1});
  CHECK(fast.order == general.order);
  CHECK(fast.order.size() > 900);
}
