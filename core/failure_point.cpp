#include "core/failure_point.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <mutex>

namespace flow {

namespace {

constexpr std::size_t count = static_cast<std::size_t>(Point::count_);

constexpr std::array<std::string_view, count> names = {
    "open_run.after",
    "read.after",
    "decode.after",
    "transform.after",
    "store_dead_letters.before",
    "store_dead_letters.applied",
    "store_dead_letters.after",
    "apply_to_targets.before",
    "target_write.before",
    "target_write.torn",
    "target_commit.before",
    "target_commit.applied",
    "target_commit.after",
    "store_refused.before",
    "store_refused.applied",
    "store_refused.after",
    "apply_to_targets.after",
    "commit_position.before",
    "commit_position.applied",
    "commit_position.after",
    "drain.before",
    "close_run.before",
};

enum class Action : std::uint8_t { kill, term, error };

struct Armed {
  Action action = Action::kill;
  FailureClass cls = FailureClass::transient;
  std::uint64_t fire_at = 1;
  std::uint64_t hits = 0;
};

std::mutex mutex;
std::array<Armed, count> plan;

Failure usage(std::string_view text, std::string what) {
  return {.cls = FailureClass::setup,
          .where = "--failure-point " + std::string(text),
          .what = std::move(what),
          .hint = "NAME[@k]=kill|term|error:CLASS",
          .exit = ExitCode::usage};
}

std::optional<FailureClass> class_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(FailureClass::defect); ++i) {
    const auto c = static_cast<FailureClass>(i);
    if (name_of(c) == name) return c;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Point point) { return names[static_cast<std::size_t>(point)]; }

std::vector<Point> all_points() {
  std::vector<Point> points;
  for (std::size_t i = 0; i < count; ++i) points.push_back(static_cast<Point>(i));
  return points;
}

namespace failure_point {

std::atomic<std::uint32_t> armed{0};
static_assert(count <= 32);

std::optional<Failure> fire(Point point) {
  const auto index = static_cast<std::size_t>(point);
  if ((armed.load(std::memory_order_relaxed) & (1U << index)) == 0) return std::nullopt;
  const std::scoped_lock lock(mutex);
  Armed& a = plan[index];
  if (++a.hits != a.fire_at) return std::nullopt;
  switch (a.action) {
    case Action::kill: std::raise(SIGKILL); break;
    case Action::term: std::raise(SIGTERM); return std::nullopt;
    case Action::error: break;
  }
  return Failure{.cls = a.cls,
                 .code = "failure_point",
                 .where = std::string(name_of(point)),
                 .what = "failed on purpose"};
}

Result<void> arm(std::string_view text) {
  const std::size_t equal = text.find('=');
  if (equal == std::string_view::npos) return usage(text, "no action");
  std::string_view name = text.substr(0, equal);
  const std::string_view action = text.substr(equal + 1);
  Armed a;
  if (const std::size_t at = name.find('@'); at != std::string_view::npos) {
    a.fire_at = std::strtoull(std::string(name.substr(at + 1)).c_str(), nullptr, 10);
    name = name.substr(0, at);
    if (a.fire_at == 0) return usage(text, "@k counts from 1");
  }
  if (action == "kill") {
    a.action = Action::kill;
  } else if (action == "term") {
    a.action = Action::term;
  } else if (action.starts_with("error:")) {
    const auto cls = class_named(action.substr(6));
    if (!cls) return usage(text, "no failure class " + std::string(action.substr(6)));
    a.action = Action::error;
    a.cls = *cls;
  } else {
    return usage(text, "no action " + std::string(action));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] != name) continue;
    const std::scoped_lock lock(mutex);
    plan[i] = a;
    armed.fetch_or(1U << i);
    return {};
  }
  return usage(text, "no failure point " + std::string(name));
}

}  // namespace failure_point

}  // namespace flow
