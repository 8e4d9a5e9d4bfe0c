#pragma once
// A pipeline of in-memory parts that a test of the loop sets up, breaks and runs.
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.h"
#include "tests/support/letters_double.h"
#include "tests/support/memory_parts.h"
#include "tests/support/state_double.h"

namespace flow::test {

// Batches of 10 records.
struct World {
  Pipeline pipeline;
  MemorySource source;
  MemoryPositions positions;
  std::vector<std::unique_ptr<MemoryTarget>> targets;
  MemoryLog log;
  StopSignal stop;
  MemoryLetters letters;
  MemoryState state;
  bool dry = false;
  std::string run_id = "run-1";
  LoopLimits limits;
  std::optional<Mapper> mapper;

  explicit World(std::size_t target_count = 1) {
    pipeline.name = "test";
    pipeline.source.batch.records = 10;
    pipeline.retry.initial = Millis{1};
    pipeline.retry.max = Millis{5};
    for (std::size_t t = 0; t < target_count; ++t) {
      TargetSpec spec;
      spec.kind = "memory";
      spec.label = "target" + std::to_string(t);
      pipeline.targets.push_back(spec);
      targets.push_back(std::make_unique<MemoryTarget>(spec));
    }
  }

  void fill(const std::string& topic, int partition, int count) {
    auto& values = source.data[{topic, partition}];
    for (int i = 0; i < count; ++i) values.push_back("v" + std::to_string(i));
  }

  LoopEnd run() {
    std::vector<TargetSchema> schemas;
    LoopParts parts;
    for (auto& t : targets) {
      schemas.push_back(*t->prepare({}));
      parts.targets.push_back(t.get());
    }
    auto made = Mapper::make(pipeline, schemas, std::make_unique<MemoryDecoder>(), {});
    REQUIRE(made.ok());
    mapper.emplace(std::move(made).value());
    parts.pipeline = &pipeline;
    parts.source = &source;
    parts.positions = &positions;
    parts.mapper = &*mapper;
    parts.log = &log;
    parts.stop = &stop;
    parts.limits = limits;
    if (pipeline.on_error == OnError::dlq && !dry) parts.letters = &letters;
    if (!dry) parts.state = &state;
    parts.run_id = run_id;
    return run_loop(parts);
  }

  static std::vector<std::string> names(const std::string& topic, int partition, int from, int to) {
    std::vector<std::string> out;
    for (int i = from; i < to; ++i)
      out.push_back(topic + "/" + std::to_string(partition) + "@" + std::to_string(i));
    return out;
  }
};

inline Failure transient(Effect effect = Effect::none) {
  return {.cls = FailureClass::transient, .effect = effect, .where = "test", .what = "down"};
}

}  // namespace flow::test
