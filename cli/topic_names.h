#pragma once
// Names of Kafka topics and the patterns that name several. Shape: pure functions.
#include <string>

namespace flow {

// What is wrong; empty: nothing.
std::string check_topic_name(const std::string& name);
std::string check_topic_pattern(const std::string& pattern);

// Whether a source that names `read` (a topic, or a pattern that begins with ^) reads `topic`. A
// pattern need not match to the end of the name. A pattern at fault matches nothing.
bool reads_topic(const std::string& read, const std::string& topic);

}  // namespace flow
