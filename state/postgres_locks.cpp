#include "state/postgres_locks.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "state/file_lock.h"
#include "state/postgres_connection.h"
#include "state/run_rows.h"

namespace flow {
namespace {

constexpr Millis poll_interval{50};
constexpr std::chrono::seconds dead_connection_lasts_max{45};

bool is_true(const Table& table) { return !table.empty() && table[0][0] == Cell("t"); }

}  // namespace

// The connection and the names of the locks that it holds. Owner: the locks and whoever holds one.
class PostgresLockKeeper {
 public:
  PostgresLockKeeper(std::string url, std::string state_id)
      : url_(std::move(url)), state_id_(std::move(state_id)) {}

  Result<bool> try_take(const std::string& name) {
    const std::lock_guard guard(mutex_);
    if (names_.contains(name)) return false;
    if (auto ready = confirm_locked(); !ready) return ready.failure();
    auto taken = run("SELECT pg_try_advisory_lock($1)", {key(name)});
    if (!taken) return taken.failure();
    if (is_true(*taken)) names_.insert(name);
    return is_true(*taken);
  }

  void release(const std::string& name) {
    const std::lock_guard guard(mutex_);
    names_.erase(name);
    if (connection_ == nullptr) return;
    if (auto released = run("SELECT pg_advisory_unlock($1)", {key(name)}); !released) {
      connection_.reset();  // and with it the lock; the others are taken again when next confirmed
    }
  }

  Result<bool> held(const std::string& name) {
    const std::lock_guard guard(mutex_);
    if (auto ready = confirm_locked(); !ready) return ready.failure();
    const auto bits = static_cast<std::uint64_t>(lock_number(state_id_, name));
    auto found =
        run("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND classid = $1::bigint::oid AND objid = $2::bigint::oid AND objsubid = 1)",
            {cell(bits >> 32), cell(bits & 0xffffffffU)});
    if (!found) return found.failure();
    return is_true(*found);
  }

  Result<void> confirm() {
    const std::lock_guard guard(mutex_);
    return names_.empty() ? Result<void>() : confirm_locked();
  }

 private:
  Cell key(const std::string& name) const { return cell(lock_number(state_id_, name)); }

  Result<Table> run(const std::string& sql, const Cells& parameters) {
    auto done = connection_->run(sql, parameters);
    if (!done && connection_->broken()) connection_.reset();
    return done;
  }

  // A connection that answers and holds every lock of `names_`.
  Result<void> confirm_locked() {
    if (connection_ != nullptr && connection_->run("SELECT 1")) return {};
    connection_.reset();
    auto connected = PostgresConnection::connect(url_);
    if (!connected) return connected.failure();
    connection_ = std::move(connected).value();
    for (const std::string& name : names_) {
      auto taken = run("SELECT pg_try_advisory_lock($1)", {key(name)});
      if (!taken) return taken.failure();
      if (!is_true(*taken)) return not_back(name);
    }
    lost_since_.reset();
    return {};
  }

  Failure not_back(const std::string& name) {
    connection_.reset();
    const auto now = std::chrono::steady_clock::now();
    if (!lost_since_) lost_since_ = now;
    Failure failure =
        postgres_state_failure("", "the lock " + name + " was lost with its connection", url_);
    if (now - *lost_since_ < dead_connection_lasts_max) {
      failure.hint =
          "it is taken again once the server has noticed that the old connection is gone";
      return failure;
    }
    failure.cls = FailureClass::fenced;
    failure.what += ", and somebody else holds it now";
    failure.hint = "this run writes nothing more; see who took over with: flow history";
    return failure;
  }

  std::string url_;
  std::string state_id_;
  std::mutex mutex_;
  std::unique_ptr<PostgresConnection> connection_;
  std::set<std::string> names_;
  std::optional<std::chrono::steady_clock::time_point> lost_since_;
};

namespace {

class PostgresLock final : public Lock {
 public:
  PostgresLock(std::shared_ptr<PostgresLockKeeper> keeper, std::string name)
      : keeper_(std::move(keeper)), name_(std::move(name)) {}
  PostgresLock(const PostgresLock&) = delete;
  PostgresLock& operator=(const PostgresLock&) = delete;
  ~PostgresLock() override { keeper_->release(name_); }

 private:
  std::shared_ptr<PostgresLockKeeper> keeper_;
  std::string name_;
};

}  // namespace

PostgresLocks::PostgresLocks(std::string url, std::string state_id)
    : keeper_(std::make_shared<PostgresLockKeeper>(std::move(url), std::move(state_id))) {}

Result<std::unique_ptr<Lock>> PostgresLocks::take(const std::string& name, Millis wait) {
  const auto end = std::chrono::steady_clock::now() + wait;
  for (;;) {
    auto taken = keeper_->try_take(name);
    if (!taken) return taken.failure();
    if (*taken) return std::unique_ptr<Lock>(std::make_unique<PostgresLock>(keeper_, name));
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= Millis{0}) return std::unique_ptr<Lock>();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, poll_interval));
  }
}

Result<bool> PostgresLocks::held(const std::string& name) { return keeper_->held(name); }
Result<void> PostgresLocks::confirm() { return keeper_->confirm(); }

}  // namespace flow
