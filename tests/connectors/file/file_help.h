#pragma once
// Runs the file source without a loop: reads, remembers every record by file, byte and content,
// commits as told.
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "connectors/registry.h"
#include "tests/support/loop_doubles.h"
#include "tests/support/state_double.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace flow::test {

// One record as it came.
struct Taken {
  std::string file;  // name without directory
  std::int64_t offset = 0;
  std::string value;
  bool operator==(const Taken&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Taken& t) {
  return out << t.file << "@" << t.offset << " " << t.value;
}

// One pipeline over files: several runs share its state. Threads: one.
class FileRuns {
 public:
  explicit FileRuns(std::vector<std::string> paths, FormatKind format = FormatKind::json);

  Pipeline pipeline;
  RecordingLog log;
  SwitchedControl control;
  BatchLimits limits{.records = 1000, .bytes = std::size_t{1} << 20, .wait = Millis{60'000}};

  // A whole bounded run. Fails the test when the source fails.
  std::vector<Taken> run();
  // A run that must fail; `before`: what came before the failure.
  Failure failing_run(std::vector<Taken>* before = nullptr);
  // A run that dies after `batches` committed batches (and reads one more, which is lost).
  std::vector<Taken> killed_run(std::size_t batches);

  // A run that follows: read() until the condition holds; fails the test when it does not within
  // the deadline.
  void start_following();
  void follow_until(std::size_t records);
  void follow_until_log(const std::string& part);
  // Reads on for a while in which nothing must come.
  Failure follow_to_failure();
  void stop_following() { following_.reset(); }
  std::vector<Taken> followed;

  Context context();
  std::shared_ptr<MemoryStateData> data = std::make_shared<MemoryStateData>();
  std::int64_t position(const std::string& path) const;
  std::vector<std::string> headers;  // of each record that came, in order
  std::vector<std::uint32_t> lines;  // of each record that came
  std::size_t commits = 0;           // batches with spans
  std::size_t largest_batch = 0;     // payload bytes

 private:
  struct Running {
    SourceParts parts;
    Batch batch;
  };
  std::unique_ptr<Running> open();
  // One batch: true until the end.
  Result<bool> turn(Running& running, std::vector<Taken>& out, bool commit);

  MemoryState state_{data};
  RecordingListener listener_;
  std::unique_ptr<Running> following_;
};

std::string gzip(const std::string& bytes);  // one member
std::string zstd(const std::string& bytes);  // one frame

// {"n":first} ... one a line
std::string json_lines(int first, int count);
std::vector<std::string> values(const std::vector<Taken>& taken);

}  // namespace flow::test
