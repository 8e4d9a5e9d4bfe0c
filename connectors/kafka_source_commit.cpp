// The group's committed positions as position authority.
#include "connectors/kafka_source.h"
#include "core/failure_point.h"

namespace flow::kafka {

namespace {

bool membership_is_gone(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
         code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || code == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST;
}

rd_kafka_resp_err_t first_error(rd_kafka_resp_err_t code,
                                const rd_kafka_topic_partition_list_t& list) {
  for (int i = 0; i < list.cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) code = list.elems[i].err;
  return code;
}

}  // namespace

Result<std::vector<TargetMark>> KafkaSource::load_marks() {
  if (context_.state == nullptr) return std::vector<TargetMark>{};
  return context_.state->marks(context_.pipeline->name);
}

// The writing thread. Only partitions that are ours now, and never backwards.
Result<void> KafkaSource::commit(const Spans& spans, const std::vector<TargetMark>& marks) {
  if (context_.dry_run) return {};
  const List list(rd_kafka_topic_partition_list_new(static_cast<int>(spans.size())));
  bool all_releasing = true;
  {
    const std::scoped_lock lock(mutex_);
    for (const Span& span : spans) {
      const auto at = owned_.find(span.partition);
      if (at == owned_.end() || span.next.next <= at->second->committed) continue;
      all_releasing = all_releasing && at->second->releasing;
      rd_kafka_topic_partition_list_add(list.get(), span.partition.topic.c_str(),
                                        span.partition.partition)
          ->offset = span.next.next;
    }
  }
  if (list->cnt == 0) return {};
  if (!marks.empty() && context_.state != nullptr) {
    auto marked =
        context_.state->commit_positions(context_.pipeline->name, context_.run_id, spans, marks);
    if (!marked) return marked;
  }
  const auto code = first_error(rd_kafka_commit(client_->raw(), list.get(), 0), *list);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    // Still ours: the coordinator tries again. On its way to another member and the membership is
    // over: the next owner starts at the position before.
    if (membership_is_gone(code) &&
        (all_releasing || rd_kafka_assignment_lost(client_->raw()) != 0)) {
      shared_->event(Level::warn, "position.not_committed",
                     {{"reason", "the group took the partitions away"},
                      {"means", "their next owner reads this batch again"}});
      return {};
    }
    return client_->failure(code);
  }
  {
    const std::scoped_lock lock(mutex_);
    for (int i = 0; i < list->cnt; ++i) {
      const auto at = owned_.find(id_of(list->elems[i]));
      if (at != owned_.end()) at->second->committed = list->elems[i].offset;
    }
  }
  if (auto f = reach(Point::commit_position_applied)) return *f;
  return {};
}

}  // namespace flow::kafka
