// What a user relies on without looking: secrets stay secret, a dry run changes nothing, pipes get
// no progress line.
#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <map>
#include <sys/stat.h>

#include "tests/e2e/flow_program.h"
#include "tests/support/kafka_help.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/sqlite_help.h"
#include "tests/support/wait_for.h"

using namespace flow;
using namespace flow::test;
using std::chrono::seconds;

namespace {

constexpr const char* columns =
    "columns: {id: {from: $.id, type: bigint}, v: {from: $.v, type: text}}\n";

// Every regular file below a directory, with its bytes.
std::map<std::string, std::string> snapshot(const std::filesystem::path& dir) {
  std::map<std::string, std::string> out;
  for (const auto& e : std::filesystem::recursive_directory_iterator(dir)) {
    if (e.is_regular_file()) out[e.path().string()] = read_file(e.path());
  }
  return out;
}

}  // namespace

TEST_CASE(
    "a planted secret appears in no output, log, state or error, whatever the command and however "
    "it ends") {
  const std::string canary = "canary-4711-secret";
  const FlowProgram flow(
      "name: canary\nsource: {kind: kafka, brokers: '127.0.0.1:1', topics: [t], properties: "
      "{security.protocol: "
      "SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: u, sasl.password: " +
      canary + "}}\nretry: {initial: 10ms, max: 50ms, for: 200ms}\n" + columns +
      "targets:\n  - {kind: postgres, url: 'postgres://u:" + canary +
      "@127.0.0.1:1/db?sslpassword=" + canary +
      "', table: public.t}\n  - {kind: kafka, brokers: '127.0.0.1:1', topic: x, properties: "
      "{security.protocol: "
      "SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: u, sasl.password: "
      "'${CANARY}'}}\nstate: sqlite:flow.db\n");
  const auto with_canary = [&](std::vector<std::string> arguments) {
    Command c = flow.command(arguments);
    c.env["CANARY"] = canary;
    return run(c, seconds(120));
  };
  std::string seen;
  for (const std::string output : {"text", "json"}) {
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"run", flow.file(), "-v", "--until-end"},
             {"run", flow.file(), "--dry-run", "--log-format", "json", "--log-file", "run.log"},
             {"check", flow.file(), "--connect"},
             {"check", flow.file(), "--set", "source.properties.sasl.password=", "--set",
              "bogus=" + canary},
             {"explain", flow.file()},
             {"offsets", "inspect", flow.file()},
             {"history", flow.file()}}) {
      auto with_output = arguments;
      with_output.insert(with_output.end(), {"--output", output});
      const Finished f = with_canary(with_output);
      if (arguments.back() != "bogus=" + canary) seen += f.out + f.err;
    }
  }
  const std::string on_disk = [&] {
    std::string all;
    for (const auto& [path, bytes] : snapshot(flow.dir().path())) {
      if (path != flow.file()) all += bytes;
    }
    return all;
  }();
  CHECK(seen.size() > 1000);
  CHECK(on_disk.size() > 1000);
  CHECK(seen.find(canary) == std::string::npos);
  CHECK(on_disk.find(canary) == std::string::npos);
}

TEST_CASE("a dry run prints the rows and leaves every file as it was, to the byte") {
  const FlowProgram flow(std::string("name: dry\nsource: {kind: file, path: in.jsonl}\n") +
                         columns +
                         "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, mode: merge, "
                         "key: [id], create_table: "
                         "true}]\nstate: sqlite:flow.db\n");
  flow.dir().write("in.jsonl", json_lines(0, 3));
  const auto empty = snapshot(flow.dir().path());
  const Finished first = flow.run({"--dry-run"});
  CHECK(first.ended == Ended{0, 0});
  CHECK(first.out == json_lines(0, 3));
  CHECK(snapshot(flow.dir().path()) == empty);
  REQUIRE(flow.run({}).ended == Ended{0, 0});
  flow.dir().append("in.jsonl", json_lines(3, 5));
  const auto before = snapshot(flow.dir().path());
  CHECK(flow.run({"--dry-run"}).out == json_lines(3, 5));
  CHECK(snapshot(flow.dir().path()) == before);
}

