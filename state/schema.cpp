#include "state/schema.h"

#include <array>
#include <random>
#include <span>

namespace flow {
namespace {

// One step. Never edited once released: a change is a new step.
struct Migration {
  int version;
  std::span<const char* const> statements;
};

constexpr std::array<const char*, 6> first{
    "CREATE TABLE flow.meta ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " state_id TEXT NOT NULL,"
    " schema_version INTEGER NOT NULL)",
    "CREATE TABLE flow.runs ("
    " id TEXT PRIMARY KEY NOT NULL,"
    " pipeline TEXT NOT NULL,"
    " version TEXT NOT NULL,"
    " contract TEXT NOT NULL,"
    " host TEXT NOT NULL,"
    " pid BIGINT NOT NULL,"
    " started_ms BIGINT NOT NULL,"
    " heartbeat_ms BIGINT NOT NULL,"
    " ended_ms BIGINT,"
    " status TEXT NOT NULL,"
    " records_read BIGINT NOT NULL,"
    " error TEXT NOT NULL)",
    "CREATE TABLE flow.run_targets ("
    " run_id TEXT NOT NULL,"
    " place INTEGER NOT NULL,"
    " target TEXT NOT NULL,"
    " read BIGINT NOT NULL,"
    " written BIGINT NOT NULL,"
    " filtered BIGINT NOT NULL,"
    " dropped BIGINT NOT NULL,"
    " dead BIGINT NOT NULL,"
    " pending BIGINT NOT NULL,"
    " repeats BIGINT NOT NULL,"
    " retries BIGINT NOT NULL,"
    " PRIMARY KEY (run_id, place))",
    "CREATE TABLE flow.run_positions ("
    " run_id TEXT NOT NULL,"
    " place INTEGER NOT NULL,"
    " topic TEXT NOT NULL,"
    " partition INTEGER NOT NULL,"
    " from_position BIGINT NOT NULL,"
    " next_position BIGINT NOT NULL,"
    " identity TEXT NOT NULL,"
    " PRIMARY KEY (run_id, place))",
    "CREATE TABLE flow.positions ("
    " pipeline TEXT NOT NULL,"
    " topic TEXT NOT NULL,"
    " partition INTEGER NOT NULL,"
    " next_position BIGINT NOT NULL,"
    " identity TEXT NOT NULL,"
    " run_id TEXT NOT NULL,"
    " updated_ms BIGINT NOT NULL,"
    " PRIMARY KEY (pipeline, topic, partition))",
    "CREATE TABLE flow.marks ("
    " pipeline TEXT NOT NULL,"
    " target TEXT NOT NULL,"
    " mark TEXT NOT NULL,"
    " run_id TEXT NOT NULL,"
    " updated_ms BIGINT NOT NULL,"
    " PRIMARY KEY (pipeline, target))"};

constexpr std::array migrations{Migration{1, first}};

std::string new_state_id() {
  static constexpr char hex[] = "0123456789abcdef";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 32; ++i) id += hex[random() & 15U];
  return id;
}

}  // namespace

int schema_version() { return migrations.back().version; }

Result<Meta> read_meta(Statements& statements, const std::string& where) {
  auto rows = statements.run("SELECT state_id, schema_version FROM flow.meta");
  if (!rows) return rows.failure();
  Failure failure{.cls = FailureClass::setup, .where = where};
  if (rows->size() != 1) {
    failure.what = "the state has no identity: its table flow.meta is not as it was made";
    failure.hint = "restore it from a copy, or name another state; it is never made anew silently";
    failure.exit = ExitCode::io;
    return failure;
  }
  Meta meta{(*rows)[0][0].value_or(""), std::stoi((*rows)[0][1].value_or("0"))};
  if (meta.version > schema_version()) {
    failure.what = "the state was written by a newer flow (schema " + std::to_string(meta.version) +
                   ", this program knows " + std::to_string(schema_version()) + ")";
    failure.hint = "use that newer flow, or name another state";
    return failure;
  }
  return meta;
}

Result<void> migrate(Statements& statements, int from_version) {
  for (const Migration& migration : migrations) {
    if (migration.version <= from_version) continue;
    for (const char* sql : migration.statements) {
      if (auto done = statements.run(sql); !done) return done.failure();
    }
  }
  auto kept = statements.run(
      "INSERT INTO flow.meta (one, state_id, schema_version) VALUES (1, $1, $2)"
      " ON CONFLICT (one) DO UPDATE SET schema_version = excluded.schema_version",
      {new_state_id(), std::to_string(schema_version())});
  if (!kept) return kept.failure();
  return {};
}

}  // namespace flow
