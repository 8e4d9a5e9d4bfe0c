#include "connectors/postgres_letters.h"

#include <random>
#include <string>
#include <vector>

#include "core/dead_letter_sql.h"

namespace flow {
namespace {

constexpr const char* may_write_letters =
    "SELECT count(*) = 2 AND bool_and(has_schema_privilege(n.oid, 'USAGE')"
    " AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')"
    " AND has_table_privilege(c.oid, 'UPDATE'))"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'flow'"
    " AND c.relname IN ('dead_letters', 'dead_letter_records') AND c.relkind = 'r'";

constexpr const char* sees_lock =
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND classid = $1::bigint::oid AND objid = $2::bigint::oid AND objsubid = 1)";

std::string unguessable_name() {
  std::random_device random;
  std::string name = "home";
  for (int i = 0; i < 4; ++i) name += "-" + std::to_string(random());
  return name;
}

}  // namespace

Result<bool> same_postgres_database(PostgresClient& client, StateStore& state) {
  if (!state.location().starts_with("postgres")) return false;
  auto may = client.query(may_write_letters);
  if (!may) return may.failure();
  if (!may->yes(0, 0)) return false;
  const std::string name = unguessable_name();
  auto lock = state.lock(name, Millis{0});
  if (!lock) return lock.failure();
  if (*lock == nullptr) return false;
  const auto number = static_cast<std::uint64_t>(lock_number(state.id(), name));
  auto seen =
      client.query(sees_lock, {std::to_string(number >> 32), std::to_string(number & 0xffffffffU)});
  if (!seen) return seen.failure();
  return seen->yes(0, 0);
}

Result<void> insert_letters(PostgresClient& client, std::span<const DeadLetter> letters) {
  if (letters.empty()) return {};
  // The rows' own statements may have switched these off; without them many letters take long.
  auto joins = client.run("SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on");
  if (!joins) return joins;
  const auto distinct = distinct_letters(letters);
  std::span<const DeadLetter* const> left = distinct;
  while (!left.empty()) {
    const auto some = next_letters(left);
    left = left.subspan(some.size());
    const PostgresLetterArrays arrays = postgres_letter_arrays(some);
    PgParameters parameters;
    parameters.types.assign(arrays.types.begin(), arrays.types.end());
    parameters.values.assign(arrays.values.begin(), arrays.values.end());
    if (auto r = client.query(postgres_letter_statement(), parameters); !r) return r.failure();
  }
  return {};
}

}  // namespace flow
