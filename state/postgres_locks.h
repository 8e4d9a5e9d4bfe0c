#pragma once
// Locks as session advisory locks of one connection of their own: they go when it goes.
#include <memory>
#include <string>

#include "state/session.h"

namespace flow {

class PostgresLockKeeper;

// Shape: the key is a hash of the state's id and the lock's name. Threads: any. Errors: when the
// connection was lost, confirm() takes the locks again; for 45 s a lock that cannot be had back
// counts as the dead connection's (transient), then as somebody else's (fenced).
class PostgresLocks final : public Locks {
 public:
  PostgresLocks(std::string url, std::string state_id);

  Result<std::unique_ptr<Lock>> take(const std::string& name, Millis wait) override;
  Result<bool> held(const std::string& name) override;
  Result<void> confirm() override;

 private:
  std::shared_ptr<PostgresLockKeeper> keeper_;
};

}  // namespace flow
