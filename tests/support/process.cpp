#include "tests/support/process.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/wait_for.h"

namespace flow::test {
namespace {

// The environment and arguments as execvpe wants them, made before the fork: nothing is allocated
// after it.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> merged_environment(const Command& command) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!command.env.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : command.env) {
    if (value) all.push_back(name + "=" + *value);
  }
  return all;
}

int open_or_throw(const std::filesystem::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (descriptor < 0)
    throw std::runtime_error("cannot open " + path.string() + ": " + std::strerror(errno));
  return descriptor;
}

// Copies what the pseudo terminal shows until the last writer closes it.
void copy_terminal(int terminal, int file) {
  std::array<char, 4096> buffer{};
  for (ssize_t got; (got = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
    if (::write(file, buffer.data(), static_cast<size_t>(got)) != got) break;
  }
  ::close(terminal);
  ::close(file);
}

}  // namespace

Process::Process(const Command& command) {
  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> environment = merged_environment(command);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  const int in = open_or_throw(dir_.write("stdin", command.input), O_RDONLY);
  const int out = open_or_throw(dir_ / "stdout", O_WRONLY | O_CREAT | O_APPEND);
  const int err_file = open_or_throw(dir_ / "stderr", O_WRONLY | O_CREAT | O_APPEND);
  int err = err_file;
  int terminal = -1;
  if (command.stderr_to == Command::Stderr::terminal) {
    const struct winsize size { 24, 80, 0, 0 };
    if (::openpty(&terminal, &err, nullptr, nullptr, &size) != 0)
      throw std::runtime_error("no pseudo terminal");
    ::fcntl(terminal, F_SETFD, FD_CLOEXEC);
    ::fcntl(err, F_SETFD, FD_CLOEXEC);
  }
  std::array<int, 2> failed{};
  if (::pipe2(failed.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    if (command.cwd.empty() || ::chdir(command.cwd.c_str()) == 0)
      ::execvpe(argv[0], argv.data(), envp.data());
    const int why = errno;
    if (::write(failed[1], &why, sizeof why) != sizeof why) ::_exit(126);
    ::_exit(127);
  }
  ::close(in);
  ::close(out);
  ::close(failed[1]);
  if (terminal >= 0) {
    ::close(err);
    terminal_ = std::thread(copy_terminal, terminal, err_file);
  } else {
    ::close(err_file);
  }
  int why = 0;
  const ssize_t got = ::read(failed[0], &why, sizeof why);
  ::close(failed[0]);
  if (pid_ < 0 || got > 0) {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    if (terminal_.joinable()) terminal_.join();
    throw std::runtime_error("cannot start " + command.argv.at(0) + ": " + std::strerror(why));
  }
}

Process::~Process() {
  if (!ended_) {
    kill(SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    reap(status);
  }
}

void Process::reap(int status) {
  ended_ = WIFEXITED(status) ? Ended{WEXITSTATUS(status), 0} : Ended{-1, WTERMSIG(status)};
  if (terminal_.joinable()) terminal_.join();
}

bool Process::running() {
  int status = 0;
  if (!ended_ && ::waitpid(pid_, &status, WNOHANG) == pid_) reap(status);
  return !ended_;
}

void Process::kill(int signal) const {
  if (!ended_) ::kill(pid_, signal);
}

std::optional<Ended> Process::wait(std::chrono::milliseconds deadline) {
  wait_for(
      deadline, [this] { return !running(); }, std::chrono::milliseconds(2));
  return ended_;
}

Finished run(const Command& command, std::chrono::milliseconds deadline) {
  Process process(command);
  const auto ended = process.wait(deadline);
  if (!ended) {
    throw std::runtime_error(command.argv.at(0) + " still runs at the deadline; it wrote:\n" +
                             process.out() + process.err());
  }
  return {*ended, process.out(), process.err()};
}

}  // namespace flow::test
