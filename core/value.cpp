#include "core/value.h"

namespace flow {

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::missing: return "missing";
    case Kind::null: return "null";
    case Kind::boolean: return "boolean";
    case Kind::int64: return "int64";
    case Kind::float64: return "float64";
    case Kind::decimal: return "decimal";
    case Kind::text: return "text";
    case Kind::json: return "json";
    case Kind::bytes: return "bytes";
    case Kind::date: return "date";
    case Kind::timestamp: return "timestamp";
    case Kind::timestamptz: return "timestamptz";
    case Kind::uuid: return "uuid";
  }
  return "unknown";
}

}  // namespace flow
