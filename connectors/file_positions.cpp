#include "connectors/file_positions.h"

namespace flow::files {

Result<Spans> FilePositions::load() {
  if (context_.state == nullptr) return Spans{};
  return context_.state->positions(context_.pipeline->name);
}

Result<std::vector<TargetMark>> FilePositions::load_marks() {
  if (context_.state == nullptr) return std::vector<TargetMark>{};
  return context_.state->marks(context_.pipeline->name);
}

Result<void> FilePositions::commit(const Spans& spans, const std::vector<TargetMark>& marks) {
  if (context_.dry_run || context_.state == nullptr) return {};
  Spans kept;
  for (const Span& s : spans) {
    if (!s.identity.empty()) kept.push_back(s);
  }
  if (kept.empty() && marks.empty()) return {};
  return context_.state->commit_positions(context_.pipeline->name, context_.run_id, kept, marks);
}

}  // namespace flow::files
