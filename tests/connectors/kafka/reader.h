#pragma once
// A Kafka source with what it needs around it, for tests.
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "connectors/registry.h"
#include "tests/support/kafka_help.h"
#include "tests/support/loop_doubles.h"
#include "tests/support/pg_help.h"
#include "tests/support/services.h"
#include "tests/support/wait_for.h"

namespace flow::test {

inline std::string broker() { return services().kafka; }

// A record as the source gave it; the bytes are copies.
struct Got {
  PartitionId partition;
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = -1;
  std::optional<std::string> key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
};

// One source of one group, driven by the test's own thread. Positions are committed by commit() or,
// in to_end() and on_thread(), after each batch.
class Reader {
 public:
  explicit Reader(std::vector<std::string> topics, std::string group = unique_name("group"));
  ~Reader();

  Pipeline pipeline;  // changed before open()
  Context context;
  RecordingLog log;
  RecordingListener listener;
  SwitchedControl control;

  Result<void> open();
  // One read(): what it gave is appended to `got`, its spans are kept for commit().
  Result<ReadOutcome> read();
  Result<void> commit();
  Result<void> keep_alive() { return parts_->source->keep_alive(); }
  SourceProgress progress() const { return parts_->source->progress(); }
  PositionStore& positions() { return *parts_->positions; }
  void close();

  // Opens and reads until the end that was there at the start, committing each batch.
  Result<void> to_end();
  // Reads until `enough`, at most 30 s; false when the time is up. REQUIREs that reads go well.
  template <class Enough>
  bool read_until(Enough enough) {
    return wait_for(std::chrono::seconds(30),
                    [&] {
                      if (auto r = read(); !r) {
                        failure = r.failure();
                        return true;
                      }
                      return enough();
                    }) &&
           !failure;
  }

  // Reads and commits on a thread of its own until stop().
  void on_thread();
  void stop();
  std::size_t count() const { return read_count_; }

  std::vector<Got> got;
  std::optional<Failure> failure;
  Spans spans;

 private:
  std::optional<SourceParts> parts_;
  Batch batch_;
  std::thread thread_;
  std::atomic<std::size_t> read_count_{0};
};

// "topic-independent" identity of what was read: partition:offset=value, in reading order.
std::vector<std::string> values(const std::vector<Got>& got);
// n records "prefix0".. to one partition.
std::vector<KafkaRecord> numbered(int n, std::int32_t partition = 0,
                                  const std::string& prefix = "v");
std::vector<std::string> numbered_values(int from, int to, const std::string& prefix = "v");

}  // namespace flow::test
