#include "cli/letter_edit.h"

#include <fstream>
#include <map>
#include <optional>
#include <sqlite3.h>

#include "cli/output.h"
#include "core/base64.h"

namespace flow {

namespace {

Failure usage(std::string where, std::string what, std::string hint) {
  return {.cls = FailureClass::setup,
          .where = std::move(where),
          .what = std::move(what),
          .hint = std::move(hint),
          .exit = ExitCode::usage};
}

struct Patch {
  std::string path;
  std::string value;
  std::string text;
};

Result<Patch> parse_patch(const std::string& text) {
  const std::size_t equal = text.find('=');
  const auto trimmed = [](std::string s) {
    s.erase(0, s.find_first_not_of(" \t"));
    s.erase(s.find_last_not_of(" \t") + 1);
    return s;
  };
  Patch p;
  if (equal != std::string::npos) {
    p.path = trimmed(text.substr(0, equal));
    p.value = trimmed(text.substr(equal + 1));
  }
  p.text = text;
  if (!p.path.starts_with("$.") || !Json::accept(p.value)) {
    return usage("--patch " + text, "is no assignment",
                 "write '$.status = \"paid\"' or '$.amount = 1.50'");
  }
  return p;
}

// JSON by SQLite, which leaves every token that is not touched as it stands.
class JsonPatcher {
 public:
  JsonPatcher() {
    sqlite3_open(":memory:", &db_);
    sqlite3_prepare_v2(db_, "SELECT json_set(?1, ?2, json(?3))", -1, &statement_, nullptr);
  }
  ~JsonPatcher() {
    sqlite3_finalize(statement_);
    sqlite3_close(db_);
  }
  JsonPatcher(const JsonPatcher&) = delete;
  JsonPatcher& operator=(const JsonPatcher&) = delete;

  // nullopt: the document is no JSON, or the path leads nowhere.
  std::optional<std::string> apply(const std::string& document, const Patch& patch) {
    sqlite3_reset(statement_);
    bind(1, document);
    bind(2, patch.path);
    bind(3, patch.value);
    if (sqlite3_step(statement_) != SQLITE_ROW) return std::nullopt;
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, 0));
    if (text == nullptr) return std::nullopt;
    return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, 0)));
  }

 private:
  void bind(int at, const std::string& text) {
    sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

using Edits = std::map<std::int64_t, std::optional<std::string>>;

Result<Edits> read_edits(const std::string& path) {
  Edits edits;
  if (path.empty()) return edits;
  std::ifstream in(path);
  if (!in)
    return usage("--edit " + path, "cannot be opened",
                 "name a file of JSON lines {\"id\": 17, \"value\": ...}");
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json j = Json::parse(line, nullptr, false);
    const std::string where = path + ":" + std::to_string(number);
    if (!j.is_object() || !j.contains("id") || !j.at("id").is_number_integer()) {
      return usage(where, "is no object with an id", "write {\"id\": 17, \"value\": ...}");
    }
    std::optional<std::string> value;
    if (j.contains("value_base64") && j.at("value_base64").is_string()) {
      value = from_base64(j.at("value_base64").get<std::string>());
      if (!value) return usage(where, "value_base64 is no base64", "write value for text");
    } else if (j.contains("value") && j.at("value").is_string()) {
      value = j.at("value").get<std::string>();
    } else if (!j.contains("value") || !j.at("value").is_null()) {
      return usage(where, "has no value", "value is the new payload as text, or null");
    }
    edits[j.at("id").get<std::int64_t>()] = std::move(value);
  }
  return edits;
}

}  // namespace

Result<LetterEdit> make_letter_edit(const std::vector<std::string>& patches,
                                    const std::string& edits) {
  std::vector<Patch> parsed;
  for (const std::string& p : patches) {
    auto patch = parse_patch(p);
    if (!patch) return std::move(patch).failure();
    parsed.push_back(std::move(patch).value());
  }
  auto read = read_edits(edits);
  if (!read) return std::move(read).failure();
  if (parsed.empty() && read->empty()) return LetterEdit{};
  auto patcher = std::make_shared<JsonPatcher>();
  return LetterEdit([patcher, parsed = std::move(parsed),
                     read = std::move(read).value()](DeadLetter& letter) -> Result<std::string> {
    std::string done;
    if (const auto at = read.find(letter.id); at != read.end()) {
      letter.value = at->second;
      done = "value replaced by --edit";
    }
    for (const Patch& p : parsed) {
      auto changed = patcher->apply(letter.value.value_or("null"), p);
      if (!changed) {
        return Failure{.cls = FailureClass::invalid,
                       .where = "--patch " + p.text,
                       .what = "does not fit the value",
                       .hint = "give the value whole with --edit"};
      }
      letter.value = std::move(changed);
      done += (done.empty() ? "" : ", ") + p.text;
    }
    return done;
  });
}

}  // namespace flow
