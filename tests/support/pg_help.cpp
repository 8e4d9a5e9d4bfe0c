#include "tests/support/pg_help.h"

#include <atomic>
#include <chrono>
#include <libpq-fe.h>
#include <stdexcept>
#include <unistd.h>

namespace flow::test {

void PgConnection::Close::operator()(pg_conn* connection) const { PQfinish(connection); }

PgConnection::PgConnection(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
}

std::vector<PgRow> PgConnection::query(const std::string& sql) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection_.get(), sql.c_str()),
                                                             PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY) {
    const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    throw std::runtime_error(std::string(PQerrorMessage(connection_.get())) + " (" +
                             (state ? state : "no SQLSTATE") + ") in: " + sql);
  }
  std::vector<PgRow> rows;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    auto& values = rows.emplace_back();
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      values.push_back(PQgetisnull(result.get(), row, column) != 0
                           ? std::nullopt
                           : std::optional<std::string>(
                                 std::in_place, PQgetvalue(result.get(), row, column),
                                 static_cast<size_t>(PQgetlength(result.get(), row, column))));
    }
  }
  return rows;
}

std::vector<PgRow> pg_query(const std::string& url, const std::string& sql) {
  return PgConnection(url).query(sql);
}

PgSchema::PgSchema(const std::string& server_url, std::string_view prefix)
    : server_url_(server_url), name_(unique_name(prefix)) {
  pg_query(server_url_, "CREATE SCHEMA " + name_);
}

PgSchema::~PgSchema() {
  try {
    pg_query(server_url_, "DROP SCHEMA IF EXISTS " + name_ + " CASCADE");
  } catch (const std::exception&) {  // the server of this test may be gone by now
  }
}

std::string PgSchema::url() const {
  return server_url_ + (server_url_.find('?') == std::string::npos ? "?" : "&") +
         "options=-csearch_path%3D" + name_ + "%2Cpublic";
}

std::string unique_name(std::string_view prefix) {
  static std::atomic<unsigned> counter{0};
  const auto now =
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
  return std::string(prefix) + "_" + std::to_string(::getpid()) + "_" + std::to_string(now) + "_" +
         std::to_string(counter++);
}

}  // namespace flow::test
