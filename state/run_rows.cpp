#include "state/run_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace flow {
namespace {

constexpr std::size_t rows_per_statement = 500;

Result<void> save_row(Statements& statements, const RunRow& run) {
  auto saved = statements.run(
      "INSERT INTO flow.runs (id, pipeline, version, contract, host, pid, started_ms, heartbeat_ms,"
      " ended_ms, status, records_read, error)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
      " ON CONFLICT (id) DO UPDATE SET pipeline = excluded.pipeline, version = excluded.version,"
      " contract = excluded.contract, host = excluded.host, pid = excluded.pid,"
      " started_ms = excluded.started_ms, heartbeat_ms = excluded.heartbeat_ms,"
      " ended_ms = excluded.ended_ms, status = excluded.status,"
      " records_read = excluded.records_read, error = excluded.error",
      {run.id, run.pipeline, run.version, storable_text(run.contract), run.host, cell(run.pid),
       cell(run.started_ms), cell(run.heartbeat_ms),
       run.ended_ms ? cell(*run.ended_ms) : std::nullopt, std::string(name_of(run.status)),
       cell(run.read), storable_text(run.error)});
  if (!saved) return saved.failure();
  return {};
}

Result<void> save_targets(Statements& statements, const RunRow& run) {
  std::vector<Cells> rows;
  std::int64_t place = 0;
  for (const auto& [target, counts] : run.targets) {
    rows.push_back({run.id, cell(place++), target, cell(counts.read), cell(counts.written),
                    cell(counts.filtered), cell(counts.dropped), cell(counts.dead),
                    cell(counts.pending), cell(counts.repeats), cell(counts.retries)});
  }
  return insert_rows(statements,
                     "INSERT INTO flow.run_targets (run_id, place, target, read, written, filtered,"
                     " dropped, dead, pending, repeats, retries)",
                     "", rows);
}

Result<void> save_positions(Statements& statements, const RunRow& run) {
  std::vector<Cells> rows;
  std::int64_t place = 0;
  for (const Span& span : run.positions) {
    rows.push_back({run.id, cell(place++), span.partition.topic,
                    cell(std::int64_t{span.partition.partition}), cell(span.from.next),
                    cell(span.next.next), span.identity});
  }
  return insert_rows(statements,
                     "INSERT INTO flow.run_positions (run_id, place, topic, partition,"
                     " from_position, next_position, identity)",
                     "", rows);
}

RunRow run_of(const Cells& row) {
  RunRow run;
  run.id = row[0].value_or("");
  run.pipeline = row[1].value_or("");
  run.version = row[2].value_or("");
  run.contract = row[3].value_or("");
  run.host = row[4].value_or("");
  run.pid = number_in(row[5]);
  run.started_ms = number_in(row[6]);
  run.heartbeat_ms = number_in(row[7]);
  if (row[8]) run.ended_ms = number_in(row[8]);
  run.status = run_status_named(row[9].value_or("")).value_or(RunStatus::interrupted);
  run.read = static_cast<std::uint64_t>(number_in(row[10]));
  run.error = row[11].value_or("");
  return run;
}

Result<void> load_targets(Statements& statements, const std::string& chosen,
                          std::map<std::string, RunRow*>& by_id, const Cells& parameters) {
  auto rows = statements.run(
      "SELECT run_id, target, read, written, filtered, dropped, dead, pending, repeats, retries"
      " FROM flow.run_targets WHERE run_id IN (" +
          chosen + ") ORDER BY run_id, place",
      parameters);
  if (!rows) return rows.failure();
  for (const Cells& row : *rows) {
    const auto count = [&](std::size_t at) {
      return static_cast<std::uint64_t>(number_in(row[at]));
    };
    by_id.at(row[0].value_or(""))
        ->targets.push_back({row[1].value_or(""),
                             {.read = count(2),
                              .written = count(3),
                              .filtered = count(4),
                              .dropped = count(5),
                              .dead = count(6),
                              .pending = count(7),
                              .repeats = count(8),
                              .retries = count(9)}});
  }
  return {};
}

Result<void> load_positions(Statements& statements, const std::string& chosen,
                            std::map<std::string, RunRow*>& by_id, const Cells& parameters) {
  auto rows = statements.run(
      "SELECT run_id, topic, partition, from_position, next_position, identity"
      " FROM flow.run_positions WHERE run_id IN (" +
          chosen + ") ORDER BY run_id, place",
      parameters);
  if (!rows) return rows.failure();
  for (const Cells& row : *rows) {
    by_id.at(row[0].value_or(""))
        ->positions.push_back({{row[1].value_or(""), static_cast<std::int32_t>(number_in(row[2]))},
                               {number_in(row[3])},
                               {number_in(row[4])},
                               row[5].value_or("")});
  }
  return {};
}

}  // namespace

Cell cell(std::int64_t number) { return std::to_string(number); }
Cell cell(std::uint64_t number) { return std::to_string(number); }
std::int64_t number_in(const Cell& cell) { return cell ? std::stoll(*cell) : 0; }

Result<void> insert_rows(Statements& statements, const std::string& head, const std::string& tail,
                         const std::vector<Cells>& rows) {
  for (std::size_t first = 0; first < rows.size(); first += rows_per_statement) {
    const std::size_t end = std::min(rows.size(), first + rows_per_statement);
    std::string sql = head + " VALUES ";
    Cells parameters;
    for (std::size_t r = first; r < end; ++r) {
      sql += r == first ? "(" : ", (";
      for (std::size_t c = 0; c < rows[r].size(); ++c) {
        parameters.push_back(rows[r][c]);
        sql += (c == 0 ? "$" : ", $") + std::to_string(parameters.size());
      }
      sql += ")";
    }
    if (auto done = statements.run(sql + tail, parameters); !done) return done.failure();
  }
  return {};
}

Result<void> save_run(Statements& statements, const RunRow& run) {
  if (auto saved = save_row(statements, run); !saved) return saved;
  for (const char* table : {"flow.run_targets", "flow.run_positions"}) {
    auto gone =
        statements.run("DELETE FROM " + std::string(table) + " WHERE run_id = $1", {run.id});
    if (!gone) return gone.failure();
  }
  if (auto saved = save_targets(statements, run); !saved) return saved;
  return save_positions(statements, run);
}

Result<std::vector<RunRow>> load_runs(Statements& statements, const std::string& pipeline,
                                      std::size_t limit) {
  const std::string which = pipeline.empty() ? " WHERE $1 = ''" : " WHERE pipeline = $1";
  const std::string newest = which + " ORDER BY started_ms DESC, id DESC LIMIT " +
                             std::to_string(std::min<std::size_t>(limit, 1'000'000'000));
  auto rows = statements.run(
      "SELECT id, pipeline, version, contract, host, pid, started_ms, heartbeat_ms, ended_ms,"
      " status, records_read, error FROM flow.runs" +
          newest,
      {pipeline});
  if (!rows) return rows.failure();
  std::vector<RunRow> runs;
  for (const Cells& row : *rows) runs.push_back(run_of(row));
  std::map<std::string, RunRow*> by_id;
  for (RunRow& run : runs) by_id[run.id] = &run;
  const std::string chosen = "SELECT id FROM flow.runs" + newest;
  if (auto loaded = load_targets(statements, chosen, by_id, {pipeline}); !loaded) {
    return loaded.failure();
  }
  if (auto loaded = load_positions(statements, chosen, by_id, {pipeline}); !loaded) {
    return loaded.failure();
  }
  return runs;
}

}  // namespace flow
