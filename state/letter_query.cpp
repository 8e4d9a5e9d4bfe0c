#include "state/letter_query.h"

#include "state/run_rows.h"

namespace flow {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    hex += hex_digits[static_cast<unsigned char>(c) >> 4U];
    hex += hex_digits[static_cast<unsigned char>(c) & 15U];
  }
  return hex;
}

unsigned nibble(char c) {
  return static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

std::string bytes_of_hex(std::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(nibble(hex[2 * i]) << 4U | nibble(hex[2 * i + 1]));
  }
  return bytes;
}

std::string bytes_literal(std::string_view bytes, SqlDialect dialect) {
  if (dialect == SqlDialect::sqlite) return "x'" + hex_of(bytes) + "'";
  return "'\\x" + hex_of(bytes) + "'::bytea";
}

// SQLite gives bytes as they are.
std::string selected_bytes(const std::string& column, SqlDialect dialect) {
  return dialect == SqlDialect::sqlite ? column : "encode(" + column + ", 'hex')";
}

Cell bytes_in(const Cell& cell, SqlDialect dialect) {
  return cell && dialect == SqlDialect::postgres ? Cell(bytes_of_hex(*cell)) : cell;
}

class Conditions {
 public:
  void add(const std::string& condition) {
    where_.text += (where_.text.empty() ? " WHERE " : " AND ") + condition;
  }
  void add(const std::string& left, Cell value) {
    where_.parameters.push_back(std::move(value));
    add(left + "$" + std::to_string(where_.parameters.size()));
  }
  void add_text(const std::string& column, const std::string& value) {
    if (!value.empty()) add("l." + column + " = ", value);
  }
  LetterWhere& where() { return where_; }

 private:
  LetterWhere where_;
};

}  // namespace

LetterWhere where_of(const LetterFilter& filter, SqlDialect dialect) {
  Conditions conditions;
  if (!filter.ids.empty()) {
    conditions.where().parameters.push_back(ids_cell(filter.ids, dialect));
    conditions.add(ids_in("l.id", "$1", dialect));
  }
  if (filter.after != 0) conditions.add("l.id > " + std::to_string(filter.after));
  conditions.add_text("pipeline", filter.pipeline);
  conditions.add_text("topic", filter.topic);
  conditions.add_text("target", filter.target);
  conditions.add_text("stage", filter.stage);
  if (filter.cls) conditions.add("l.class = ", std::string(name_of(*filter.cls)));
  if (filter.state) {
    const bool held = *filter.state == LetterState::replaying;
    const bool free = *filter.state == LetterState::pending;
    // As a literal: an index over a part of the states is found by it.
    const LetterState kept = held ? LetterState::pending : *filter.state;
    conditions.add("l.state = '" + std::string(name_of(kept)) + "'");
    if (held || free) conditions.add((free ? "NOT " : "") + claimed("l.id", own_store));
  }
  if (filter.since_ms) conditions.add("l.last_failed_ms >= ", cell(*filter.since_ms));
  if (filter.until_ms) conditions.add("l.last_failed_ms < ", cell(*filter.until_ms));
  if (filter.key) {
    conditions.add(
        "EXISTS (SELECT 1 FROM flow.dead_letter_records k WHERE k.letter = l.id AND"
        " k.key = " +
        bytes_literal(*filter.key, dialect) + ")");
  }
  if (!filter.snapshot.empty()) {
    conditions.where().parameters.push_back(filter.snapshot);
    conditions.add(
        "EXISTS (SELECT 1 FROM flow.dead_letter_snapshots s WHERE s.letter = l.id AND"
        " s.snapshot = $" +
        std::to_string(conditions.where().parameters.size()) + ")");
  }
  return std::move(conditions.where());
}

std::string claimed(std::string_view id, std::string_view store) {
  return "EXISTS (SELECT 1 FROM flow.dead_letter_claims c WHERE c.store = " + std::string(store) +
         " AND c.letter = " + std::string(id) + ")";
}

std::string limit_of(const LetterFilter& filter) {
  return filter.limit == 0 ? "" : " LIMIT " + std::to_string(filter.limit);
}

std::string ids_in(std::string_view column, std::string_view mark, SqlDialect dialect) {
  const std::string left(column);
  if (dialect == SqlDialect::sqlite) {
    return left + " IN (SELECT value FROM json_each(" + std::string(mark) + "))";
  }
  return left + " = ANY (" + std::string(mark) + "::bigint[])";
}

