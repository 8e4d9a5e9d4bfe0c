#include "cli/pipeline_file.h"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/init_template.h"
#include "cli/schema.h"
#include "cli/settings_reference.h"
#include "core/settings.h"

namespace fs = std::filesystem;
using flow::LoadedPipeline;
using flow::LoadOptions;
using Variables = std::map<std::string, std::string>;

namespace {

LoadOptions with(Variables variables) {
  LoadOptions options;
  options.default_state = "sqlite:/state/flow.db";
  options.getenv = [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return options;
}

std::string lines_of(const LoadedPipeline& loaded) {
  std::string out;
  for (const flow::ConfigFault& fault : loaded.faults) out += fault.text() + "\n";
  return out;
}

LoadedPipeline read(const std::string& text, const LoadOptions& options = with({})) {
  return flow::parse_pipeline(text, "p.yaml", "/pipelines", options);
}

flow::Pipeline good(const std::string& text, const LoadOptions& options = with({})) {
  LoadedPipeline loaded = read(text, options);
  REQUIRE(lines_of(loaded) == "");
  return std::move(loaded.pipeline);
}

bool holds(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// A directory of its own, removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = (fs::temp_directory_path() / "flow-config-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  fs::path path_;
};

const std::string source = "name: orders\nsource: {kind: file, path: a.jsonl}\n";
const std::string kafka =
    "name: orders\nsource: {kind: kafka, brokers: b:9092, topics: [orders]}\n";
const std::string target = "targets: [{kind: stdout}]\n";

flow::Pipeline with_url(const std::string& url, Variables variables) {
  return good(source + "targets: [{kind: postgres, url: \"" + url + "\", table: t}]\n",
              with(std::move(variables)));
}

}  // namespace

// ---- values and defaults
// -----------------------------------------------------------------------------

TEST_CASE("a short file has every default that the settings table names") {
  const flow::Pipeline p =
      good(kafka + "targets: [{kind: sqlite, url: \"sqlite:w.db\", table: t}]\n");
  const flow::Pipeline fresh;
  CHECK(p.source.kafka.group == "flow.orders");
  CHECK(p.source.kafka.start == fresh.source.kafka.start);
  CHECK(p.source.kafka.on_gap == fresh.source.kafka.on_gap);
  CHECK(p.source.kafka.on_missing == fresh.source.kafka.on_missing);
  CHECK(p.source.kafka.cooperative == fresh.source.kafka.cooperative);
  CHECK(p.source.batch.records == fresh.source.batch.records);
  CHECK(p.source.batch.bytes == fresh.source.batch.bytes);
  CHECK(p.source.batch.wait == fresh.source.batch.wait);
  CHECK(p.format == fresh.format);
  CHECK(p.on_error == fresh.on_error);
  CHECK(p.delivery == fresh.delivery);
  CHECK(p.retry.initial == fresh.retry.initial);
  CHECK(p.retry.max == fresh.retry.max);
  CHECK(p.retry.multiplier == fresh.retry.multiplier);
  CHECK(p.retry.for_ == fresh.retry.for_);
  CHECK(p.drain_timeout == fresh.drain_timeout);
  REQUIRE(p.targets.size() == 1);
  CHECK(p.targets[0].mode == flow::TargetSpec().mode);
  CHECK(p.targets[0].on_tombstone == flow::TargetSpec().on_tombstone);
  CHECK(p.targets[0].create_table == flow::TargetSpec().create_table);
  CHECK(p.targets[0].label == "sqlite:t");
  CHECK(p.state == "sqlite:/state/flow.db");
}

TEST_CASE("every setting of a full file arrives where it belongs") {
  const fs::path corpus = fs::path(FLOW_SOURCE_DIR) / "tests/cli/config_corpus/valid";
  const LoadedPipeline loaded =
      flow::load_pipeline((corpus / "kafka_everything.yaml").string(), with({}));
  REQUIRE(lines_of(loaded) == "");
  const flow::Pipeline& p = loaded.pipeline;
  const flow::KafkaSourceSpec& k = p.source.kafka;
  CHECK(p.source.kind == "kafka");
  CHECK(k.brokers == "b1:9092,[::1]:9093,SASL_SSL://b3");
  CHECK(k.topics == std::vector<std::string>{"orders", "^orders-[0-9]+$"});
  CHECK(k.group == "warehouse");
  CHECK(k.start == flow::StartAt::latest);
  CHECK(k.on_gap == flow::OnGap::earliest);
  CHECK(k.on_missing == flow::OnMissing::wait);
  CHECK_FALSE(k.cooperative);
  CHECK(k.properties ==
        std::map<std::string, std::string>{{"group.instance.id", "one"},
                                           {"fetch.min.bytes", "1"},
                                           {"enable.ssl.certificate.verification", "true"},
                                           {"sasl.password", "s3cret"}});
  std::vector<std::string> names;
  for (const flow::ColumnSpec& column : p.columns) names.push_back(column.name);
  CHECK(names == std::vector<std::string>{"id", "all", "nested", "key", "part", "trace", "one",
                                          "price", "yes", "word", "created", "status", "other"});
  CHECK(p.columns[2].from.path == std::vector<std::string>{"a", "b", "[2]", "c.d"});
  CHECK(p.columns[7].from.name == "1.10");
  CHECK(p.columns[7].from.constant_type == flow::Type::decimal);
  CHECK(p.columns[8].from.constant_type == flow::Type::boolean);
  CHECK(p.columns[9].from.name == "word");
  CHECK(p.columns[10].unit == flow::TimeUnit::ms);
  CHECK(p.columns[10].zone == "Europe/Paris");
  CHECK(p.columns[11].from.path == std::vector<std::string>{"status"});
  CHECK(p.columns[11].fallback->name == "unknown");
  CHECK(p.columns[11].limits.length == 20);
  CHECK(p.columns[12].fallback->path == std::vector<std::string>{"b"});
  CHECK(p.transform[0].sql == "SELECT id, price\nFROM source\nWHERE price > 0\n");
  CHECK(p.targets[0].table == "\"Mixed\".\"Order Items\"");
  CHECK(p.targets[0].on_tombstone == flow::OnTombstone::ignore);
  CHECK(p.targets[0].key == std::vector<std::string>{"id"});
  CHECK(p.targets[2].url == "sqlite:" + (corpus / "a.db").string());
  CHECK(p.targets[2].label == "local");
  CHECK(p.targets[3].message_key->path == std::vector<std::string>{"id"});
  CHECK(p.targets[4].path == (corpus / "out.csv").string());
  CHECK(p.targets[4].format == flow::OutputFormat::csv);
  CHECK(p.delivery == flow::Delivery::automatic);
  CHECK(p.on_error == flow::OnError::drop);
  CHECK(p.retry.for_ == flow::Millis(3'600'000));
  CHECK(p.retry.multiplier == 3.0);
  CHECK(p.state == "postgres://u:p@h/state");
}

TEST_CASE("relative paths are relative to the pipeline file") {
  const flow::Pipeline p = good(
      "name: o\nsource: {kind: file, path: [a-*.jsonl, /abs/b, ../c]}\n"
      "targets: [{kind: file, path: out.jsonl}, {kind: sqlite, url: \"sqlite:w.db\", table: t}]\n"
      "state: sqlite:run/flow.db\n");
  CHECK(p.source.file.paths == std::vector<std::string>{"/pipelines/a-*.jsonl", "/abs/b", "/c"});
  CHECK(p.targets[0].path == "/pipelines/out.jsonl");
  CHECK(p.targets[1].url == "sqlite:/pipelines/w.db");
  CHECK(p.state == "sqlite:/pipelines/run/flow.db");
}

TEST_CASE("the state is the flag's, else FLOW_STATE's, else the file's, else the default") {
  const std::string text = source + target + "state: sqlite:/file.db\n";
  LoadOptions options = with({{"FLOW_STATE", "sqlite:/variable.db"}});
  options.state_flag = "sqlite:/flag.db";
  CHECK(good(text, options).state == "sqlite:/flag.db");
  options.state_flag.clear();
  CHECK(good(text, options).state == "sqlite:/variable.db");
  CHECK(good(text).state == "sqlite:/file.db");
  CHECK(good(source + target).state == "sqlite:/state/flow.db");
  options.state_flag = "flow.db";
  CHECK(lines_of(read(text, options)) ==
        "--state: is not the URL of a state; write sqlite:PATH or "
        "postgres://user:password@host/database\n");
  options.state_flag = "sqlite:here.db";
  CHECK(good(text, options).state == "sqlite:" + (fs::current_path() / "here.db").string());
}

// ---- YAML
// --------------------------------------------------------------------------------------------

TEST_CASE(
    "what a map says itself comes before what it merges, and earlier merges before later ones") {
  const flow::Pipeline p = good(
      "name: orders\n"
      "x-base: &base {kind: kafka, brokers: base:1, group: base, start: latest}\n"
      "x-more: &more {<<: *base, group: more, topics: [more]}\n"
      "source:\n  <<: [*more, *base]\n  brokers: own:1\n" +
      target);
  CHECK(p.source.kafka.brokers == "own:1");
  CHECK(p.source.kafka.group == "more");
  CHECK(p.source.kafka.start == flow::StartAt::latest);
  CHECK(p.source.kafka.topics == std::vector<std::string>{"more"});
}

TEST_CASE("words and numbers that YAML 1.1 would change stay the text that was written") {
  const flow::Pipeline p =
      good("name: on\nsource: {kind: file, path: [yes, 12:30:00, 1_000, 0755x]}\n" + target);
  CHECK(p.name == "on");
  CHECK(p.source.file.paths == std::vector<std::string>{"/pipelines/yes", "/pipelines/12:30:00",
                                                        "/pipelines/1_000", "/pipelines/0755x"});
}

TEST_CASE("the column of a fault counts characters, not bytes") {
  CHECK(lines_of(read("name: orders\nsource: {kind: file, path: \"äöü\", bogus: 1}\n" + target)) ==
        "p.yaml:2:35: source.bogus: unknown setting; there are kind, path, compression, batch\n");
}

TEST_CASE("one place in an anchor is reported once, however often it is used") {
  const LoadedPipeline loaded = read(source +
                                     "x-t: &t {kind: sqlite, url: \"sqlite:a.db\", bogus: 1}\n"
                                     "targets: [{<<: *t, table: a}, {<<: *t, table: b}]\n");
  CHECK(loaded.faults.size() == 1);
}

TEST_CASE("a file with very many faults is answered with a bounded list") {
  std::string text = source + target;
  for (int i = 0; i < 5'000; ++i) text += "bogus" + std::to_string(i) + ": 1\n";
  const LoadedPipeline loaded = read(text);
  REQUIRE(loaded.faults.size() == 201);
  CHECK(loaded.faults.back().message == "more than 200 faults; the rest is not shown");
}

TEST_CASE("deep nesting and huge files end with a fault") {
  CHECK_FALSE(read(std::string(100'000, '[')).faults.empty());
  CHECK(lines_of(read(std::string((1u << 20) + 1, '#'))) ==
        "p.yaml: is larger than 1 MiB, which no pipeline file is\n");
}

// ---- variables
// ---------------------------------------------------------------------------------------

TEST_CASE("what a variable holds is data, whatever it looks like, and is filled in once") {
  for (const char* value : {"p@ss#1", "a: b", "\"q\"", "$HOME", "${NOT}", "*x", "123e4", "yes",
                            "{a: 1}", "[1]", "null", "$$", "two\nlines"}) {
    CAPTURE(value);
    const flow::Pipeline p = good(
        "name: o\nsource: {kind: kafka, brokers: b:1, topics: [t], properties: {sasl.password: "
        "\"${PW}\"}}\n" +
            target,
        with({{"PW", value}}));
    CHECK(p.source.kafka.properties.at("sasl.password") == value);
  }
}

TEST_CASE("a variable is typed as its setting wants") {
  const std::string text =
      "name: ${N}\nsource: {kind: file, path: x, batch: {records: \"${N}\", bytes: \"${N}KiB\"}}\n"
      "targets: [{kind: sqlite, url: \"sqlite:a.db\", table: \"${N}\", create_table: \"${B}\"}]\n";
  const flow::Pipeline p = good(text, with({{"N", "100"}, {"B", "false"}}));
  CHECK(p.name == "100");
  CHECK(p.source.batch.records == 100);
  CHECK(p.source.batch.bytes == 102'400);
  CHECK(p.targets[0].table == "100");
}

TEST_CASE("defaults, escapes and files are filled in") {
  const TempDir dir;
  dir.write("secret", "from file\n");
  const auto path = dir.write(
      "p.yaml",
      "name: ${UNSET:-orders}\n"
      "source: {kind: kafka, brokers: \"${UNSET:-a:1}\", topics: [t], group: \"$${X} $5 $\",\n"
      "  properties: {sasl.password: \"${file:secret}\", client.id: \"${EMPTY:-}\"}}\n" +
          target);
  const LoadedPipeline loaded = flow::load_pipeline(path.string(), with({{"EMPTY", ""}}));
  REQUIRE(lines_of(loaded) == "");
  const flow::KafkaSourceSpec& k = loaded.pipeline.source.kafka;
  CHECK(k.brokers == "a:1");
  CHECK(k.group == "${X} $5 $");
  CHECK(k.properties.at("sasl.password") == "from file");
  CHECK(k.properties.at("client.id") == "");
  CHECK(holds(loaded.secrets, "from file"));
}

TEST_CASE("a variable inside a URL cannot change the URL") {
  const std::string nasty = "p@ss #1:/?&'\\%";
  CHECK(with_url("postgres://u:${PW}@h/db", {{"PW", nasty}}).targets[0].url ==
        "postgres://u:p%40ss%20%231%3A%2F%3F%26%27%5C%25@h/db");
  CHECK(with_url("postgres://u@h/db?password=${PW}", {{"PW", nasty}}).targets[0].url ==
        "postgres://u@h/db?password=p%40ss%20%231%3A%2F%3F%26%27%5C%25");
  CHECK(with_url("postgres://${HOST}/${DB}", {{"HOST", "h1:5432,h2:5433"}, {"DB", "my db"}})
            .targets[0]
            .url == "postgres://h1:5432,h2:5433/my%20db");
  CHECK(with_url("${URL}", {{"URL", "postgres://u:p%40ss@h/db"}}).targets[0].url ==
        "postgres://u:p%40ss@h/db");
  CHECK(with_url("host=h password=${PW} dbname=d", {{"PW", "a b'c\\d"}}).targets[0].url ==
        "host=h password=a\\ b\\'c\\\\d dbname=d");
}

// ---- --set
// -------------------------------------------------------------------------------------------

TEST_CASE("--set replaces, adds and is typed as the setting wants") {
  LoadOptions options = with({{"V", "from-variable"}});
  options.sets = {"source.batch.records=10",
                  "source.topics=[a, b]",
                  "source.properties.fetch.min.bytes=7",
                  "source.group=${V}",
                  "targets[0].kind=sqlite",
                  "targets[0].url=sqlite:w.db",
                  "targets[0].table=2024",
                  "targets[1].kind=stdout",
                  "columns.total=$.amount",
                  "name=first",
                  "name=second"};
  const flow::Pipeline p = good(kafka + target, options);
  CHECK(p.name == "second");
  CHECK(p.source.batch.records == 10);
  CHECK(p.source.kafka.topics == std::vector<std::string>{"a", "b"});
  CHECK(p.source.kafka.properties.at("fetch.min.bytes") == "7");
  CHECK(p.source.kafka.group == "from-variable");
  REQUIRE(p.targets.size() == 2);
  CHECK(p.targets[0].table == "2024");
  CHECK(p.targets[1].kind == "stdout");
  CHECK(p.columns[0].from.path == std::vector<std::string>{"amount"});
}

TEST_CASE("--set changes one use of an anchor and leaves the others") {
  LoadOptions options = with({});
  options.sets = {"targets[0].table=other"};
  const flow::Pipeline p =
      good(source +
               "targets:\n  - &t {kind: sqlite, url: \"sqlite:a.db\", table: t}\n"
               "  - {<<: *t, label: second}\n",
           options);
  CHECK(p.targets[0].table == "other");
  CHECK(p.targets[1].table == "t");
}

TEST_CASE("a fault of --set names the flag") {
  LoadOptions options = with({});
  options.sets = {"targets[0].format=xml"};
  CHECK(lines_of(read(source + target, options)) ==
        "--set targets[0].format: must be jsonl or csv, not \"xml\"\n");
}

// ---- digest and secrets
// ------------------------------------------------------------------------------

TEST_CASE("the digest follows what the file says, not its layout, its comments or its secrets") {
  const auto digest = [](const std::string& text, Variables variables = {}) {
    return good(text, with(std::move(variables))).digest;
  };
  const std::string base =
      source + "targets: [{kind: postgres, url: \"postgres://u:one@h/d\", table: t}]\n";
  const std::string first = digest(base);
  CHECK(first.size() == 16);
  CHECK(digest("# a comment\n" + base) == first);
  CHECK(digest(source +
               "targets:\n  - kind: postgres\n    url: postgres://u:two@h/d\n    table: t\n") ==
        first);
  CHECK(digest(source +
               "targets: [{kind: postgres, url: \"postgres://u:one@h/d\", table: t2}]\n") != first);
  const std::string variable = source + "targets: [{kind: stdout, label: \"${L}\"}]\n";
  CHECK(digest(variable, {{"L", "a"}}) == digest(variable, {{"L", "b"}}));
}

TEST_CASE("passwords of every place are given as secrets") {
  const LoadedPipeline loaded = read(
      "name: o\nsource: {kind: kafka, brokers: b:1, topics: [t], properties: {sasl.password: "
      "in-property}}\n"
      "targets: [{kind: postgres, url: \"postgres://u:in%40url@h/d\", table: t}]\n"
      "state: postgres://u:${PW}@h/state\n",
      with({{"PW", "in variable"}}));
  REQUIRE(lines_of(loaded) == "");
  for (const char* secret : {"in-property", "in@url", "in variable"}) {
    CAPTURE(secret);
    CHECK(holds(loaded.secrets, secret));
  }
}

// ---- files
// -------------------------------------------------------------------------------------------

TEST_CASE("a file that cannot be read is a fault that says why") {
  const TempDir dir;
  const std::string missing = dir.write("x", "").string() + "-missing";
  CHECK(lines_of(flow::load_pipeline(missing, with({}))) ==
        missing + ": cannot be read: No such file or directory\n");
  const std::string folder = fs::temp_directory_path().string();
  CHECK(lines_of(flow::load_pipeline(folder, with({}))) ==
        folder + ": cannot be read: it is a directory; name a file\n");
}

// ---- what is made from the table
// ---------------------------------------------------------------------

TEST_CASE("flow init prints a valid pipeline for every pair of kinds") {
  for (const auto from : flow::split_words(flow::find_setting("source.kind")->choices)) {
    for (const auto to : flow::split_words(flow::find_setting("targets[].kind")->choices)) {
      CAPTURE(std::string(from) + " to " + std::string(to));
      const std::string text = flow::init_template(std::string(from), std::string(to));
      REQUIRE_FALSE(text.empty());
      const flow::Pipeline p = good(text);
      CHECK(p.source.kind == from);
      CHECK(p.targets.at(0).kind == to);
    }
  }
  CHECK(flow::init_template("file", "nowhere").empty());
}

TEST_CASE("the reference has every setting with its default") {
  const std::string roff = flow::settings_reference_roff();
  for (const flow::Setting& setting : flow::settings()) {
    if (setting.set == nullptr) continue;
    CAPTURE(std::string(setting.path));
    CHECK(roff.find(".B " + std::string(setting.path) + "\n") != std::string::npos);
  }
}

TEST_CASE("the schema knows every setting and refuses others") {
  const auto schema = nlohmann::json::parse(flow::pipeline_schema());
  CHECK(schema["additionalProperties"] == false);
  for (const flow::Setting* setting : flow::settings_below("")) {
    CAPTURE(std::string(setting->path));
    CHECK(schema["properties"].contains(std::string(setting->name())));
  }
  const auto& kinds = schema["properties"]["targets"]["items"]["oneOf"];
  std::vector<std::string> found;
  for (const auto& kind : kinds) found.push_back(kind["properties"]["kind"]["const"]);
  CHECK(found == std::vector<std::string>{"postgres", "sqlite", "kafka", "file", "stdout"});
  for (const flow::Setting* setting : flow::settings_below("targets[]")) {
    CAPTURE(std::string(setting->path));
    for (const auto& kind : kinds) {
      const std::string name = kind["properties"]["kind"]["const"];
      CHECK(kind["properties"].contains(std::string(setting->name())) == setting->belongs_to(name));
    }
  }
}