TEST_CASE("a dry run of a topic joins no group and commits nothing") {
  const std::string broker = services().kafka;
  const Topic topic(broker, "dry", 1);
  produce(broker, topic.name(), {{.key = "1", .value = json_line(1)}});
  const FlowProgram flow("name: dry\nsource: {kind: kafka, brokers: '" + broker + "', topics: [" +
                         topic.name() + "], group: dry-" + topic.name() + "}\n" + columns +
                         "targets: [{kind: stdout}]\nstate: sqlite:flow.db\n");
  const Finished f = flow.run({"--dry-run"});
  CHECK(f.ended == Ended{0, 0});
  CHECK(f.out == json_lines(1, 2));
  CHECK(committed_offsets(broker, "dry-" + topic.name(), topic.name()).empty());
}

TEST_CASE("state and target files are private to their owner") {
  const FlowProgram flow(
      std::string("name: modes\nsource: {kind: file, path: in.jsonl}\n") + columns +
      "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, create_table: true}, {kind: file, "
      "path: out.jsonl}]\n");
  flow.dir().write("in.jsonl", json_lines(0, 3));
  REQUIRE(flow.run({}).ended == Ended{0, 0});
  const auto mode = [](const std::filesystem::path& p) {
    struct stat s {};
    REQUIRE(stat(p.c_str(), &s) == 0);
    return s.st_mode & 0777U;
  };
  CHECK(mode(flow.dir() / "state-home/flow") == 0700U);
  CHECK(mode(flow.dir() / "state-home/flow/flow.db") == 0600U);
  CHECK(mode(flow.dir() / "out.db") == 0600U);
  CHECK(mode(flow.dir() / "out.jsonl") == 0600U);
}

TEST_CASE("a pipe gets no progress line, a terminal does") {
  const FlowProgram flow(
      std::string("name: progress\nsource: {kind: file, path: in.jsonl}\n") + columns +
      "targets: [{kind: sqlite, url: 'sqlite:out.db', table: t, create_table: true}]\nstate: "
      "sqlite:flow.db\n");
  flow.dir().write("in.jsonl", json_lines(0, 3));
  Command terminal = flow.run_command({"--follow"});
  terminal.stderr_to = Command::Stderr::terminal;
  terminal.env["TERM"] = "xterm";
  Process seen(terminal);
  CHECK(wait_for(seconds(20),
                 [&] { return seen.err().find("records/s, 3 read") != std::string::npos; }));
  seen.kill(SIGTERM);
  CHECK(seen.wait(seconds(20)) == Ended{0, 0});
  Process piped(flow.run_command({"--follow"}));
  REQUIRE(
      wait_for(seconds(20), [&] { return piped.err().find("run.started") != std::string::npos; }));
  piped.kill(SIGTERM);
  CHECK(piped.wait(seconds(20)) == Ended{0, 0});
  CHECK(piped.err().find("\x1b[") == std::string::npos);
}

TEST_CASE(
    "several targets: all are durable before the position moves, and a failing one leaves it") {
  const PgSchema schema(services().postgres, "fan");
  schema.query("CREATE TABLE " + schema.table("t") +
               " (id bigint PRIMARY KEY, v text CHECK (v <> 'v7'))");
  const FlowProgram flow(
      std::string("name: fan\nsource: {kind: file, path: in.jsonl, batch: {records: 5}}\n") +
      columns +
      "targets:\n  - {kind: sqlite, url: 'sqlite:out.db', table: t, mode: merge, key: [id], "
      "create_table: true}\n  - {kind: postgres, url: '" +
      services().postgres + "', table: " + schema.table("t") + ", mode: merge, key: [id]}\n" +
      "state: sqlite:flow.db\n");
  flow.dir().write("in.jsonl", json_lines(0, 10));
  const Finished f = flow.run({});
  CHECK(f.ended == Ended{65, 0});
  CHECK(schema.query("SELECT max(id) FROM " + schema.table("t")) == std::vector<PgRow>{{"6"}});
  schema.query("ALTER TABLE " + schema.table("t") + " DROP CONSTRAINT t_v_check");
  CHECK(flow.run({}).ended == Ended{0, 0});
  CHECK(schema.query("SELECT count(*), max(id) FROM " + schema.table("t")) ==
        std::vector<PgRow>{{"10", "9"}});
  CHECK(sqlite_query(flow.dir() / "out.db", "SELECT count(*), max(id) FROM t") ==
        std::vector<std::vector<std::optional<std::string>>>{{"10", "9"}});
}
