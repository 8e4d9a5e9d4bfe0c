#include "core/dead_letter_sql.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace flow {
namespace {

using Kind = SqlValue::Kind;

constexpr std::size_t statement_letters_max = 5'000;
constexpr std::size_t statement_bytes_max = std::size_t{8} << 20;

struct ColumnOf {
  std::string_view name;
  Kind kind;
};

constexpr std::array<ColumnOf, letter_columns> letter_table{{
    {"pipeline", Kind::text},
    {"version", Kind::text},
    {"target", Kind::text},
    {"topic", Kind::text},
    {"partition", Kind::number},
    {"record_offset", Kind::number},
    {"stage", Kind::text},
    {"class", Kind::text},
    {"code", Kind::text},
    {"error", Kind::text},
    {"attempts", Kind::number},
    {"first_failed_ms", Kind::number},
    {"last_failed_ms", Kind::number},
    {"run_id", Kind::text},
}};

constexpr std::array<ColumnOf, record_columns> record_table{{
    {"key", Kind::bytes},
    {"value", Kind::bytes},
    {"headers", Kind::bytes},
    {"timestamp_ms", Kind::number},
    {"operation_id", Kind::text},
}};

// What makes a letter the same letter, and what is brought up to date when it fails again.
constexpr const char* identity = "pipeline, topic, partition, record_offset, target";
constexpr const char* again =
    " ON CONFLICT (pipeline, topic, partition, record_offset, target) DO UPDATE SET"
    " version = excluded.version, stage = excluded.stage, class = excluded.class,"
    " code = excluded.code, error = excluded.error,"
    " attempts = CASE WHEN excluded.attempts > kept.attempts THEN excluded.attempts"
    " ELSE kept.attempts END,"
    " last_failed_ms = excluded.last_failed_ms, run_id = excluded.run_id,"
    " state = CASE WHEN kept.state IN ('replayed', 'discarded') THEN 'pending'"
    " ELSE kept.state END";

template <std::size_t n>
std::string names(const std::array<ColumnOf, n>& columns, std::string_view prefix = "") {
  std::string text;
  for (const ColumnOf& column : columns) {
    text += text.empty() ? "" : ", ";
    text.append(prefix).append(column.name);
  }
  return text;
}

std::string marks(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i <= count; ++i) {
    text += (i == 1 ? "?" : ", ?") + std::to_string(i);
  }
  return text;
}

SqlValue number(std::int64_t value) { return {Kind::number, value, {}}; }
SqlValue text(std::string_view value) { return {Kind::text, 0, value}; }
SqlValue bytes(std::string_view value) { return {Kind::bytes, 0, value}; }
SqlValue bytes(const std::optional<std::string>& value) {
  return value ? bytes(std::string_view(*value)) : SqlValue{};
}

void put32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

void put64(std::string& out, std::uint64_t value) {
  put32(out, static_cast<std::uint32_t>(value >> 32));
  put32(out, static_cast<std::uint32_t>(value));
}

constexpr std::uint32_t null_length = 0xffffffff;

std::uint32_t take32(std::string_view& in) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4 && i < in.size(); ++i) {
    value = value << 8 | static_cast<unsigned char>(in[i]);
  }
  in.remove_prefix(std::min<std::size_t>(4, in.size()));
  return value;
}

std::string take_bytes(std::string_view& in, std::uint32_t length) {
  std::string taken(in.substr(0, length));
  in.remove_prefix(taken.size());
  return taken;
}

struct OidsOf {
  std::uint32_t element;
  std::uint32_t array;
};

OidsOf oids_of(Kind kind) {
  switch (kind) {
    case Kind::number: return {20, 1016};  // int8
    case Kind::bytes: return {17, 1001};   // bytea
    default: return {25, 1009};            // text
  }
}

// The binary form of a one-dimensional array, up to its first element.
void put_array_head(std::string& out, Kind kind, std::size_t count) {
  put32(out, count == 0 ? 0 : 1);
  put32(out, 1);  // may hold nulls
  put32(out, oids_of(kind).element);
  put32(out, static_cast<std::uint32_t>(count));
  put32(out, 1);
}

void put_element(std::string& out, const SqlValue& value) {
  switch (value.kind) {
    case Kind::null: put32(out, null_length); break;
    case Kind::number:
      put32(out, 8);
      put64(out, static_cast<std::uint64_t>(value.number));
      break;
    default: put32(out, static_cast<std::uint32_t>(value.text.size())); out += value.text;
  }
}

// Bytes of a well-formed UTF-8 character at `at`, 0 when there is none.
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = byte(at);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80) return 0;
  }
  const unsigned second = byte(at + 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return overlong || outside ? 0 : length;
}

std::size_t bytes_of(const DeadLetter& letter) {
  std::size_t sum = letter.error.size() + 400;
  if (letter.key) sum += letter.key->size();
  if (letter.value) sum += letter.value->size();
  for (const LetterHeader& header : letter.headers) {
    sum += header.name.size() + (header.value ? header.value->size() : 0);
  }
  return sum;
}

}  // namespace

