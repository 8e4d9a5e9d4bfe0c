#pragma once
// The statements of one target, made once, and the array parameters of the small ones.
#include <span>
#include <string>
#include <vector>

#include "connectors/postgres_catalog.h"
#include "connectors/postgres_client.h"
#include "connectors/postgres_copy.h"
#include "core/batch.h"
#include "core/pipeline.h"

namespace flow {

// How rows get into a table. Two ways:
//   direct: COPY into the table (append).
//   staged: COPY into a temporary table that lives for one transaction (or, for few rows, array
//   parameters), then
//           one INSERT ... SELECT: merge, and append where COPY cannot (values as text, views, row
//           security).
// Every statement stands inside one transaction and leaves nothing behind in the session.
struct PgStatements {
  bool staged = false;
  std::string begin;  // transaction and its settings
  std::string copy;   // direct
  std::string stage;  // makes the temporary table and begins its COPY
  std::string insert_staged;
  std::string insert_arrays;  // one array parameter per column
  std::string each_function;  // makes pg_temp.flow_each: array parameters in, refused rows out
  std::string each;           // calls it
  std::string erase_arrays;   // one array parameter per key column
  std::vector<PgWire> wires;  // per column
  std::vector<std::size_t> key;
};

struct PgSession {
  int server_version = 0;
  bool raise_commit =
      false;  // the role commits asynchronously: each transaction asks for durability
};

PgStatements make_statements(const PgTable& table, const TargetSpec& spec,
                             const std::vector<PgColumn>& columns, const PgSession& session);

// Cells of chosen rows and columns as binary arrays. Owner: of the buffers, reused. Wording::text:
// what travels as text goes as text[], for the server to convert value by value.
class PgArrays {
 public:
  enum class Wording : std::uint8_t { native, text };
  // False: a cell cannot be written; `row` and `column` say which (indexes into `rows` and the
  // plan).
  bool fill(const RowSet& set, std::span<const std::uint32_t> rows,
            const std::vector<PgColumn>& columns, std::span<const std::size_t> chosen,
            Wording wording = Wording::native);
  const PgParameters& parameters() const { return parameters_; }
  std::size_t bad_row() const { return bad_row_; }
  std::size_t bad_column() const { return bad_column_; }

 private:
  std::vector<ByteSink> sinks_;
  PgParameters parameters_;
  std::size_t bad_row_ = 0;
  std::size_t bad_column_ = 0;
};

}  // namespace flow
