#pragma once
// What a source needs of a loop, for tests without one.
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ports.h"

namespace flow::test {

// Remembers what a source said of its partitions, in order. Threads: any.
class RecordingListener final : public PartitionListener {
 public:
  struct Event {
    enum class What { assigned, revoked, lost } what;
    std::vector<PartitionId> partitions;
  };

  void assigned(const std::vector<PartitionId>& partitions) override {
    add({Event::What::assigned, partitions});
  }
  void released(const std::vector<PartitionId>& partitions, Release how) override {
    if (on_release) on_release(partitions, how);
    add({how == Release::lost ? Event::What::lost : Event::What::revoked, partitions});
  }

  std::vector<Event> events() const {
    const std::scoped_lock lock(mutex_);
    return events_;
  }
  // What is assigned now.
  std::set<PartitionId> owned() const {
    const std::scoped_lock lock(mutex_);
    return owned_;
  }

  std::function<void(const std::vector<PartitionId>&, Release)> on_release;  // set before open()

 private:
  void add(Event event) {
    const std::scoped_lock lock(mutex_);
    for (const PartitionId& p : event.partitions) {
      if (event.what == Event::What::assigned) {
        owned_.insert(p);
      } else {
        owned_.erase(p);
      }
    }
    events_.push_back(std::move(event));
  }

  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::set<PartitionId> owned_;
};

// A loop whose writer is idle or busy, and which stops, as the test says. Threads: any.
class SwitchedControl final : public ReadControl {
 public:
  bool stopping() const override { return stop; }
  bool writer_idle() const override { return idle; }
  std::atomic<bool> stop{false};
  std::atomic<bool> idle{true};
};

// Keeps what was logged. Threads: any.
class RecordingLog final : public Log {
 public:
  void event(Level level, std::string_view noun_verb, const Fields& fields) override {
    if (level == Level::debug) return;
    std::string line(noun_verb);
    for (const auto& [name, value] : fields) line += " " + std::string(name) + "=" + value;
    const std::scoped_lock lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> lines() const {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }
  bool has(std::string_view part) const {
    const std::scoped_lock lock(mutex_);
    for (const std::string& line : lines_) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace flow::test
