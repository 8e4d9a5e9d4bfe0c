#include "core/identifier.h"

#include <algorithm>
#include <vector>

namespace flow {
namespace {

Failure wrong_name(std::string_view text, std::string what) {
  return {.cls = FailureClass::setup,
          .where = "table " + std::string(text),
          .what = std::move(what),
          .hint = R"(write table, schema.table, or with quotes: "My Schema"."My Table")"};
}

// Takes one part off the front of `rest`; false: a quote is not closed.
bool take_part(std::string_view& rest, std::string& part) {
  if (!rest.starts_with('"')) {
    const std::size_t end = std::min(rest.find_first_of(".\""), rest.size());
    part = rest.substr(0, end);
    rest.remove_prefix(end);
    return true;
  }
  for (std::size_t at = 1; at < rest.size(); ++at) {
    if (rest[at] != '"') {
      part.push_back(rest[at]);
    } else if (at + 1 < rest.size() && rest[at + 1] == '"') {
      part.push_back('"');
      ++at;
    } else {
      rest.remove_prefix(at + 1);
      return true;
    }
  }
  return false;
}

bool is_plain(std::string_view name) {
  return name.find_first_of(".\" \t") == std::string_view::npos;
}

}  // namespace

std::string TableName::text() const {
  const auto part = [](const std::string& name) {
    return is_plain(name) ? name : quote_identifier(name);
  };
  return schema.empty() ? part(table) : part(schema) + "." + part(table);
}

Result<TableName> parse_table_name(std::string_view text) {
  std::vector<std::string> parts;
  std::string_view rest = text;
  for (;;) {
    std::string part;
    if (!take_part(rest, part)) return wrong_name(text, "a quote is not closed");
    if (part.empty()) return wrong_name(text, "a part of the name is empty");
    parts.push_back(std::move(part));
    if (rest.empty()) break;
    if (rest.front() != '.') return wrong_name(text, "only a dot may stand beside a quoted part");
    rest.remove_prefix(1);
  }
  if (parts.size() > 2) return wrong_name(text, "the name has more than two parts");
  if (parts.size() == 1) return TableName{"", std::move(parts[0])};
  return TableName{std::move(parts[0]), std::move(parts[1])};
}

std::string quote_identifier(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  out.push_back('"');
  return out;
}

std::string quoted(const TableName& name) {
  return name.schema.empty() ? quote_identifier(name.table)
                             : quote_identifier(name.schema) + "." + quote_identifier(name.table);
}

Result<void> check_postgres_identifier(std::string_view name) {
  std::string what;
  if (name.empty()) what = "is empty";
  if (name.find('\0') != std::string_view::npos) what = "holds U+0000";
  if (name.size() > postgres_identifier_bytes_max) {
    what = "has " + std::to_string(name.size()) + " bytes; Postgres would cut it at " +
           std::to_string(postgres_identifier_bytes_max);
  }
  if (what.empty()) return {};
  return Failure{.cls = FailureClass::setup,
                 .where = "name " + std::string(name),
                 .what = "the name " + what,
                 .hint = "use a shorter name"};
}

}  // namespace flow
