#pragma once
// The composition root: from a checked pipeline to connected parts.
#include <memory>
#include <optional>
#include <vector>

#include "core/contract.h"
#include "core/loop.h"
#include "core/mapper.h"
#include "core/registry.h"

namespace flow {

// The parts of one run, in the order they were made. Owner: the command; the pipeline and context
// outlive it.
struct Assembly {
  SourceParts source;
  std::vector<std::unique_ptr<Target>> targets;
  std::optional<Mapper> mapper;
  std::vector<TargetMark> marks;
  std::vector<std::string> notes;  // what was created

  std::vector<Target*> target_pointers() const;
  void close();
};

// Connects the targets (tried again while a failure is transient, until `stop`), plans the columns,
// makes the source. Nothing is read. Context::dry_run: nothing is created or written, and rows are
// printed on stdout.
// `source`: read from this instead of the pipeline's own (a replay of dead letters).
Result<Assembly> assemble(const Context& context, StopSignal& stop,
                          std::optional<SourceParts> source = std::nullopt);

}  // namespace flow
