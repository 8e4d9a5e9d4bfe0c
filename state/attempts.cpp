// What must outlive a run that dies: attempts at records, and the records in hand.
#include <utility>

#include "core/clock.h"
#include "state/run_rows.h"
#include "state/sql_state.h"

namespace flow {
namespace {

PartitionId partition_of(const Cells& row) {
  return {row[0].value_or(""), static_cast<std::int32_t>(number_in(row[1]))};
}

}  // namespace

Result<std::vector<Attempts>> SqlState::attempts(const std::string& pipeline) {
  const std::lock_guard guard(mutex_);
  std::vector<Attempts> found;
  auto read = parts_.session->read([&](Statements& s) -> Result<void> {
    auto rows = s.run(
        "SELECT topic, partition, record_offset, target, made, first_failed_ms FROM flow.attempts"
        " WHERE pipeline = $1",
        {pipeline});
    if (!rows) return rows.failure();
    found.clear();
    for (const Cells& row : *rows) {
      found.push_back({partition_of(row), Offset{number_in(row[2])}, row[3].value_or(""),
                       number_in(row[4]), number_in(row[5])});
    }
    return {};
  });
  if (!read) return read.failure();
  return found;
}

Result<void> SqlState::keep_attempts(const std::string& pipeline,
                                     const std::vector<Attempts>& attempts) {
  if (auto may = refuse_writing(); !may) return may;
  const std::lock_guard guard(mutex_);
  std::vector<Cells> kept;
  for (const Attempts& a : attempts) {
    if (a.made == 0) continue;
    kept.push_back({pipeline, a.origin.topic, cell(std::int64_t{a.origin.partition}),
                    cell(a.offset.value), a.target, cell(a.made), cell(a.first_failed_ms)});
  }
  return parts_.session->write([&](Statements& s) -> Result<void> {
    for (const Attempts& a : attempts) {
      if (a.made > 0) continue;
      auto gone = s.run(
          "DELETE FROM flow.attempts WHERE pipeline = $1 AND topic = $2 AND partition = $3"
          " AND record_offset = $4 AND target = $5",
          {pipeline, a.origin.topic, cell(std::int64_t{a.origin.partition}), cell(a.offset.value),
           a.target});
      if (!gone) return gone.failure();
    }
    return insert_rows(
        s,
        "INSERT INTO flow.attempts (pipeline, topic, partition, record_offset, target, made,"
        " first_failed_ms)",
        " ON CONFLICT (pipeline, topic, partition, record_offset, target)"
        " DO UPDATE SET made = excluded.made",
        kept);
  });
}

Result<std::vector<InFlight>> SqlState::in_flight(const std::string& pipeline) {
  const std::lock_guard guard(mutex_);
  std::vector<InFlight> found;
  auto read = parts_.session->read([&](Statements& s) -> Result<void> {
    auto rows = s.run(
        "SELECT topic, partition, from_position, next_position, records, deaths, runs"
        " FROM flow.in_flight WHERE pipeline = $1",
        {pipeline});
    if (!rows) return rows.failure();
    found.clear();
    for (const Cells& row : *rows) {
      found.push_back(
          {{partition_of(row), Position{number_in(row[2])}, Position{number_in(row[3])}, {}},
           static_cast<std::uint64_t>(number_in(row[4])),
           number_in(row[5]),
           row[6].value_or("")});
    }
    return {};
  });
  if (!read) return read.failure();
  return found;
}

Result<void> SqlState::keep_in_flight(const std::string& pipeline,
                                      const std::vector<InFlight>& in_flight) {
  if (auto may = refuse_writing(); !may) return may;
  const std::lock_guard guard(mutex_);
  std::vector<Cells> kept;
  for (const InFlight& f : in_flight) {
    if (f.records == 0) continue;
    const PartitionId& p = f.span.partition;
    kept.push_back({pipeline, p.topic, cell(std::int64_t{p.partition}), cell(f.span.from.next),
                    cell(f.span.next.next), cell(f.records), cell(f.deaths), f.runs});
  }
  return parts_.session->write([&](Statements& s) -> Result<void> {
    for (const InFlight& f : in_flight) {
      auto gone =
          s.run("DELETE FROM flow.in_flight WHERE pipeline = $1 AND topic = $2 AND partition = $3",
                {pipeline, f.span.partition.topic, cell(std::int64_t{f.span.partition.partition})});
      if (!gone) return gone.failure();
    }
    return insert_rows(s,
                       "INSERT INTO flow.in_flight (pipeline, topic, partition, from_position,"
                       " next_position, records, deaths, runs)",
                       "", kept);
  });
}

}  // namespace flow
