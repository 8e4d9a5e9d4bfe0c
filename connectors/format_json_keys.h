#pragma once
// The names of one object: which of them a pipeline asks for, and whether one comes twice. Records
// of a stream look alike, so each name is first compared with the one that followed last time; what
// was seen once is remembered up to a bound.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flow::json {

// Threads: one. Memory: names_max remembered names, and views of one object's further names.
class Keys {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  enum class Answer : std::uint8_t { wanted, other, duplicate };

  Keys();
  // Number of the wanted name, counted from 0 in order of first mention.
  std::uint32_t want(std::string_view name);

  void begin_object() {
    ++object_;
    last_ = 0;
    further_.clear();
  }
  // wanted: `number` is what want() gave.
  Answer look_up(std::string_view name, std::uint32_t& number) {
    const std::uint32_t guess = entries_[last_].follower;
    const std::uint32_t found = guess != none && entries_[guess].is(name) ? guess : find(name);
    if (found == none) [[unlikely]] {
      further_.push_back(name);
      return Answer::other;
    }
    Entry& entry = entries_[found];
    if (entry.object == object_) return Answer::duplicate;
    entry.object = object_;
    entries_[last_].follower = found;
    last_ = found;
    number = entry.number;
    return number == none ? Answer::other : Answer::wanted;
  }
  // A name that came twice among those that are not remembered; null data: there is none.
  std::string_view end_object();

 private:
  struct Entry {
    std::string name;
    std::uint32_t number = none;    // of a wanted name
    std::uint32_t follower = none;  // the entry that came next, last time
    std::uint64_t object = 0;       // the object that had it last
    bool is(std::string_view other) const { return name == other; }
  };

  std::uint32_t find(std::string_view name);
  std::uint32_t add(std::string_view name);
  std::size_t slot_of(std::string_view name) const;

  std::vector<Entry> entries_;             // the first stands for the object's beginning
  std::vector<std::uint32_t> slots_;       // hash table of entry numbers
  std::vector<std::string_view> further_;  // names of this object beyond the bound
  std::uint64_t object_ = 0;
  std::uint32_t last_ = 0;
  std::uint32_t wanted_ = 0;
};

}  // namespace flow::json
