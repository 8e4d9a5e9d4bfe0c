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

std::string replay_lock_name(std::string_view replay_id) {
  return "replay/" + std::string(replay_id);
}

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

std::int64_t lock_number(std::string_view state_id, std::string_view lock_name) {
  return static_cast<std::int64_t>(
      stable_hash(std::string(state_id) + "\n" + std::string(lock_name)));
}

namespace {

Failure no_letters(const StateStore& state) {
  return {.cls = FailureClass::setup,
          .where = state.location(),
          .what = "this state keeps no dead letters",
          .hint = "name a state of kind sqlite: or postgres: in state:"};
}

}  // namespace

Result<std::unique_ptr<DeadLetterStore>> StateStore::dead_letters() { return no_letters(*this); }

Result<std::unique_ptr<LetterProgressStore>> StateStore::letter_progress(const std::string&) {
  return no_letters(*this);
}

}  // namespace flow
