#pragma once
// The state store over a session and locks: the same statements for SQLite and Postgres.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "state/letters.h"
#include "state/session.h"

namespace flow {

// Owner: of the session, the locks and the locks of runs opened here. Threads: any, one call at a
// time inside.
class SqlState final : public StateStore {
 public:
  explicit SqlState(StateParts parts);

  std::string id() const override { return parts_.id; }
  std::string location() const override { return parts_.location; }

  Result<void> open_run(const RunRow& run) override;
  Result<void> heartbeat(const RunRow& run) override;
  Result<void> close_run(const RunRow& run) override;
  Result<std::vector<RunRow>> runs(const std::string& pipeline, std::size_t limit) override;

  Result<Spans> positions(const std::string& pipeline) override;
  Result<std::vector<TargetMark>> marks(const std::string& pipeline) override;
  Result<void> commit_positions(const std::string& pipeline, const std::string& run_id,
                                const Spans& spans, const std::vector<TargetMark>& marks) override;

  Result<std::vector<Attempts>> attempts(const std::string& pipeline) override;
  Result<void> keep_attempts(const std::string& pipeline,
                             const std::vector<Attempts>& attempts) override;
  Result<std::vector<InFlight>> in_flight(const std::string& pipeline) override;
  Result<void> keep_in_flight(const std::string& pipeline,
                              const std::vector<InFlight>& in_flight) override;

  Result<std::unique_ptr<Lock>> lock(const std::string& name, Millis wait) override;

  Result<std::unique_ptr<DeadLetterStore>> dead_letters() override;
  Result<std::unique_ptr<LetterProgressStore>> letter_progress(const std::string& topic) override;

 private:
  Result<void> refuse_writing() const;
  LetterHome letter_home();
  Result<std::vector<RunRow>> load(const std::string& pipeline, std::size_t limit);
  // Runs that died without a word are closed as interrupted at their last heartbeat.
  Result<void> close_dead_runs();

  StateParts parts_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Lock>> run_locks_;  // by run id
};

}  // namespace flow
