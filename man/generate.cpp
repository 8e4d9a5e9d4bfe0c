// Writes the tables of the manual that come from the program's own tables, into the pages, between
//   .\" begin generated: NAME   and   .\" end generated: NAME
//
//   flow-man-tables check DIR     ends with 1 and names the pages that are stale
//   flow-man-tables refresh DIR   mends them
//   flow-man-tables print NAME    one table on standard output
#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings_reference.h"
#include "core/classify.h"
#include "core/contract.h"
#include "core/failure_point.h"
#include "core/value_rules.h"

namespace flow {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Text that roff shows as it is.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out;
}

std::string block(std::string_view text) {
  const std::string shown = roff(text);
  const bool control = !shown.empty() && (shown.front() == '.' || shown.front() == '\'');
  return "T{\n" + std::string(control ? "\\&" : "") + shown + "\nT}";
}

// A tbl table. `options`: of the whole table; `layout`: the letters of each column.
std::string tbl(std::string_view options, std::string_view layout,
                const std::vector<std::string>& head, const Rows& rows) {
  std::string out = ".TS\n" + std::string(options) + ";\n";
  for (std::size_t c = 0; c < head.size(); ++c) out += c == 0 ? "lB" : " lB";
  out += "\n" + std::string(layout) + ".\n";
  const auto line = [&out](const std::vector<std::string>& cells, bool wrapped) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      out += (c == 0 ? "" : "\t") + (wrapped ? block(cells[c]) : roff(cells[c]));
    }
    out += "\n";
  };
  line(head, false);
  for (const auto& row : rows) line(row, true);
  return out + ".TE\n";
}

std::string errors_of(FailureSystem system) {
  Rows rows;
  for (const FailureRow& row : failure_table()) {
    if (row.system != system) continue;
    std::string code(row.code);
    if (row.number != 0) code += " (" + std::to_string(row.number) + ")";
    rows.push_back({code, std::string(name_of(row.cls)), std::string(row.sentence)});
  }
  return tbl("nokeep", "l l lx", {"code", "class", "meaning"}, rows);
}

// Width in characters of UTF-8 text.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > width_of(text) ? width - width_of(text) : 0, ' ');
}

// Each rule, and below it what it makes of some values.
std::string values() {
  std::string out;
  bool open = false;
  for (const ValueRule& rule : value_rules()) {
    if (!rule.why.empty()) {
      out += std::string(open ? ".fi\n.RE\n" : "") + ".PP\n" + roff(rule.why) + "\n.RS 4\n.nf\n";
      open = true;
    }
    std::string column(rule.type);
    if (!rule.setting.empty()) column += ", " + std::string(rule.setting);
    const std::string input = rule.input.empty() ? "(no such field)" : std::string(rule.input);
    out += "\\&" + roff(padded(input, 31) + " " + padded(column, 20) + " ") +
           (rule.result == value_refused ? "refused" : "\\(-> " + roff(rule.result)) + "\n";
  }
  return out + (open ? ".fi\n.RE\n" : "");
}

std::string points() {
  std::string out = ".nf\n";
  for (const Point point : all_points()) out += std::string(name_of(point)) + "\n";
  return out + ".fi\n";
}

// One pipeline for each kind of target, small enough to read its contract.
struct Sample {
  std::string name;
  Pipeline pipeline;
};

Pipeline sample_pipeline(const std::string& source, const std::string& target, Mode mode) {
  Pipeline p;
  p.name = "sample";
  p.source.kind = source;
  p.source.kafka.group = "flow.sample";
  p.source.file.paths = {"/data/*.jsonl"};
  TargetSpec t;
  t.kind = target;
  t.label = target;
  t.mode = mode;
  p.targets = {t};
  return p;
}

std::vector<Sample> samples() {
  return {{"postgres or sqlite, append", sample_pipeline("kafka", "postgres", Mode::append)},
          {"postgres or sqlite, merge", sample_pipeline("kafka", "postgres", Mode::merge)},
          {"kafka", sample_pipeline("kafka", "kafka", Mode::append)},
          {"file, from Kafka", sample_pipeline("kafka", "file", Mode::append)},
          {"file, from files", sample_pipeline("file", "file", Mode::append)},
          {"stdout", sample_pipeline("kafka", "stdout", Mode::append)}};
}

