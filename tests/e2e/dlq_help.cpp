#include "tests/e2e/dlq_help.h"

#include <doctest/doctest.h>
#include <sstream>

#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"

namespace flow::test {

namespace {

constexpr const char* head =
    "name: dlq\n"
    "format: json\n"
    "columns: {id: {from: $.id, type: bigint, required: true}, v: {from: $.v, type: text}}\n"
    "transform_on_error: dlq\n"
    "dlq_limit: {of_batch: 100%, in_a_row: 0}\n"
    "retry: {initial: 10ms, max: 100ms}\n";
constexpr const char* from_file = "source: {kind: file, path: in.jsonl, batch: {records: 100}}\n";

}  // namespace

PgDatabase::PgDatabase() : server_(services().postgres), name_(unique_name("dlq")) {
  pg_query(server_, "CREATE DATABASE " + name_);
}

PgDatabase::~PgDatabase() {
  try {
    pg_query(server_, "DROP DATABASE " + name_ + " WITH (FORCE)");
  } catch (const std::exception& e) {
    MESSAGE(e.what());
  }
}

std::string PgDatabase::url() const { return server_.substr(0, server_.rfind('/') + 1) + name_; }

LetterPlace in_sqlite() {
  return {"the table in SQLite", std::string(from_file) + "state: sqlite:flow.db\n", {}, {}};
}

LetterPlace in_postgres() {
  auto database = std::make_shared<PgDatabase>();
  return {
      "the table in Postgres", from_file + ("state: '" + database->url() + "'\n"), database, {}};
}

LetterPlace in_topic() {
  const std::string broker = services().kafka;
  auto topic = std::make_shared<Topic>(broker, "letters", 1);
  return {"a topic",
          "source: {kind: kafka, brokers: '" + broker +
              "', topics: [in], group: g, batch: {records: 100}}\n"
              "state: sqlite:flow.db\ndlq_store: topic\ndead_letter_topic: " +
              topic->name() + "\n",
          {},
          topic};
}

std::vector<std::function<LetterPlace()>> letter_places() {
  return {in_sqlite, in_postgres, in_topic};
}

DlqProgram::DlqProgram(LetterPlace place, const std::string& target)
    : place_(std::move(place)), flow_("") {
  this->target(target);
}

std::string DlqProgram::sqlite_append() {
  return "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, mode: append, create_table: "
         "true}]\n";
}

std::string DlqProgram::sqlite_merge() {
  return "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, mode: merge, key: [id], "
         "create_table: true}]\n";
}

void DlqProgram::target(const std::string& yaml, const std::string& more) const {
  flow_.rewrite(head + yaml + place_.settings + more);
}

Command DlqProgram::command(std::vector<std::string> words) const {
  words.insert(words.begin() + 1, flow_.file());
  words.insert(words.begin(), "dlq");
  return flow_.command(words);
}

Finished DlqProgram::dlq(std::vector<std::string> words) const {
  return run(command(std::move(words)));
}

Json DlqProgram::json(std::vector<std::string> words, int code) const {
  words.insert(words.end(), {"--output", "json"});
  const Finished f = dlq(words);
  CAPTURE(f.err);
  REQUIRE(f.ended == Ended{code, 0});
  return Json::parse(f.out);
}

void DlqProgram::import(const std::vector<Json>& letters) const {
  Command c = flow_.command({"dlq", "import", "--pipeline-file", flow_.file()});
  c.input = lines_of(letters);
  const Finished f = run(c);
  CAPTURE(f.err);
  REQUIRE(f.ended == Ended{0, 0});
}

std::vector<Json> DlqProgram::letters(std::vector<std::string> filter) const {
  filter.insert(filter.begin(), "export");
  const Finished f = dlq(filter);
  CAPTURE(f.err);
  REQUIRE(f.ended == Ended{0, 0});
  std::vector<Json> out;
  std::istringstream in(f.out);
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

std::vector<std::int64_t> DlqProgram::offsets(const std::string& status) const {
  std::vector<std::int64_t> out;
  for (const Json& l : letters({"--status", status})) out.push_back(l.at("offset"));
  return out;
}

std::vector<std::string> DlqProgram::rows(const std::string& column) const {
  std::vector<std::string> out;
  const auto file = flow_.dir() / "out.db";
  if (!std::filesystem::exists(file)) return out;
  if (sqlite_query(file, "SELECT 1 FROM sqlite_master WHERE name = 't'").empty()) return out;
  for (const auto& row : sqlite_query(file, "SELECT " + column + " FROM t ORDER BY rowid"))
    out.push_back(row[0].value_or("null"));
  return out;
}

Json letter(std::int64_t offset, const std::string& value, const std::optional<std::string>& key,
            const std::string& target) {
  Json l;
  l["pipeline"] = "dlq";
  l["target"] = target;
  l["topic"] = "in";
  l["partition"] = 0;
  l["offset"] = offset;
  l["key"] = key ? Json(*key) : Json(nullptr);
  l["value"] = value;
  l["stage"] = "cast";
  l["class"] = "invalid";
  l["code"] = "cast.number";
  l["error"] = "column id: not a number";
  l["first_failed_ms"] = 1'700'000'000'000;
  l["last_failed_ms"] = 1'700'000'000'000 + offset;
  return l;
}

std::vector<Json> good_letters(int from, int to, int keys) {
  std::vector<Json> out;
  for (int i = from; i < to; ++i) {
    out.push_back(letter(i, json_line(i), "k" + std::to_string(i % keys)));
  }
  return out;
}

std::vector<std::int64_t> numbers(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> out;
  for (; from < to; ++from) out.push_back(from);
  return out;
}

std::vector<std::string> texts(std::int64_t from, std::int64_t to) {
  std::vector<std::string> out;
  for (; from < to; ++from) out.push_back(std::to_string(from));
  return out;
}

std::string lines_of(const std::vector<Json>& letters) {
  std::string out;
  for (const Json& l : letters) out += l.dump() + "\n";
  return out;
}

}  // namespace flow::test
