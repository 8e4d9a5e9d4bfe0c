#pragma once
// The delivery contract, derived from the pipeline by the same code for `flow explain`, the log and
// the run row.
#include <string>
#include <vector>

#include "core/pipeline.h"
#include "core/result.h"

namespace flow {

// What a crash right after one durable boundary means, in words, per target in `effects` order.
struct CrashWindow {
  std::string boundary;  // "apply_to_targets", with the target's label where it is one target's
  std::string durable;   // what is durable once it has passed
  std::vector<std::string> effects;  // per target: what a crash just after it repeats
};

struct TargetContract {
  std::string label;
  std::string mode;       // append | merge
  std::string guarantee;  // at_least_once, or at_least_once_idempotent (merge)
  std::string why;
  std::string repeats;  // what may be there twice, and how much
  std::string needs;    // what must hold for the claim
  std::string stops;    // where the claim ends
};

// Shape: one per pipeline, plain text throughout. `order`: the durable boundaries of one batch, in
// order.
struct Contract {
  std::string source;
  std::string delivery;  // resolved: at_least_once
  std::string asked;     // at_least_once | exactly_once | auto
  std::string position_authority;
  std::string authority_why;
  std::vector<std::string> order;
  std::vector<TargetContract> targets;
  std::vector<CrashWindow> windows;
  std::string line() const;  // one line, for log and history
};

// Errors: a Failure (setup) that names every reason when the asked delivery cannot be had.
Result<Contract> derive_contract(const Pipeline& pipeline);

}  // namespace flow
