#include "connectors/format_json_keys.h"

#include <algorithm>

namespace flow::json {

namespace {

constexpr std::size_t names_max = 1024;  // remembered besides the wanted ones
constexpr std::size_t name_bytes_max = 256;

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash ^ hash >> 29U;
}

}  // namespace

Keys::Keys() : entries_(1), slots_(64, none) {}

std::uint32_t Keys::want(std::string_view name) {
  const std::size_t slot = slot_of(name);
  Entry& entry = entries_[slots_[slot] != none ? slots_[slot] : add(name)];
  if (entry.number == none) entry.number = wanted_++;
  return entry.number;
}

// The slot that holds the name, or the free one where it belongs.
std::size_t Keys::slot_of(std::string_view name) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(name) & mask;
  while (slots_[slot] != none && !entries_[slots_[slot]].is(name)) slot = (slot + 1) & mask;
  return slot;
}

std::uint32_t Keys::find(std::string_view name) {
  const std::uint32_t found = slots_[slot_of(name)];
  if (found != none) return found;
  if (entries_.size() > names_max + wanted_ || name.size() > name_bytes_max) return none;
  return add(name);
}

std::uint32_t Keys::add(std::string_view name) {
  const auto entry = static_cast<std::uint32_t>(entries_.size());
  entries_.emplace_back();
  entries_.back().name = name;
  if (entries_.size() * 2 > slots_.size()) {
    slots_.assign(slots_.size() * 2, none);
    for (std::uint32_t i = 1; i < entry; ++i) slots_[slot_of(entries_[i].name)] = i;
  }
  slots_[slot_of(name)] = entry;
  return entry;
}

std::string_view Keys::end_object() {
  if (further_.size() < 2) return {};
  std::sort(further_.begin(), further_.end());
  const auto twice = std::adjacent_find(further_.begin(), further_.end());
  return twice == further_.end() ? std::string_view{} : *twice;
}

}  // namespace flow::json
