#include "core/letters.h"

#include "core/clock.h"

namespace flow {
namespace {

std::optional<std::string> bytes_of(std::string_view bytes) {
  if (bytes.data() == nullptr) return std::nullopt;
  return std::string(bytes);
}

void cut(std::string& text, const std::string& part) {
  if (part.empty()) return;
  if (const auto at = text.find(part); at != text.npos) text.erase(at, part.size());
}

// What is left between the parts that were cut: ", : " and the like at either end or in a row.
std::string tidied(const std::string& text) {
  constexpr std::string_view between = ",: ";
  std::string out;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(between, at)) != text.npos) {
    std::size_t end = at;
    while (end < text.size()) {
      end = std::min(text.find_first_of(",:", end), text.size());
      if (end == text.size() || end + 1 == text.size() || text[end + 1] == ' ') break;
      ++end;  // "host:5432", "numeric(10,2)": no separator
    }
    if (!out.empty()) out += ", ";
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace

std::string letter_error(const Failure& failure, const std::string& place,
                         const std::string& label) {
  std::string where = failure.where;
  cut(where, place);
  cut(where, "target " + label);
  cut(where, label);
  where = tidied(where);
  return where.empty() ? failure.what : where + ": " + failure.what;
}

DeadLetter make_letter(const Pipeline& pipeline, const std::string& run_id, const Batch& batch,
                       const RecordFailure& failure, const Tried& tried) {
  const Record& record = batch.records[failure.record];
  DeadLetter letter;
  letter.pipeline = pipeline.name;
  letter.version = pipeline.digest;
  letter.target = pipeline.targets[failure.target].label;
  letter.origin = batch.spans[record.span].partition;
  letter.offset = record.offset;
  letter.key = bytes_of(record.key);
  letter.value = bytes_of(record.value);
  for (std::uint32_t h = 0; h < record.header_count; ++h) {
    const Header& header = batch.headers[record.header_first + h];
    letter.headers.push_back({std::string(header.name), bytes_of(header.value)});
  }
  letter.timestamp_ms = record.timestamp_ms;
  letter.stage = name_of(failure.stage);
  letter.cls = failure.failure.cls;
  letter.code = failure.failure.code;
  letter.error = letter_error(failure.failure, batch.where(failure.record), letter.target);
  letter.attempts = tried.attempts;
  letter.last_failed_ms = wall_ms();
  letter.first_failed_ms =
      tried.first_failed_ms > 0 ? tried.first_failed_ms : letter.last_failed_ms;
  letter.run_id = run_id;
  letter.operation_id = letter.origin.text() + "/" + std::to_string(letter.offset.value);
  return letter;
}

}  // namespace flow