Contract contract_of(const Sample& sample) {
  auto contract = derive_contract(sample.pipeline);
  FLOW_CHECK(contract.ok(), "a sample pipeline of the manual has no contract");
  return std::move(contract).value();
}

std::string targets() {
  std::string out;
  for (const Sample& sample : samples()) {
    const TargetContract t = contract_of(sample).targets.front();
    out += ".SS " + roff(sample.name) + "\n";
    for (const auto& [name, text] :
         {std::pair("guarantee", t.guarantee), std::pair("why", t.why),
          std::pair("repeats", t.repeats), std::pair("rests on", t.needs),
          std::pair("stops at", t.stops)}) {
      out += ".TP\n.I " + std::string(name) + "\n" + roff(text) + "\n";
    }
  }
  return out;
}

std::string windows() {
  Rows rows;
  std::vector<std::string> head = {"target"};
  for (const Sample& sample : samples()) {
    std::vector<std::string> row = {sample.name};
    const Contract contract = contract_of(sample);
    for (const CrashWindow& w : contract.windows) {
      if (rows.empty()) head.push_back(w.boundary.substr(0, w.boundary.find(':')));
      row.push_back(w.effects.front());
    }
    rows.push_back(std::move(row));
  }
  return tbl("allbox", "lx lx lx lx", head, rows);
}

const std::map<std::string, std::function<std::string()>>& tables() {
  static const std::map<std::string, std::function<std::string()>> all = {
      {"errors.postgres", [] { return errors_of(FailureSystem::postgres); }},
      {"errors.sqlite", [] { return errors_of(FailureSystem::sqlite); }},
      {"errors.kafka", [] { return errors_of(FailureSystem::kafka); }},
      {"errors.http", [] { return errors_of(FailureSystem::http); }},
      {"errors.flow", [] { return errors_of(FailureSystem::flow); }},
      {"points", points},
      {"settings", settings_reference_roff},
      {"targets", targets},
      {"values", values},
      {"windows", windows}};
  return all;
}

// The page with each generated part as it is to be. Errors: a mark without its end, or without a
// table.
Result<std::string> renewed(const std::string& page, const std::string& text) {
  std::string out;
  std::size_t at = 0;
  static constexpr std::string_view begin = ".\\\" begin generated: ";
  for (;;) {
    const std::size_t mark = text.find(begin, at);
    if (mark == std::string::npos) return out + text.substr(at);
    const std::size_t line_end = text.find('\n', mark);
    const std::string name = text.substr(mark + begin.size(), line_end - mark - begin.size());
    const std::size_t end = text.find(".\\\" end generated: " + name + "\n", mark);
    const auto table = tables().find(name);
    if (end == std::string::npos || table == tables().end()) {
      return Failure{.cls = FailureClass::defect,
                     .where = page,
                     .what = end == std::string::npos ? "the part " + name + " has no end"
                                                      : "there is no table " + name};
    }
    out += text.substr(at, line_end + 1 - at) + table->second();
    at = end;
  }
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  FLOW_CHECK(in.is_open(), "a page of the manual cannot be read");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

int pages(const std::string& directory, bool refresh) {
  bool stale = false;
  for (const char* name : {"flow-pipeline.5", "flow-delivery.7", "flow-errors.7"}) {
    const std::string path = directory + "/" + name;
    const std::string text = read_file(path);
    const auto wanted = renewed(path, text);
    if (!wanted) {
      std::cerr << wanted.failure().text() << '\n';
      return 1;
    }
    if (*wanted == text) continue;
    if (refresh) {
      std::ofstream(path, std::ios::binary) << *wanted;
      std::cout << "refreshed " << path << '\n';
    } else {
      std::cerr << path << " is stale; refresh it: scripts/refresh-man\n";
      stale = true;
    }
  }
  return stale ? 1 : 0;
}

}  // namespace
}  // namespace flow

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && (words[0] == "check" || words[0] == "refresh"))
    return flow::pages(words[1], words[0] == "refresh");
  if (words.size() == 2 && words[0] == "print") {
    const auto table = flow::tables().find(words[1]);
    if (table != flow::tables().end()) {
      std::cout << table->second();
      return 0;
    }
  }
  std::cerr << "usage: flow-man-tables check DIR | refresh DIR | print NAME\n";
  return 64;
}
