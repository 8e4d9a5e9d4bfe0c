#include "state/schema.h"

#include <array>
#include <random>
#include <span>
#include <string_view>

namespace flow {
namespace {

// One step. Never edited once released: a change is a new step. Words in braces are what the two
// systems say differently.
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

// Version 2: dead letters.
constexpr std::array<const char*, 9> dead_letters{
    // What failed and how: narrow, because states change and are counted.
    "CREATE TABLE flow.dead_letters ("
    " id {serial},"
    " pipeline TEXT NOT NULL,"
    " version TEXT NOT NULL,"
    " target TEXT NOT NULL,"
    " topic TEXT NOT NULL,"
    " partition INTEGER NOT NULL,"
    " record_offset BIGINT NOT NULL,"
    " stage TEXT NOT NULL,"
    " class TEXT NOT NULL,"
    " code TEXT NOT NULL,"
    " error TEXT NOT NULL,"
    " attempts BIGINT NOT NULL,"
    " first_failed_ms BIGINT NOT NULL,"
    " last_failed_ms BIGINT NOT NULL,"
    " run_id TEXT NOT NULL,"
    " state TEXT NOT NULL DEFAULT 'pending',"
    " replays BIGINT NOT NULL DEFAULT 0,"
    " UNIQUE (pipeline, topic, partition, record_offset, target))",
    // The record itself, as the source gave it. headers: see core/dead_letter_sql.h.
    "CREATE TABLE flow.dead_letter_records ("
    " letter {id},"
    " key BYTEA,"
    " value BYTEA,"
    " headers BYTEA NOT NULL,"
    " timestamp_ms BIGINT NOT NULL,"
    " operation_id TEXT NOT NULL)",
    // Counts are read off this index alone.
    "CREATE INDEX {index}dead_letters_groups ON {on}dead_letters"
    " (pipeline, topic, target, stage, class, code, state, first_failed_ms, last_failed_ms)",
    "CREATE INDEX {index}dead_letters_pending ON {on}dead_letters (id) WHERE state = 'pending'",
    // store: empty for the table above, else the topic that holds the letters. A claimed letter is
    // pending in its table: to take and to give back letters does not write them anew.
    "CREATE TABLE flow.dead_letter_claims ("
    " store TEXT NOT NULL,"
    " letter BIGINT NOT NULL,"
    " replay TEXT NOT NULL,"
    " PRIMARY KEY (store, letter))",
    "CREATE TABLE flow.dead_letter_topic_progress ("
    " store TEXT NOT NULL,"
    " id BIGINT NOT NULL,"
    " origin TEXT NOT NULL,"
    " through BIGINT NOT NULL,"
    " state TEXT NOT NULL,"
    " replays BIGINT NOT NULL,"
    " PRIMARY KEY (store, id))",
    "CREATE TABLE flow.dead_letter_snapshots ("
    " snapshot TEXT NOT NULL,"
    " letter BIGINT NOT NULL,"
    " PRIMARY KEY (snapshot, letter))",
    "CREATE TABLE flow.dead_letter_audit ("
    " id {serial},"
    " store TEXT NOT NULL,"
    " letter BIGINT NOT NULL,"
    " at_ms BIGINT NOT NULL,"
    " replay TEXT NOT NULL,"
    " who TEXT NOT NULL,"
    " host TEXT NOT NULL,"
    " what TEXT NOT NULL,"
    " outcome TEXT NOT NULL)",
    "CREATE INDEX {index}dead_letter_audit_letter ON {on}dead_letter_audit (letter)"};

// Version 3: what outlives a run that dies.
constexpr std::array<const char*, 2> of_deaths{
    "CREATE TABLE flow.attempts ("
    " pipeline TEXT NOT NULL,"
    " topic TEXT NOT NULL,"
    " partition INTEGER NOT NULL,"
    " record_offset BIGINT NOT NULL,"
    " target TEXT NOT NULL,"
    " made BIGINT NOT NULL,"
    " first_failed_ms BIGINT NOT NULL,"
    " PRIMARY KEY (pipeline, topic, partition, record_offset, target))",
    "CREATE TABLE flow.in_flight ("
    " pipeline TEXT NOT NULL,"
    " topic TEXT NOT NULL,"
    " partition INTEGER NOT NULL,"
    " from_position BIGINT NOT NULL,"
    " next_position BIGINT NOT NULL,"
    " records BIGINT NOT NULL,"
    " deaths BIGINT NOT NULL,"
    " runs TEXT NOT NULL,"
    " PRIMARY KEY (pipeline, topic, partition))"};

constexpr std::array migrations{Migration{1, first}, Migration{2, dead_letters},
                                Migration{3, of_deaths}};

struct Word {
  std::string_view in_braces;
  std::string_view sqlite;
  std::string_view postgres;
};

constexpr std::array words{
    Word{"{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT",
         "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
    Word{"{id}", "INTEGER PRIMARY KEY", "BIGINT PRIMARY KEY"},
    Word{"{index}", "flow.", ""},
    Word{"{on}", "", "flow."},
};

std::string spoken(std::string sql, SqlDialect dialect) {
  for (const Word& word : words) {
    const auto said = dialect == SqlDialect::sqlite ? word.sqlite : word.postgres;
    for (auto at = sql.find(word.in_braces); at != std::string::npos;
         at = sql.find(word.in_braces, at + said.size())) {
      sql.replace(at, word.in_braces.size(), said);
    }
  }
  return sql;
}

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
      auto done = statements.run(spoken(sql, statements.dialect()));
      if (!done) return done.failure();
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