void LetterValues::fill(const DeadLetter& letter) {
  version_ = storable_text(letter.version);
  code_ = storable_text(letter.code);
  error_ = storable_text(letter.error);
  operation_id_ = storable_text(letter.operation_id);
  headers_ = encode_headers(letter.headers);
  letter_ = {text(letter.pipeline),
             text(version_),
             text(letter.target),
             text(letter.origin.topic),
             number(letter.origin.partition),
             number(letter.offset.value),
             text(letter.stage),
             text(name_of(letter.cls)),
             text(code_),
             text(error_),
             number(letter.attempts),
             number(letter.first_failed_ms),
             number(letter.last_failed_ms),
             text(letter.run_id)};
  record_ = {bytes(letter.key), bytes(letter.value), bytes(std::string_view(headers_)),
             number(letter.timestamp_ms), text(operation_id_)};
}

SqliteLetterStatements sqlite_letter_statements(std::string_view schema) {
  const std::string in = std::string(schema) + ".";
  return {"INSERT INTO " + in + "dead_letters AS kept (" + names(letter_table) + ") VALUES (" +
              marks(letter_columns) + ")" + again + " RETURNING id",
          "INSERT INTO " + in + "dead_letter_records (letter, " + names(record_table) +
              ") VALUES (" + marks(record_columns + 1) + ") ON CONFLICT (letter) DO NOTHING"};
}

std::string postgres_letter_statement() {
  std::string parameters;
  for (std::size_t i = 1; i <= letter_columns + record_columns; ++i) {
    parameters += (i == 1 ? "$" : ", $") + std::to_string(i);
  }
  return "WITH given AS MATERIALIZED (SELECT * FROM unnest(" + parameters + ") AS g (" +
         names(letter_table) + ", " + names(record_table) + ")), " +
         "written AS (INSERT INTO flow.dead_letters AS kept (" + names(letter_table) + ") SELECT " +
         names(letter_table) + " FROM given" + again + " RETURNING id, " + identity +
         ") INSERT INTO flow.dead_letter_records (letter, " + names(record_table) +
         ") SELECT w.id, " + names(record_table, "g.") + " FROM written w JOIN given g USING (" +
         identity + ") ON CONFLICT (letter) DO NOTHING";
}

PostgresLetterArrays postgres_letter_arrays(std::span<const DeadLetter* const> letters) {
  PostgresLetterArrays arrays;
  const auto add_column = [&](const ColumnOf& column) {
    arrays.types.push_back(oids_of(column.kind).array);
    put_array_head(arrays.values.emplace_back(), column.kind, letters.size());
  };
  std::for_each(letter_table.begin(), letter_table.end(), add_column);
  std::for_each(record_table.begin(), record_table.end(), add_column);
  LetterValues values;
  for (const DeadLetter* letter : letters) {
    values.fill(*letter);
    std::size_t at = 0;
    for (const SqlValue& value : values.letter()) put_element(arrays.values[at++], value);
    for (const SqlValue& value : values.record()) put_element(arrays.values[at++], value);
  }
  return arrays;
}

std::vector<const DeadLetter*> distinct_letters(std::span<const DeadLetter> letters) {
  using Origin = std::tuple<std::int64_t, std::int32_t>;
  struct HashOf {
    std::size_t operator()(const Origin& o) const {
      return std::hash<std::int64_t>()(std::get<0>(o) * 1024 + std::get<1>(o));
    }
  };
  const auto same = [](const DeadLetter& a, const DeadLetter& b) {
    return a.target == b.target && a.origin.topic == b.origin.topic && a.pipeline == b.pipeline;
  };
  std::vector<const DeadLetter*> distinct;
  std::unordered_multimap<Origin, std::size_t, HashOf> seen;  // to the place in `distinct`
  distinct.reserve(letters.size());
  seen.reserve(letters.size());
  for (const DeadLetter& letter : letters) {
    const Origin origin{letter.offset.value, letter.origin.partition};
    const auto [first, last] = seen.equal_range(origin);
    const auto found = std::find_if(
        first, last, [&](const auto& entry) { return same(*distinct[entry.second], letter); });
    if (found != last) {
      distinct[found->second] = &letter;
    } else {
      seen.emplace(origin, distinct.size());
      distinct.push_back(&letter);
    }
  }
  return distinct;
}

std::span<const DeadLetter* const> next_letters(std::span<const DeadLetter* const> left) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (count < left.size() && count < statement_letters_max) {
    bytes += bytes_of(*left[count]);
    if (count > 0 && bytes > statement_bytes_max) break;
    ++count;
  }
  return left.first(count);
}

std::string encode_headers(const std::vector<LetterHeader>& headers) {
  std::string out;
  for (const LetterHeader& header : headers) {
    put32(out, static_cast<std::uint32_t>(header.name.size()));
    out += header.name;
    put32(out, header.value ? static_cast<std::uint32_t>(header.value->size()) : null_length);
    if (header.value) out += *header.value;
  }
  return out;
}

std::vector<LetterHeader> decode_headers(std::string_view bytes) {
  std::vector<LetterHeader> headers;
  while (!bytes.empty()) {
    LetterHeader& header = headers.emplace_back();
    header.name = take_bytes(bytes, take32(bytes));
    const std::uint32_t length = take32(bytes);
    if (length != null_length) header.value = take_bytes(bytes, length);
  }
  return headers;
}

std::string storable_text(std::string_view text) {
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_at(text, at);
    if (length == 0) kept += '?';
    kept.append(text.substr(at, length));
    at += length == 0 ? 1 : length;
  }
  return kept;
}

}  // namespace flow
