#include "core/state.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <random>

namespace flow {
namespace {

constexpr std::array statuses{RunStatus::running, RunStatus::done, RunStatus::drained,
                              RunStatus::failed, RunStatus::interrupted};

}  // namespace

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::running: return "running";
    case RunStatus::done: return "done";
    case RunStatus::drained: return "drained";
    case RunStatus::failed: return "failed";
    case RunStatus::interrupted: return "interrupted";
  }
  return "interrupted";
}

std::optional<RunStatus> run_status_named(std::string_view name) {
  for (const RunStatus status : statuses) {
    if (name_of(status) == name) return status;
  }
  return std::nullopt;
}

std::string make_run_id(std::int64_t started_ms) {
  const auto seconds = static_cast<std::time_t>(started_ms / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::random_device random;
  char text[64];
  std::snprintf(text, sizeof text, "%04d%02d%02dT%02d%02d%02dZ-%06x", utc.tm_year + 1900,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<unsigned>(random()) & 0xffffffU);
  return text;
}

std::string run_lock_name(std::string_view run_id) { return "run/" + std::string(run_id); }

}  // namespace flow
