// scripts/services leaves nothing behind, however the one who started it ends.
#include "tests/support/services.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <signal.h>
#include <string>

#include "tests/support/pg_help.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

using namespace flow::test;

namespace {

const std::string script = FLOW_SOURCE_DIR "/scripts/services";

// The processes, zombies aside, whose command line names this directory.
std::set<int> processes_of(const std::filesystem::path& directory) {
  std::set<int> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (line.find(directory.string()) != std::string::npos) found.insert(std::stoi(name));
  }
  return found;
}

void start_postgres(const TempDir& dir, pid_t owner) {
  const Finished started = run({{script, "start", "--dir", dir.path().string(), "--only",
                                 "postgres", "--owner", std::to_string(owner)}});
  INFO(started.out << started.err);
  REQUIRE(started.ended == Ended{0, 0});
}

}  // namespace

TEST_CASE("services end with their owner, and their files with them") {
  const TempDir dir;
  Process owner({{"sleep", "1000"}});
  start_postgres(dir, owner.pid());
  const std::string url = read_services(dir / "services.env").postgres;
  CHECK(pg_query(url, "SELECT 1") == std::vector<PgRow>{{"1"}});
  owner.kill(SIGKILL);
  owner.wait();
  CHECK(wait_for(std::chrono::seconds(20), [&] { return processes_of(dir.path()).empty(); }));
  CHECK_THROWS(PgConnection{url});
  CHECK(wait_for(std::chrono::seconds(5),
                 [&] { return !std::filesystem::exists(dir / "postgres"); }));
}

TEST_CASE(
    "services end when the process that watches over them is killed, and can be started again") {
  const TempDir dir;
  Process owner({{"sleep", "1000"}});
  start_postgres(dir, owner.pid());
  const std::string pid_file = read_file(dir.path() / "postgres" / "data" / "postmaster.pid");
  const std::string stat = read_file("/proc/" + pid_file.substr(0, pid_file.find('\n')) + "/stat");
  const int watcher = std::stoi(stat.substr(stat.rfind(')') + 4));
  REQUIRE(::kill(watcher, SIGKILL) == 0);
  CHECK(wait_for(std::chrono::seconds(20), [&] { return processes_of(dir.path()).empty(); }));

  start_postgres(dir, owner.pid());
  CHECK(pg_query(read_services(dir / "services.env").postgres, "SELECT 1") ==
        std::vector<PgRow>{{"1"}});
}

TEST_CASE("starting what runs changes nothing") {
  const TempDir dir;
  Process owner({{"sleep", "1000"}});
  start_postgres(dir, owner.pid());
  const std::string before = read_file(dir / "services.env");
  start_postgres(dir, owner.pid());
  CHECK(read_file(dir / "services.env") == before);
}
