#include "tests/state/child.h"

#include <cstdio>
#include <exception>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flow::test {

Child::Child(const std::function<int()>& work) : pid_(::fork()) {
  if (pid_ != 0) return;
  int code = 99;
  try {
    code = work();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "child: %s\n", e.what());
  }
  ::_exit(code);
}

void Child::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

int Child::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace flow::test
