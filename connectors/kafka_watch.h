#pragma once
// A thread that asks the brokers where the partitions end. Its answers are the lag; its requests
// also wake librdkafka's fetchers, which sleep up to a second after a local queue was full.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/pipeline.h"

namespace flow::kafka {

// Calls `look` once a second, and soon after each nudge. Shape: one a source. Threads: `look` runs
// on the watch's own; nudge() by any. Owner: destruction waits for a call under way.
class Watch {
 public:
  explicit Watch(std::function<void()> look);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void nudge();

 private:
  void run();
  std::function<void()> look_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool nudged_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last: starts when the rest is there
};

}  // namespace flow::kafka
