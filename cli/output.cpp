#include "cli/output.h"

#include <algorithm>
#include <iostream>

namespace flow {

void print_json(const std::string& name, Json document, const Masker& masker) {
  Json out;
  out["schema"] = "flow." + name + "/1";
  for (auto& [key, value] : document.items()) out[key] = value;
  std::cout << masker.text(out.dump(2, ' ', false, Json::error_handler_t::replace)) << '\n'
            << std::flush;
}

namespace {

// Width of UTF-8 text in characters, good enough for tables.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows,
                  const std::vector<char>& right) {
  std::vector<std::size_t> widths;
  for (const std::string& h : head) widths.push_back(width_of(h));
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string blanks(widths[c] - width_of(cells[c]), ' ');
      const bool to_right = c < right.size() && right[c] != 0;
      text += (c == 0 ? "" : "  ") + (to_right ? blanks + cells[c] : cells[c] + blanks);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line(head);
  for (const auto& row : rows) line(row);
  return out;
}

void print_failure(const Failure& failure, const Masker& masker) {
  std::cerr << masker.text("flow: error: " + failure.text()) << std::endl;
}

Json failure_json(const Failure& failure) {
  Json j;
  j["class"] = name_of(failure.cls);
  j["effect"] = failure.effect == Effect::none ? "none" : "unknown";
  j["code"] = failure.code;
  j["where"] = failure.where;
  j["what"] = failure.what;
  j["hint"] = failure.hint;
  j["exit_code"] = static_cast<int>(failure.exit_code());
  return j;
}

std::string with_separators(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

Json counts_json(const Counts& c) {
  Json j;
  j["read"] = c.read;
  j["written"] = c.written;
  j["filtered"] = c.filtered;
  j["dropped"] = c.dropped;
  j["dead_lettered"] = c.dead;
  j["pending"] = c.pending;
  j["possible_repeats"] = c.repeats;
  j["retries"] = c.retries;
  return j;
}

Json spans_json(const Spans& spans) {
  Json out = Json::array();
  for (const Span& s : spans) {
    Json j;
    j["topic"] = s.partition.topic;
    j["partition"] = s.partition.partition;
    j["from"] = s.from.next;
    j["next"] = s.next.next;
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace flow
