#include "connectors/kafka_topics.h"

#include <map>
#include <regex.h>

namespace flow::kafka {

namespace {

class Pattern {
 public:
  explicit Pattern(const std::string& text) {
    valid_ = regcomp(&compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB) == 0;
  }
  ~Pattern() {
    if (valid_) regfree(&compiled_);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  bool matches(const std::string& topic) const {
    return valid_ && regexec(&compiled_, topic.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_{};
  bool valid_ = false;
};

}  // namespace

bool is_pattern(const std::string& name) { return name.starts_with('^'); }

bool names_internal_topics(const std::string& name) { return name.starts_with("^__"); }

TopicMatch match_topics(const std::vector<std::string>& names, const std::vector<TopicInfo>& all) {
  std::map<std::string, TopicInfo> found;
  TopicMatch match;
  for (const std::string& name : names) {
    bool any = false;
    const Pattern pattern(is_pattern(name) ? name : std::string("^$"));
    for (const TopicInfo& topic : all) {
      const bool internal = topic.name.starts_with("__") && !names_internal_topics(name);
      const bool fits =
          is_pattern(name) ? !internal && pattern.matches(topic.name) : topic.name == name;
      if (!fits) continue;
      any = true;
      found.emplace(topic.name, topic);
    }
    if (!any) match.missing.push_back(name);
  }
  for (auto& [name, topic] : found) match.found.push_back(std::move(topic));
  return match;
}

}  // namespace flow::kafka
