#pragma once
// Dead letters for tests: the places that keep them, and `flow dlq` as a test calls it.
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/flow_program.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"

namespace flow::test {

using Json = nlohmann::json;

// A database of a test alone, because a state always takes the schema `flow`.
class PgDatabase {
 public:
  PgDatabase();
  ~PgDatabase();
  PgDatabase(const PgDatabase&) = delete;
  PgDatabase& operator=(const PgDatabase&) = delete;
  std::string url() const;

 private:
  std::string server_;
  std::string name_;
};

// Where letters are kept. settings: YAML lines for source, state and store.
struct LetterPlace {
  std::string name;
  std::string settings;
  std::shared_ptr<PgDatabase> database;
  std::shared_ptr<Topic> topic;
};
LetterPlace in_sqlite();
LetterPlace in_postgres();
LetterPlace in_topic();
std::vector<std::function<LetterPlace()>> letter_places();

// A pipeline (columns id bigint, v text) into the SQLite table t of out.db, with its letters in the
// given place. It reads in.jsonl, or, when the letters are in a topic, the topic `in`.
class DlqProgram {
 public:
  explicit DlqProgram(LetterPlace place, const std::string& target = sqlite_append());
  static std::string sqlite_append();
  static std::string sqlite_merge();

  const FlowProgram& flow() const { return flow_; }
  const LetterPlace& place() const { return place_; }
  void target(const std::string& yaml, const std::string& more = "") const;

  // flow dlq WORDS[0] pipeline.yaml WORDS[1..]
  Command command(std::vector<std::string> words) const;
  Finished dlq(std::vector<std::string> words) const;
  // The same with --output json; checks the exit code.
  Json json(std::vector<std::string> words, int code = 0) const;
  void import(const std::vector<Json>& letters) const;
  std::vector<Json> letters(std::vector<std::string> filter = {}) const;
  // The offsets of the letters in this state, in the order of their ids.
  std::vector<std::int64_t> offsets(const std::string& status) const;
  // The column of out.db's table t, in the order the rows were written.
  std::vector<std::string> rows(const std::string& column = "id") const;

 private:
  LetterPlace place_;
  FlowProgram flow_;
};

// A letter as export prints it, of topic `in`, partition 0.
Json letter(std::int64_t offset, const std::string& value,
            const std::optional<std::string>& key = std::nullopt,
            const std::string& target = "sqlite:t");
// Letters with offsets [from, to), id as offset, keys k0, k1, ... in turn.
std::vector<Json> good_letters(int from, int to, int keys = 3);
std::vector<std::int64_t> numbers(std::int64_t from, std::int64_t to);
std::vector<std::string> texts(std::int64_t from, std::int64_t to);
std::string lines_of(const std::vector<Json>& letters);

}  // namespace flow::test
