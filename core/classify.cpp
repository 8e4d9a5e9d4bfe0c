#include "core/classify.h"

#include <algorithm>
#include <string>

namespace flow {
namespace {

template <class Match>
const FailureRow* find(FailureSystem system, Match match) {
  const auto table = failure_table();
  const auto at = std::find_if(table.begin(), table.end(), [&](const FailureRow& row) {
    return row.system == system && match(row);
  });
  return at == table.end() ? nullptr : &*at;
}

FailureClass class_of(const FailureRow* row) { return row ? row->cls : FailureClass::setup; }

}  // namespace

std::string_view name_of(FailureSystem system) {
  switch (system) {
    case FailureSystem::postgres: return "postgres";
    case FailureSystem::sqlite: return "sqlite";
    case FailureSystem::kafka: return "kafka";
    case FailureSystem::http: return "http";
    case FailureSystem::flow: return "flow";
  }
  return "unknown";
}

const FailureRow* find_sqlstate(std::string_view sqlstate) {
  const auto exact = [](std::string_view code) {
    return find(FailureSystem::postgres,
                [code](const FailureRow& row) { return row.code == code; });
  };
  if (sqlstate.size() != 5) return nullptr;
  const FailureRow* row = exact(sqlstate);
  return row ? row : exact(sqlstate.substr(0, 2));
}

const FailureRow* find_sqlite(int extended_code) {
  const auto exact = [](int number) {
    return find(FailureSystem::sqlite,
                [number](const FailureRow& row) { return row.number == number; });
  };
  const FailureRow* row = exact(extended_code);
  return row ? row : exact(extended_code & 0xff);
}

const FailureRow* find_kafka(std::string_view name) {
  return find(FailureSystem::kafka, [name](const FailureRow& row) { return row.code == name; });
}

const FailureRow* find_http(int status) {
  const auto exact = [](const std::string& code) {
    return find(FailureSystem::http, [&](const FailureRow& row) { return row.code == code; });
  };
  const FailureRow* row = exact(std::to_string(status));
  return row ? row : exact(std::to_string(status / 100) + "xx");
}

const FailureRow* find_own(std::string_view code) {
  return find(FailureSystem::flow, [code](const FailureRow& row) { return row.code == code; });
}

FailureClass classify_sqlstate(std::string_view sqlstate) {
  return sqlstate.empty() ? FailureClass::transient : class_of(find_sqlstate(sqlstate));
}

FailureClass classify_sqlite(int extended_code) { return class_of(find_sqlite(extended_code)); }

FailureClass classify_kafka(std::string_view name) { return class_of(find_kafka(name)); }

FailureClass classify_http(int status) { return class_of(find_http(status)); }

}  // namespace flow
