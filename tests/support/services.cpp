#include "tests/support/services.h"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "tests/support/temp_dir.h"

namespace flow::test {

Services services() {
  const char* file = std::getenv("FLOW_TEST_SERVICES");
  if (file == nullptr) {
    throw std::runtime_error(
        "FLOW_TEST_SERVICES is not set: run the tests by ctest, or run scripts/services start and "
        "set it to "
        "the services.env that it names");
  }
  return read_services(file);
}

Services read_services(const std::filesystem::path& file) {
  Services found;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(0, equals);
    const std::string value = line.substr(equals + 1);
    if (name == "FLOW_TEST_KAFKA") found.kafka = value;
    if (name == "FLOW_TEST_KAFKA_SASL") found.kafka_sasl = value;
    if (name == "FLOW_TEST_POSTGRES") found.postgres = value;
    if (name == "FLOW_TEST_POSTGRES_SOCKET") found.postgres_socket = value;
    if (name == "FLOW_TEST_POSTGRES_GUARDED") found.postgres_guarded = value;
    if (name == "FLOW_TEST_POSTGRES_LIMITED") found.postgres_limited = value;
  }
  return found;
}

}  // namespace flow::test
