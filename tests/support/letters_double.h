#pragma once
// The in-memory twin of DeadLetterStore, for tests of the loop: it keeps letters and can fail.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/dead_letter.h"

namespace flow::test {

// Unique per (pipeline, origin, offset, target). Threads: any.
class MemoryLetters final : public DeadLetterStore {
 public:
  std::function<Result<void>()> before_put;

  Result<void> put(std::span<const DeadLetter> letters) override {
    if (before_put) {
      if (auto r = before_put(); !r) return r;
    }
    const std::scoped_lock lock(mutex_);
    for (const DeadLetter& l : letters) {
      DeadLetter& kept = letters_[{l.pipeline, l.origin, l.offset, l.target}];
      const std::int64_t id = kept.id != 0 ? kept.id : static_cast<std::int64_t>(letters_.size());
      kept = l;
      kept.id = id;
    }
    return {};
  }
  Result<std::vector<DeadLetter>> list(const LetterFilter& filter) override {
    const std::scoped_lock lock(mutex_);
    std::vector<DeadLetter> out;
    for (const auto& [key, letter] : letters_) {
      if (!filter.target.empty() && filter.target != letter.target) continue;
      out.push_back(letter);
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return out;
  }
  Result<std::vector<LetterGroup>> groups(const LetterFilter&) override {
    return std::vector<LetterGroup>{};
  }
  Result<std::uint64_t> count(const LetterFilter& filter) override {
    return static_cast<std::uint64_t>(list(filter)->size());
  }
  Result<std::vector<LetterAudit>> audit(std::int64_t) override {
    return std::vector<LetterAudit>{};
  }
  Result<std::string> snapshot(const LetterFilter&) override { return std::string("1"); }
  Result<std::vector<DeadLetter>> claim(const LetterFilter& filter, const std::string&) override {
    return list(filter);
  }
  Result<void> settle(std::span<const LetterOutcome>, const std::string&,
                      const std::string&) override {
    return {};
  }
  Result<std::uint64_t> purge(const LetterFilter&) override { return std::uint64_t{0}; }

  // "topic/partition@offset target" of each, in order.
  std::vector<std::string> names() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> out;
    for (const auto& [key, l] : letters_)
      out.push_back(l.origin.text() + "@" + std::to_string(l.offset.value) + " " + l.target);
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, PartitionId, Offset, std::string>, DeadLetter> letters_;
};

}  // namespace flow::test
