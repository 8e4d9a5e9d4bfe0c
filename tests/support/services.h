#pragma once
#include <filesystem>
#include <string>

namespace flow::test {

// Where the real servers of scripts/services answer.
// Shape: kafka and kafka_sasl are host:port (SASL_PLAINTEXT with PLAIN: admin/admin-secret may do
// all, limited/limited-secret nothing); the others are postgres:// URLs of database `flow`:
// `postgres` as a superuser without password, `postgres_guarded` with the right password
// (guarded-secret), `postgres_limited` as a role without rights.
struct Services {
  std::string kafka;
  std::string kafka_sasl;
  std::string postgres;
  std::string postgres_socket;
  std::string postgres_guarded;
  std::string postgres_limited;
};

// Read from the file that FLOW_TEST_SERVICES names. Throws when there is none: a test that needs a
// server fails without it, it is never skipped.
Services services();

// The same from a given services.env; what the file does not name stays empty.
Services read_services(const std::filesystem::path& file);

}  // namespace flow::test
