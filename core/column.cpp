#include "core/column.h"

#include <array>
#include <cctype>

namespace flow {

namespace {

struct Spelling {
  std::string_view name;
  Type type;
};

// The first spelling of a type is its own name.
constexpr std::array<Spelling, 43> spellings{{
    {"any", Type::any},
    {"boolean", Type::boolean},
    {"bool", Type::boolean},
    {"int16", Type::int16},
    {"smallint", Type::int16},
    {"int2", Type::int16},
    {"int32", Type::int32},
    {"integer", Type::int32},
    {"int", Type::int32},
    {"int4", Type::int32},
    {"int64", Type::int64},
    {"bigint", Type::int64},
    {"int8", Type::int64},
    {"float32", Type::float32},
    {"real", Type::float32},
    {"float4", Type::float32},
    {"float64", Type::float64},
    {"double precision", Type::float64},
    {"double", Type::float64},
    {"float8", Type::float64},
    {"float", Type::float64},
    {"decimal", Type::decimal},
    {"numeric", Type::decimal},
    {"text", Type::text},
    {"varchar", Type::text},
    {"character varying", Type::text},
    {"string", Type::text},
    {"json", Type::json},
    {"jsonb", Type::jsonb},
    {"bytes", Type::bytes},
    {"bytea", Type::bytes},
    {"blob", Type::bytes},
    {"binary", Type::bytes},
    {"date", Type::date},
    {"timestamp", Type::timestamp},
    {"timestamp without time zone", Type::timestamp},
    {"datetime", Type::timestamp},
    {"timestamptz", Type::timestamptz},
    {"timestamp with time zone", Type::timestamptz},
    {"instant", Type::timestamptz},
    {"uuid", Type::uuid},
    {"guid", Type::uuid},
    {"uniqueidentifier", Type::uuid},
}};

bool same_ignoring_case(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) != lower[i]) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(Type type) {
  for (const Spelling& spelling : spellings) {
    if (spelling.type == type) return spelling.name;
  }
  return "unknown";
}

std::optional<Type> type_named(std::string_view name) {
  for (const Spelling& spelling : spellings) {
    if (same_ignoring_case(name, spelling.name)) return spelling.type;
  }
  return std::nullopt;
}

}  // namespace flow
