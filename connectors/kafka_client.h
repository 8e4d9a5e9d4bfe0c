#pragma once
// What every Kafka role shares: owned librdkafka objects, settings, errors by code, questions to
// the cluster.
#include <atomic>
#include <chrono>
#include <deque>
#include <librdkafka/rdkafka.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/ports.h"
#include "core/registry.h"
#include "core/result.h"
#include "core/types.h"

namespace flow::kafka {

template <auto destroy>
struct Free {
  template <class T>
  void operator()(T* what) const {
    destroy(what);
  }
};
using List =
    std::unique_ptr<rd_kafka_topic_partition_list_t, Free<rd_kafka_topic_partition_list_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Free<rd_kafka_queue_destroy>>;
using Message = std::unique_ptr<rd_kafka_message_t, Free<rd_kafka_message_destroy>>;
using Error = std::unique_ptr<rd_kafka_error_t, Free<rd_kafka_error_destroy>>;

List make_list(const std::vector<PartitionId>& partitions, std::int64_t offset);
PartitionId id_of(const rd_kafka_topic_partition_t& entry);

// ---- errors ----------------------------------------------------------------------------------

// A Failure by the code alone (core/classify.h); `what` defaults to the table's sentence.
Failure failure_of(rd_kafka_resp_err_t code, std::string where, std::string what = {},
                   std::string hint = {});

// What the library said on its error callback: tells a wrong password or a bad certificate, which
// calls report as a connection that failed, from a broker that is down. Threads: any.
class ErrorMemory {
 public:
  void note(rd_kafka_resp_err_t code, std::string reason);
  // The Failure for `code`, or for the login or TLS error behind it.
  Failure explain(rd_kafka_resp_err_t code, std::string where) const;
  // A login or TLS error that has stood for `patience` without an answer in between.
  std::optional<Failure> refused(std::string where, Millis patience = Millis{0}) const;
  void answered();  // a broker did what was asked
  // True once for each episode: no broker can be reached / one answers again.
  bool take_down();
  bool take_back();

 private:
  mutable std::mutex mutex_;
  rd_kafka_resp_err_t refusal_ = RD_KAFKA_RESP_ERR_NO_ERROR;
  Monotonic::time_point refused_since_{};
  std::string refusal_reason_;
  std::string last_reason_;
  bool down_ = false;
  bool told_ = false;
};

// ---- client ----------------------------------------------------------------------------------

// In order; a later setting of the same name wins.
using Settings = std::vector<std::pair<std::string, std::string>>;

// What the library's callbacks may touch: it outlives the client even when closing one hangs.
// Threads: log and errors by any; the rest by the thread that polls.
struct Shared {
  std::mutex log_mutex;
  Log* log = nullptr;  // null once the client's owner is gone
  ErrorMemory errors;
  std::shared_ptr<Shared> self{};  // set when the client stays behind: its callbacks may still come
  virtual ~Shared() = default;
  void event(Level level, std::string_view noun_verb, const Fields& fields);
  void cut_off();  // no event reaches the log any more
};

// One librdkafka client. Owner: this object, until close(). Errors: every call's Failure names
// `where()`.
class Client {
 public:
  // `configure` sets role callbacks; the opaque of every callback is the Shared.
  static Result<std::unique_ptr<Client>> make(rd_kafka_type_t type, const Settings& settings,
                                              std::shared_ptr<Shared> shared, std::string where,
                                              void (*configure)(rd_kafka_conf_t*) = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  rd_kafka_t* raw() const { return raw_; }
  Shared& shared() const { return *shared_; }
  const std::string& where() const { return where_; }

  // The code, or what is behind a general one.
  Failure failure(rd_kafka_resp_err_t code) const;
  // librdkafka 2.0.2 aborts when a cooperative-sticky member that never led its group is destroyed:
  // such a consumer is closed, and goes with the process.
  void stays_behind() { stays_behind_ = true; }
  // Closes within `deadline`; a client that hangs is left behind, cut off from its owner.
  void close(Millis deadline);

 private:
  Client(rd_kafka_t* raw, std::shared_ptr<Shared> shared, std::string where, rd_kafka_type_t type);
  rd_kafka_t* raw_;
  std::shared_ptr<Shared> shared_;
  std::string where_;
  rd_kafka_type_t type_;
  bool stays_behind_ = false;
};

// ---- settings --------------------------------------------------------------------------------

void add_properties(Settings& settings, const std::map<std::string, std::string>& properties);
bool has_property(const std::map<std::string, std::string>& properties, std::string_view name);
// Why a pipeline may not set this property; empty: it may.
std::string owned_property(std::string_view name);
// For looking things up: no group membership, creates no topic.
Settings probe_settings(const std::string& brokers,
                        const std::map<std::string, std::string>& properties);

// ---- questions to the cluster ----------------------------------------------------------------

constexpr Millis answer_wait{10'000};

struct TopicInfo {
  std::string name;
  std::int32_t partitions = 0;
};

// All topics that this login may see. Errors: transient when no broker answers, unauthorized when
// one refuses the login.
Result<std::vector<TopicInfo>> list_topics(Client& client, Millis wait = answer_wait);
// Why a topic is not in that list: does not exist (setup), or no right to it (unauthorized).
Failure absent_topic(Client& client, const std::string& topic, const std::vector<TopicInfo>& all,
                     std::string_view setting);

// An offset per partition; a partition without one is absent.
using Offsets = std::map<PartitionId, std::int64_t>;

Result<Offsets> committed_offsets(Client& client, const std::vector<PartitionId>& partitions,
                                  Millis wait = answer_wait);
// Log start, or end. The end is the last stable offset for a read_committed client, else the high
// watermark.
enum class Edge : std::uint8_t { start, end };
Result<Offsets> edge_offsets(Client& client, const std::vector<PartitionId>& partitions, Edge edge,
                             Millis wait = answer_wait);

// A topic's configuration value; nullopt where this login may not see it.
std::optional<std::string> topic_config(Client& client, const std::string& topic,
                                        std::string_view name);

std::vector<PartitionId> partitions_of(const std::vector<TopicInfo>& topics);

}  // namespace flow::kafka
