#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flow::test {

using PgRow = std::vector<std::optional<std::string>>;

// One connection to a PostgreSQL, for looking and preparing: by libpqxx, so that what a test sees
// does not come through the program's own code for libpq. Errors: throws std::runtime_error with
// the server's message.
class PgConnection {
 public:
  explicit PgConnection(const std::string& url);
  ~PgConnection();

  // The rows of the last statement as PostgreSQL's own text of each value; NULL is nullopt.
  std::vector<PgRow> query(const std::string& sql);

 private:
  struct Vendor;
  std::unique_ptr<Vendor> vendor_;
};

// One query on a connection of its own.
std::vector<PgRow> pg_query(const std::string& url, const std::string& sql);

// A schema of this test alone, dropped with all it holds when this goes out of scope.
// Shape: url() is the server's URL with this schema first in the search path.
class PgSchema {
 public:
  explicit PgSchema(const std::string& server_url, std::string_view prefix = "test");
  ~PgSchema();
  PgSchema(const PgSchema&) = delete;
  PgSchema& operator=(const PgSchema&) = delete;

  const std::string& name() const { return name_; }
  std::string table(std::string_view table) const { return name_ + "." + std::string(table); }
  std::string url() const;
  std::vector<PgRow> query(const std::string& sql) const { return pg_query(url(), sql); }

 private:
  std::string server_url_;
  std::string name_;
};

// A name nobody else uses: prefix, process, time and a counter, in [a-z0-9_].
std::string unique_name(std::string_view prefix);

}  // namespace flow::test
