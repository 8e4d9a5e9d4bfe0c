#include "state/state.h"

#include <utility>

#include "state/sql_state.h"

namespace flow {

Result<std::unique_ptr<StateStore>> open_state(const std::string& url, StateAccess access,
                                               Log& log) {
  const bool postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
  auto parts = postgres ? open_postgres_state(url, access) : open_sqlite_state(url, access, log);
  if (!parts) return parts.failure();
  return std::unique_ptr<StateStore>(std::make_unique<SqlState>(std::move(parts).value()));
}

}  // namespace flow
