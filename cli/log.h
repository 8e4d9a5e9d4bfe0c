#pragma once
// The log of a command: one event a line on stderr or in a file, text or JSON, secrets masked.
#include <memory>
#include <string>

#include "core/mask.h"
#include "core/ports.h"

namespace spdlog {
class logger;
}

namespace flow {

enum class LogFormat : std::uint8_t { text, json };

struct LogOptions {
  Level level = Level::info;
  LogFormat format = LogFormat::text;
  std::string file;  // empty: stderr
};

// Owner: the command. Threads: any. Errors: a log that cannot be written is dropped; it never ends
// a run.
class EventLog final : public Log {
 public:
  static Result<std::unique_ptr<EventLog>> open(const LogOptions& options);
  ~EventLog() override;
  void event(Level level, std::string_view noun_verb, const Fields& fields) override;
  void add_field(std::string name, std::string value);  // on each line from now on (run id)
  Masker& masker() { return masker_; }
  // Called around each line on stderr, so that a progress line is wiped first.
  void set_before_line(std::function<void()> f) { before_line_ = std::move(f); }

 private:
  EventLog(std::shared_ptr<spdlog::logger> logger, LogFormat format);
  std::shared_ptr<spdlog::logger> logger_;
  LogFormat format_;
  Masker masker_;
  std::vector<std::pair<std::string, std::string>> common_;
  std::function<void()> before_line_;
};

}  // namespace flow
