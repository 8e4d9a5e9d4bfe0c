#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "tests/support/temp_dir.h"

namespace flow::test {

// What to start. The program is argv[0], a path or a name looked up in PATH.
// Shape: env is added to ours, a nullopt takes the name away; input is what stdin holds, nothing by
// default.
struct Command {
  enum class Stderr { file, terminal };

  std::vector<std::string> argv;
  std::map<std::string, std::optional<std::string>> env = {};
  std::filesystem::path cwd = {};
  std::string input = {};
  Stderr stderr_to = Stderr::file;  // terminal: stderr is a pseudo terminal of 80 columns
};

// How a process ended: its exit code, or the signal that ended it (code is -1 then).
struct Ended {
  int code = -1;
  int signal = 0;
  bool operator==(const Ended&) const = default;
};

// A running program with its stdout and stderr captured.
// Owner: this object; a process that still runs is killed (SIGKILL) and reaped in the destructor,
// and the kernel kills it when the thread that started it ends. Errors: the constructor throws when
// the program cannot be started.
class Process {
 public:
  explicit Process(const Command& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void kill(int signal) const;

  // How it ended, or nullopt when it still runs at the deadline.
  std::optional<Ended> wait(std::chrono::milliseconds deadline = std::chrono::seconds(60));

  // What it wrote so far.
  std::string out() const { return read_file(dir_ / "stdout"); }
  std::string err() const { return read_file(dir_ / "stderr"); }

 private:
  void reap(int status);

  TempDir dir_;
  pid_t pid_ = -1;
  std::optional<Ended> ended_;
  std::thread terminal_;  // copies the pseudo terminal into the file
};

// Runs to the end and returns all of it; throws when it takes longer than the deadline.
struct Finished {
  Ended ended;
  std::string out;
  std::string err;
};
Finished run(const Command& command, std::chrono::milliseconds deadline = std::chrono::seconds(60));

}  // namespace flow::test
