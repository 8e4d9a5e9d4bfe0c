#pragma once
// The states that the suites run on: each world is a state that is new at first, opened as often as
// wanted.
#include <doctest/doctest.h>
#include <memory>
#include <string>
#include <vector>

#include "core/state.h"
#include "state/state.h"
#include "tests/support/memory_parts.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/state_double.h"
#include "tests/support/temp_dir.h"

namespace flow::test {

inline std::unique_ptr<StateStore> must_open(const std::string& url, StateAccess access) {
  MemoryLog log;
  auto opened = open_state(url, access, log);
  if (!opened) throw std::runtime_error(opened.failure().text());
  return std::move(opened).value();
}

class SqliteWorld {
 public:
  std::string url() const { return "sqlite:" + (dir_ / "flow.db").string(); }
  std::unique_ptr<StateStore> open(StateAccess access = StateAccess::read_write) const {
    return must_open(url(), access);
  }

 private:
  TempDir dir_;
};

// A database of its own, because a state always takes the schema `flow`.
class PostgresWorld {
 public:
  PostgresWorld() : server_(services().postgres), name_(unique_name("state")) {
    pg_query(server_, "CREATE DATABASE " + name_);
  }
  ~PostgresWorld() {
    try {
      pg_query(server_, "DROP DATABASE " + name_ + " WITH (FORCE)");
    } catch (const std::exception& e) {
      MESSAGE(e.what());
    }
  }
  PostgresWorld(const PostgresWorld&) = delete;
  PostgresWorld& operator=(const PostgresWorld&) = delete;

  std::string url() const { return server_.substr(0, server_.rfind('/') + 1) + name_; }
  std::unique_ptr<StateStore> open(StateAccess access = StateAccess::read_write) const {
    return must_open(url(), access);
  }

 private:
  std::string server_;
  std::string name_;
};

class MemoryWorld {
 public:
  std::unique_ptr<StateStore> open(StateAccess = StateAccess::read_write) const {
    return std::make_unique<MemoryState>(data_);
  }

 private:
  std::shared_ptr<MemoryStateData> data_ = std::make_shared<MemoryStateData>();
};

// One line for each thing that a row says, so that rows are compared whole.
inline std::string shown(const RunRow& run) {
  std::string text = run.id + " " + run.pipeline + " " + run.version + " [" + run.contract + "] " +
                     run.host + ":" + std::to_string(run.pid) + " " +
                     std::to_string(run.started_ms) + ".." + std::to_string(run.heartbeat_ms) +
                     ".." + (run.ended_ms ? std::to_string(*run.ended_ms) : "-") + " " +
                     std::string(name_of(run.status)) + " read=" + std::to_string(run.read) +
                     " error=[" + run.error + "]";
  for (const auto& [target, c] : run.targets) {
    text += " " + target + ":";
    for (const std::uint64_t n :
         {c.read, c.written, c.filtered, c.dropped, c.dead, c.pending, c.repeats, c.retries}) {
      text += std::to_string(n) + ",";
    }
  }
  for (const Span& span : run.positions) {
    text += " " + span.partition.text() + "=" + std::to_string(span.from.next) + ".." +
            std::to_string(span.next.next) + "(" + span.identity + ")";
  }
  return text;
}

inline std::vector<std::string> shown(const std::vector<RunRow>& runs) {
  std::vector<std::string> lines;
  for (const RunRow& run : runs) lines.push_back(shown(run));
  return lines;
}

inline std::vector<std::string> shown(const Spans& spans) {
  std::vector<std::string> lines;
  for (const Span& span : spans) {
    lines.push_back(span.partition.text() + "=" + std::to_string(span.from.next) + ".." +
                    std::to_string(span.next.next) + "(" + span.identity + ")");
  }
  return lines;
}

inline RunRow a_run(const std::string& id, const std::string& pipeline = "orders",
                    std::int64_t started_ms = 1'000) {
  RunRow run;
  run.id = id;
  run.pipeline = pipeline;
  run.version = "v1";
  run.contract = "at_least_once: targets, then position";
  run.host = "here";
  run.pid = 42;
  run.started_ms = started_ms;
  run.heartbeat_ms = started_ms + 5;
  return run;
}

}  // namespace flow::test
