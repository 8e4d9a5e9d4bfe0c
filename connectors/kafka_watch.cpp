#include "connectors/kafka_watch.h"

#include "core/clock.h"

namespace flow::kafka {

namespace {
constexpr Millis period{1'000};
constexpr Millis apart{5};  // between two calls, however often it is nudged
}  // namespace

Watch::Watch(std::function<void()> look) : look_(std::move(look)), thread_([this] { run(); }) {}

Watch::~Watch() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::nudge() {
  {
    const std::scoped_lock lock(mutex_);
    nudged_ = true;
  }
  changed_.notify_all();
}

void Watch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    nudged_ = false;
    lock.unlock();
    look_();
    lock.lock();
    changed_.wait_for(lock, apart, [&] { return stopping_; });
    changed_.wait_for(lock, period, [&] { return stopping_ || nudged_; });
  }
}

}  // namespace flow::kafka
