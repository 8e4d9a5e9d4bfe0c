#include "cli/pipeline_reader.h"
#include "cli/topic_names.h"

namespace flow {
namespace {

class DlqRules {
 public:
  explicit DlqRules(PipelineReading& reading) : reading_(reading), pipeline_(reading.pipeline) {}

  void check() {
    if (pipeline_.on_error != OnError::dlq) return needs_dlq();
    store();
    if (!pipeline_.dlq.topic.empty()) topic();
  }

 private:
  void fault(const std::string& path, std::string message) {
    reading_.fault(reading_.place_of(path), path, std::move(message));
  }

  // A setting of dead letters that would do nothing is a mistake.
  void needs_dlq() {
    if (!reading_.sound("transform_on_error")) return;
    for (const char* name : {"dlq_store", "dead_letter_topic", "dlq_headers", "dlq_oversize",
                             "dlq_max_attempts", "dlq_limit", "crash_loop_limit"}) {
      if (!reading_.has(name)) continue;
      fault(name, "is for transform_on_error: dlq; write that, or remove it");
    }
  }

  void store() {
    const DlqSpec& dlq = pipeline_.dlq;
    if (dlq.store == DlqSpec::Store::topic && !reading_.has("dead_letter_topic")) {
      fault("dlq_store", "needs dead_letter_topic: the name of a topic");
    }
    if (dlq.in_topic()) return;
    for (const char* name : {"dead_letter_topic", "dlq_headers", "dlq_oversize"}) {
      if (!reading_.has(name)) continue;
      fault(name, dlq.store == DlqSpec::Store::table
                      ? "is for dlq_store: topic, and this is table; remove one of them"
                      : "is for dead letters in a topic; name one in dead_letter_topic");
    }
  }

  void topic() {
    const std::string& topic = pipeline_.dlq.topic;
    const std::string path = "dead_letter_topic";
    if (const std::string why = check_topic_name(topic); !why.empty()) {
      return fault(path, shown_value(topic) + " " + why);
    }
    if (pipeline_.dlq.brokers.empty()) {
      return fault(path,
                   "needs brokers, which come from a source or target of kind kafka; without one, "
                   "keep dead letters in the table (dlq_store: table)");
    }
    const SourceSpec& source = pipeline_.source;
    for (const std::string& read : source.kafka.topics) {
      if (source.kind != "kafka" || !reads_topic(read, topic)) continue;
      return fault(path, "is a topic that the source reads (" + read +
                             "); dead letters would be read again for ever");
    }
    for (std::size_t i = 0; i < pipeline_.targets.size(); ++i) {
      const TargetSpec& target = pipeline_.targets[i];
      if (target.kind != "kafka" || target.topic != topic) continue;
      return fault(path, "is also the topic of targets[" + std::to_string(i) +
                             "]; give dead letters a topic of their own");
    }
  }

  PipelineReading& reading_;
  const Pipeline& pipeline_;
};

}  // namespace

void check_dlq_rules(PipelineReading& reading) { DlqRules(reading).check(); }

}  // namespace flow
