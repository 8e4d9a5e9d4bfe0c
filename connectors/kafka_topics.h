#pragma once
// Which topics of the cluster a pipeline's names and patterns mean.
#include <string>
#include <vector>

#include "connectors/kafka_client.h"

namespace flow::kafka {

bool is_pattern(const std::string& name);             // starts with ^
bool names_internal_topics(const std::string& name);  // a pattern for topics that start with __

struct TopicMatch {
  std::vector<TopicInfo> found;      // in name order, each once
  std::vector<std::string> missing;  // names and patterns that match none
};
// Patterns as librdkafka reads them: POSIX extended, topics that start with __ left out unless
// asked for.
TopicMatch match_topics(const std::vector<std::string>& names, const std::vector<TopicInfo>& all);

}  // namespace flow::kafka