std::string ids_from(std::string_view mark, SqlDialect dialect) {
  const std::string list(mark);
  return dialect == SqlDialect::sqlite
             ? "(SELECT value AS letter FROM json_each(" + list + ")) AS ids"
             : "unnest(" + list + "::bigint[]) AS ids (letter)";
}

Cell ids_cell(const std::vector<std::int64_t>& ids, SqlDialect dialect) {
  std::string text(1, dialect == SqlDialect::sqlite ? '[' : '{');
  for (const std::int64_t id : ids) {
    if (text.size() > 1) text += ',';
    text += std::to_string(id);
  }
  return text + (dialect == SqlDialect::sqlite ? ']' : '}');
}

std::vector<std::int64_t> ids_of(const Table& table) {
  std::vector<std::int64_t> ids;
  ids.reserve(table.size());
  for (const Cells& row : table) ids.push_back(number_in(row[0]));
  return ids;
}

std::string select_letters(SqlDialect dialect, LettersAre which) {
  const bool unknown = which == LettersAre::any;
  return "SELECT l.id, l.pipeline, l.version, l.target, l.topic, l.partition, l.record_offset,"
         " l.stage, l.class, l.code, l.error, l.attempts, l.first_failed_ms, l.last_failed_ms,"
         " l.run_id, " +
         std::string(unknown ? "CASE WHEN c.letter IS NULL THEN l.state ELSE 'replaying' END"
                             : "'replaying'") +
         ", l.replays, r.timestamp_ms, r.operation_id, " + selected_bytes("r.key", dialect) + ", " +
         selected_bytes("r.value", dialect) + ", " + selected_bytes("r.headers", dialect) +
         " FROM flow.dead_letters l JOIN flow.dead_letter_records r ON r.letter = l.id" +
         (unknown ? " LEFT JOIN flow.dead_letter_claims c ON c.store = '' AND c.letter = l.id"
                  : "");
}

std::vector<DeadLetter> letters_of(const Table& table, SqlDialect dialect) {
  std::vector<DeadLetter> letters;
  letters.reserve(table.size());
  for (const Cells& row : table) {
    std::size_t at = 0;
    const auto number = [&] { return number_in(row[at++]); };
    const auto text = [&] { return row[at++].value_or(""); };
    DeadLetter& letter = letters.emplace_back();
    letter.id = number();
    letter.pipeline = text();
    letter.version = text();
    letter.target = text();
    letter.origin.topic = text();
    letter.origin.partition = static_cast<std::int32_t>(number());
    letter.offset = {number()};
    letter.stage = text();
    letter.cls = failure_class_named(text()).value_or(FailureClass::invalid);
    letter.code = text();
    letter.error = text();
    letter.attempts = number();
    letter.first_failed_ms = number();
    letter.last_failed_ms = number();
    letter.run_id = text();
    letter.state = letter_state_named(text()).value_or(LetterState::pending);
    letter.replays = number();
    letter.timestamp_ms = number();
    letter.operation_id = text();
    letter.key = bytes_in(row[at++], dialect);
    letter.value = bytes_in(row[at++], dialect);
    letter.headers = decode_headers(bytes_in(row[at++], dialect).value_or(""));
  }
  return letters;
}

std::string select_groups(const LetterWhere& where, GroupsOf which) {
  const std::string from = which == GroupsOf::all
                               ? " FROM flow.dead_letters l"
                               : " FROM flow.dead_letter_claims c JOIN flow.dead_letters l ON"
                                 " c.store = '' AND c.letter = l.id";
  constexpr const char* group = "l.pipeline, l.topic, l.target, l.stage, l.class, l.code, l.state";
  return std::string("SELECT ") + group +
         ", count(*), min(l.first_failed_ms), max(l.last_failed_ms)" + from + where.text +
         " GROUP BY " + group + " ORDER BY " + group;
}

std::vector<LetterGroup> groups_of(const Table& table) {
  std::vector<LetterGroup> groups;
  for (const Cells& row : table) {
    const auto text = [&](std::size_t at) { return row[at].value_or(""); };
    LetterGroup& group = groups.emplace_back();
    group.pipeline = text(0);
    group.topic = text(1);
    group.target = text(2);
    group.stage = text(3);
    group.cls = failure_class_named(text(4)).value_or(FailureClass::invalid);
    group.code = text(5);
    group.state = letter_state_named(text(6)).value_or(LetterState::pending);
    group.count = static_cast<std::uint64_t>(number_in(row[7]));
    group.first_ms = number_in(row[8]);
    group.last_ms = number_in(row[9]);
  }
  return groups;
}

}  // namespace flow
