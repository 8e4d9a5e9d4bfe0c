#include "cli/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/clock.h"
#include "core/row_json.h"

namespace flow {

namespace {

std::string_view name_of(Level level) {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warn: return "warn";
    case Level::error: return "error";
  }
  return "error";
}

spdlog::level::level_enum vendor_level(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

// A value as key=value wants it: quoted when it holds blanks or quotes.
void append_field_value(std::string& out, const std::string& value) {
  if (!value.empty() && value.find_first_of(" \"=\n\t\r\\") == std::string::npos) {
    out += value;
  } else {
    append_json_string(out, value);
  }
}

}  // namespace

EventLog::EventLog(std::shared_ptr<spdlog::logger> logger, LogFormat format)
    : logger_(std::move(logger)), format_(format) {}

EventLog::~EventLog() { logger_->flush(); }

Result<std::unique_ptr<EventLog>> EventLog::open(const LogOptions& options) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    if (options.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
    }
  } catch (const spdlog::spdlog_ex& e) {
    return Failure{.cls = FailureClass::setup,
                   .where = "--log-file " + options.file,
                   .what = e.what(),
                   .hint = "name a file in a directory that exists and may be written",
                   .exit = ExitCode::cannot_create};
  }
  auto logger = std::make_shared<spdlog::logger>("flow", std::move(sink));
  logger->set_level(vendor_level(options.level));
  logger->set_pattern("%v");
  logger->flush_on(spdlog::level::info);
  logger->set_error_handler([](const std::string&) {});
  return std::unique_ptr<EventLog>(new EventLog(std::move(logger), options.format));
}

void EventLog::add_field(std::string name, std::string value) {
  common_.emplace_back(std::move(name), std::move(value));
}

void EventLog::event(Level level, std::string_view noun_verb, const Fields& fields) {
  if (!logger_->should_log(vendor_level(level))) return;
  std::string line;
  const std::string now = rfc3339(wall_ms());
  if (format_ == LogFormat::json) {
    line = "{\"time\":\"" + now + "\",\"level\":\"" + std::string(name_of(level)) + "\",\"event\":";
    append_json_string(line, noun_verb);
    const auto add = [&](std::string_view name, std::string_view value) {
      line += ',';
      append_json_string(line, name);
      line += ':';
      append_json_string(line, value);
    };
    for (const auto& [name, value] : common_) add(name, value);
    for (const auto& [name, value] : fields) add(name, value);
    line += '}';
  } else {
    line = now + " " + std::string(name_of(level)) + " " + std::string(noun_verb);
    const auto add = [&](std::string_view name, const std::string& value) {
      line += ' ';
      line += name;
      line += '=';
      append_field_value(line, value);
    };
    for (const auto& [name, value] : fields) add(name, value);
    for (const auto& [name, value] : common_) add(name, value);
  }
  if (before_line_) before_line_();
  logger_->log(vendor_level(level), spdlog::string_view_t(masker_.text(line)));
}

}  // namespace flow
