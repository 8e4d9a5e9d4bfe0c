#include "state/sql_state.h"

#include <set>
#include <utility>

#include "core/clock.h"
#include "core/failure_point.h"
#include "state/run_rows.h"

namespace flow {
namespace {

// The last span of each partition, in order: one statement may not meet a key twice.
std::vector<Cells> position_rows(const std::string& pipeline, const std::string& run_id,
                                 const Spans& spans) {
  std::map<PartitionId, const Span*> last;
  for (const Span& span : spans) last[span.partition] = &span;
  const Cell now = cell(wall_ms());
  std::vector<Cells> rows;
  for (const auto& [partition, span] : last) {
    rows.push_back({pipeline, partition.topic, cell(std::int64_t{partition.partition}),
                    cell(span->next.next), span->identity, run_id, now});
  }
  return rows;
}

std::vector<Cells> mark_rows(const std::string& pipeline, const std::string& run_id,
                             const std::vector<TargetMark>& marks) {
  std::map<std::string, const TargetMark*> last;
  for (const TargetMark& mark : marks) last[mark.target] = &mark;
  const Cell now = cell(wall_ms());
  std::vector<Cells> rows;
  for (const auto& [target, mark] : last) {
    rows.push_back({pipeline, target, mark->mark, run_id, now});
  }
  return rows;
}

}  // namespace

SqlState::SqlState(StateParts parts) : parts_(std::move(parts)) {}

Result<void> SqlState::refuse_writing() const {
  if (parts_.access == StateAccess::read_write) return {};
  return Failure{.cls = FailureClass::defect,
                 .where = parts_.location,
                 .what = "the state was opened for reading only",
                 .hint = "please report this"};
}

Result<void> SqlState::open_run(const RunRow& run) {
  if (auto may = refuse_writing(); !may) return may;
  const std::lock_guard guard(mutex_);
  auto held = parts_.locks->take(run_lock_name(run.id), Millis{0});
  if (!held) return held.failure();
  if (*held == nullptr) {
    return Failure{.cls = FailureClass::setup,
                   .where = parts_.location,
                   .what = "run " + run.id + " is open already",
                   .hint = "start the run again: it gets a new id",
                   .exit = ExitCode::temporary};
  }
  if (auto closed = close_dead_runs(); !closed) return closed;
  auto opened = parts_.session->write([&](Statements& s) { return save_run(s, run); });
  if (opened) run_locks_[run.id] = std::move(held).value();
  return opened;
}

Result<void> SqlState::heartbeat(const RunRow& run) {
  if (auto may = refuse_writing(); !may) return may;
  const std::lock_guard guard(mutex_);
  if (auto ours = parts_.locks->confirm(); !ours) return ours;
  return parts_.session->write([&](Statements& s) { return save_run(s, run); });
}

Result<void> SqlState::close_run(const RunRow& run) {
  if (auto may = refuse_writing(); !may) return may;
  const std::lock_guard guard(mutex_);
  auto closed = parts_.session->write([&](Statements& s) { return save_run(s, run); });
  if (closed) run_locks_.erase(run.id);
  return closed;
}

Result<void> SqlState::close_dead_runs() {
  Table running;
  auto read = parts_.session->read([&](Statements& s) -> Result<void> {
    auto rows = s.run("SELECT id FROM flow.runs WHERE status = 'running'");
    if (!rows) return rows.failure();
    running = std::move(rows).value();
    return {};
  });
  if (!read) return read;
  for (const Cells& row : running) {
    const std::string id = row[0].value_or("");
    // Holding the lock proves that nobody runs it, and its release tidies the lock away.
    auto dead = parts_.locks->take(run_lock_name(id), Millis{0});
    if (!dead) return dead.failure();
    if (*dead == nullptr) continue;
    auto closed = parts_.session->write([&](Statements& s) -> Result<void> {
      auto done = s.run(
          "UPDATE flow.runs SET status = 'interrupted', ended_ms = heartbeat_ms"
          " WHERE id = $1 AND status = 'running'",
          {id});
      if (!done) return done.failure();
      return {};
    });
    if (!closed) return closed;
  }
  return {};
}

Result<std::vector<RunRow>> SqlState::load(const std::string& pipeline, std::size_t limit) {
  std::vector<RunRow> runs;
  auto read = parts_.session->read([&](Statements& s) -> Result<void> {
    auto loaded = load_runs(s, pipeline, limit);
    if (!loaded) return loaded.failure();
    runs = std::move(loaded).value();
    return {};
  });
  if (!read) return read.failure();
  return runs;
}

Result<std::vector<RunRow>> SqlState::runs(const std::string& pipeline, std::size_t limit) {
  const std::lock_guard guard(mutex_);
  auto runs = load(pipeline, limit);
  if (!runs) return runs;
  std::set<std::string> free;
  for (const RunRow& run : *runs) {
    if (run.status != RunStatus::running) continue;
    auto alive = parts_.locks->held(run_lock_name(run.id));
    if (!alive) return alive.failure();
    if (!*alive) free.insert(run.id);
  }
  if (free.empty()) return runs;
  // A run that ended between the two looks has said how; only one that has not was interrupted.
  runs = load(pipeline, limit);
  if (!runs) return runs;
  for (RunRow& run : *runs) {
    if (run.status != RunStatus::running || !free.contains(run.id)) continue;
    run.status = RunStatus::interrupted;
    run.ended_ms = run.heartbeat_ms;
  }
  return runs;
}

Result<Spans> SqlState::positions(const std::string& pipeline) {
  const std::lock_guard guard(mutex_);
  Spans spans;
  auto read = parts_.session->read([&](Statements& s) -> Result<void> {
    auto rows = s.run(
        "SELECT topic, partition, next_position, identity FROM flow.positions"
        " WHERE pipeline = $1 ORDER BY topic, partition",
        {pipeline});
    if (!rows) return rows.failure();
    spans.clear();
    for (const Cells& row : *rows) {
      const Position next{number_in(row[2])};
      spans.push_back({{row[0].value_or(""), static_cast<std::int32_t>(number_in(row[1]))},
                       next,
                       next,
                       row[3].value_or("")});
    }
    return {};
  });
  if (!read) return read.failure();
  return spans;
}

Result<std::vector<TargetMark>> SqlState::marks(const std::string& pipeline) {
  const std::lock_guard guard(mutex_);
  std::vector<TargetMark> marks;
  auto read = parts_.session->read([&](Statements& s) -> Result<void> {
    auto rows = s.run("SELECT target, mark FROM flow.marks WHERE pipeline = $1 ORDER BY target",
                      {pipeline});
    if (!rows) return rows.failure();
    marks.clear();
    for (const Cells& row : *rows) marks.push_back({row[0].value_or(""), row[1].value_or("")});
    return {};
  });
  if (!read) return read.failure();
  return marks;
}

Result<void> SqlState::commit_positions(const std::string& pipeline, const std::string& run_id,
                                        const Spans& spans, const std::vector<TargetMark>& marks) {
  if (auto may = refuse_writing(); !may) return may;
  const std::lock_guard guard(mutex_);
  if (auto ours = parts_.locks->confirm(); !ours) return ours;
  const auto positions = position_rows(pipeline, run_id, spans);
  const auto kept_marks = mark_rows(pipeline, run_id, marks);
  auto committed = parts_.session->write([&](Statements& s) -> Result<void> {
    auto done = insert_rows(
        s,
        "INSERT INTO flow.positions (pipeline, topic, partition, next_position, identity, run_id,"
        " updated_ms)",
        " ON CONFLICT (pipeline, topic, partition) DO UPDATE SET"
        " next_position = excluded.next_position, identity = excluded.identity,"
        " run_id = excluded.run_id, updated_ms = excluded.updated_ms",
        positions);
    if (!done) return done;
    return insert_rows(s, "INSERT INTO flow.marks (pipeline, target, mark, run_id, updated_ms)",
                       " ON CONFLICT (pipeline, target) DO UPDATE SET mark = excluded.mark,"
                       " run_id = excluded.run_id, updated_ms = excluded.updated_ms",
                       kept_marks);
  });
  if (!committed) return committed;
  if (auto failed = reach(Point::commit_position_applied)) return *failed;
  return {};
}

Result<std::unique_ptr<Lock>> SqlState::lock(const std::string& name, Millis wait) {
  if (auto may = refuse_writing(); !may) return may.failure();
  return parts_.locks->take(name, wait);
}

LetterHome SqlState::letter_home() {
  return {parts_.session.get(), parts_.locks.get(), &mutex_, parts_.location};
}

Result<std::unique_ptr<DeadLetterStore>> SqlState::dead_letters() {
  return make_letter_table(letter_home());
}

Result<std::unique_ptr<LetterProgressStore>> SqlState::letter_progress(const std::string& topic) {
  return make_letter_progress(letter_home(), topic);
}

}  // namespace flow
