#include "cli/signals.h"

#include <atomic>
#include <csignal>
#include <unistd.h>

namespace flow {

namespace {

std::atomic<StopSignal*> target{nullptr};

extern "C" void on_stop_signal(int number) {
  StopSignal* stop = target.load(std::memory_order_relaxed);
  if (stop == nullptr || stop->requested()) _exit(128 + number);
  stop->drain();
}

}  // namespace

void install_signals(StopSignal& stop) {
  target = &stop;
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace flow
