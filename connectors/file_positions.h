#pragma once
// The position authority of file sources: the state.
#include <memory>

#include "core/ports.h"
#include "core/registry.h"

namespace flow::files {

// Durable, Errors, Threads: as the state store. Spans without identity (stdin, pipes) have no
// position and are left out; a dry run commits nothing.
class FilePositions final : public PositionStore {
 public:
  explicit FilePositions(const Context& context) : context_(context) {}
  Result<Spans> load() override;
  Result<std::vector<TargetMark>> load_marks() override;
  Result<void> commit(const Spans& spans, const std::vector<TargetMark>& marks) override;

 private:
  Context context_;
};

}  // namespace flow::files
