#include "connectors/format_csv_record.h"

#include <cstring>

namespace flow::csv {

namespace {

const char* find(const char* at, const char* end, char c) {
  if (at == end) return end;
  const auto* found =
      static_cast<const char*>(std::memchr(at, c, static_cast<std::size_t>(end - at)));
  return found == nullptr ? end : found;
}

std::string_view between(const char* first, const char* last) {
  return {first, static_cast<std::size_t>(last - first)};
}

std::string_view without_line_end(std::string_view record) {
  if (!record.empty() && record.back() == '\n') record.remove_suffix(1);
  if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
  return record;
}

std::string_view undouble(std::string_view raw, Arena& arena) {
  char* const first = arena.allocate(raw.size());
  char* out = first;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    *out++ = raw[i];
    if (raw[i] == '"') ++i;
  }
  return between(first, out);
}

// The field whose opening quote is before `at`; moves `at` behind the closing one. False: there is
// none.
bool quoted(const char*& at, const char* end, Arena& arena, std::string_view& field) {
  const char* const first = at;
  bool doubled = false;
  while (true) {
    at = find(at, end, '"');
    if (at == end) return false;
    ++at;
    if (at == end || *at != '"') break;
    doubled = true;
    ++at;
  }
  field = between(first, at - 1);
  if (doubled) field = undouble(field, arena);
  return true;
}

}  // namespace

const char* split(std::string_view record, char delimiter, Arena& arena, Fields& fields) {
  fields.clear();
  record = without_line_end(record);
  const char* at = record.data();
  const char* const end = at + record.size();
  const bool quotes = find(at, end, '"') != end;
  while (true) {
    std::string_view field;
    if (quotes && at < end && *at == '"') {
      ++at;
      if (!quoted(at, end, arena, field)) return "a quoted field is not closed";
      if (at < end && *at != delimiter) return "text follows the closing quote of a field";
    } else {
      const char* const first = at;
      at = find(at, end, delimiter);
      if (quotes && find(first, at, '"') != at) return "a field without quotes holds a quote";
      if (at > first) field = between(first, at);
    }
    fields.push_back(field);
    if (at == end) return nullptr;
    ++at;
  }
}

}  // namespace flow::csv
