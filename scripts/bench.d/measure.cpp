// measure FILE COMMAND ARG...: runs the command and writes its wall and CPU seconds, peak RSS and
// exit code as JSON. A program of its own, since a large parent would count as the peak of a small
// child.
#include <chrono>
#include <cstdio>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {
double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: measure FILE COMMAND ARG...\n", stderr), 64;
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child) return std::perror("measure"), 71;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) return std::perror(argv[1]), 73;
  std::fprintf(file, "{\"seconds\": %.3f, \"cpu\": %.3f, \"rss_mib\": %.1f, \"exit\": %d}\n",
               wall.count(), seconds(used.ru_utime) + seconds(used.ru_stime),
               static_cast<double>(used.ru_maxrss) / 1024, code);
  return std::fclose(file) == 0 ? 0 : 74;
}
