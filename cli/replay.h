#pragma once
// `flow dlq replay`: what it is told, the plan it makes, and the plan carried out.
#include <memory>
#include <string>
#include <vector>

#include "cli/dlq.h"
#include "cli/replay_source.h"

namespace flow {

// The flags as typed.
struct ReplayOptions {
  LetterFlags letters;
  std::string rate;
  std::string to_topic;
  std::string brokers;
  std::vector<std::string> patches;
  std::string edits;
  std::string on_poison = "park";
  bool dry_run = false;
  std::vector<std::string> failure_points;
  bool yes = false;
};

// Letters that are replayed in one go: those of one target, or all of them into one topic.
struct ReplayPart {
  std::string target;  // empty: of any
  Pipeline pipeline;
  std::uint64_t letters = 0;
};

// How many letters are written and settled together.
std::size_t replay_batch(const Pipeline& pipeline);

// One `flow dlq replay`. Owner: the command. Threads: one; the loop of each part has its own.
class Replay {
 public:
  Replay(Globals& globals, ReplayOptions& options) : globals_(globals), options_(options) {}

  int go();

 private:
  Result<std::vector<ReplayPart>> prepare();
  Result<void> read_flags();
  Result<std::vector<ReplayPart>> parts();
  Result<void> free_dead_claims();
  Result<void> known_snapshot();
  Pipeline to_topic() const;
  Result<void> dry_run(const std::vector<ReplayPart>& parts);
  void print_plan(const std::vector<ReplayPart>& parts, const std::string& snapshot,
                  const std::vector<DeadLetter>& first) const;
  std::string doubt(const std::vector<ReplayPart>& parts) const;
  Result<void> begin();
  Result<void> replay(const std::vector<ReplayPart>& parts);
  Result<std::unique_ptr<Lock>> wait_for_turn(const ReplayPart& part);
  Result<void> replay_part(const ReplayPart& part);
  int finish(const Result<void>& done);

  Globals& globals_;
  ReplayOptions& options_;
  std::unique_ptr<Letters> letters_;
  ReplaySpec spec_;
  std::unique_ptr<Lock> lock_;
  std::uint64_t many_ = 0;
  ReplayCounts total_;
};

}  // namespace flow
