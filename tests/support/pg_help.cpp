#include "tests/support/pg_help.h"

#include <atomic>
#include <chrono>
#include <pqxx/pqxx>
#include <stdexcept>
#include <unistd.h>

namespace flow::test {

struct PgConnection::Vendor {
  explicit Vendor(const std::string& url) : connection(url) {}
  pqxx::connection connection;
};

PgConnection::PgConnection(const std::string& url) : vendor_(std::make_unique<Vendor>(url)) {}

PgConnection::~PgConnection() = default;

std::vector<PgRow> PgConnection::query(const std::string& sql) {
  pqxx::nontransaction work(vendor_->connection);
  std::vector<PgRow> rows;
  try {
    for (const auto& row : work.exec(sql)) {
      auto& values = rows.emplace_back();
      for (const auto& field : row) {
        values.push_back(field.is_null() ? std::nullopt
                                         : std::optional<std::string>(std::in_place, field.c_str(),
                                                                      field.size()));
      }
    }
  } catch (const pqxx::sql_error& e) {
    throw std::runtime_error(std::string(e.what()) + " in: " + sql);
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
