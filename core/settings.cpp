#include "core/settings.h"

#include <algorithm>
#include <array>

namespace flow {
namespace {

struct Owned {
  std::string_view name;
  std::string_view instead;
};

constexpr std::string_view positions_why = "positions are committed after the targets are durable";
constexpr std::array<Owned, 13> owned_by_source{
    {{"bootstrap.servers", "use source.brokers"},
     {"metadata.broker.list", "use source.brokers"},
     {"group.id", "use source.group"},
     {"auto.offset.reset", "use source.start and source.on_gap"},
     {"enable.auto.commit", positions_why},
     {"auto.commit.enable", positions_why},
     {"auto.commit.interval.ms", positions_why},
     {"enable.auto.offset.store", positions_why},
     {"offset.store.method", positions_why},
     {"isolation.level", "flow reads committed records only"},
     {"enable.partition.eof", "use --until-end to stop at the end"},
     {"partition.assignment.strategy", "use source.rebalance"},
     {"check.crcs", "flow always checks them"}}};
constexpr std::array<Owned, 9> owned_by_target{
    {{"bootstrap.servers", "use brokers of the target"},
     {"metadata.broker.list", "use brokers of the target"},
     {"acks", "flow always waits for all replicas"},
     {"request.required.acks", "flow always waits for all replicas"},
     {"enable.idempotence", "flow always sends idempotently"},
     {"delivery.report.only.error", "flow checks each delivery report"},
     {"transactional.id", "flow sets it where delivery needs one"},
     {"group.id", "a target joins no group"},
     {"enable.gapless.guarantee", "flow always sends idempotently"}}};

}  // namespace

std::string_view name_of(SettingType type) {
  switch (type) {
    case SettingType::section: return "a map of settings";
    case SettingType::list: return "a list";
    case SettingType::named: return "a map";
    case SettingType::text: return "text";
    case SettingType::sql: return "SQL text";
    case SettingType::character: return "one character";
    case SettingType::text_list: return "a list of texts";
    case SettingType::text_or_list: return "text or a list of texts";
    case SettingType::choice: return "one of several words";
    case SettingType::boolean: return "true or false";
    case SettingType::integer: return "a whole number";
    case SettingType::real: return "a number";
    case SettingType::duration: return "a duration";
    case SettingType::size: return "a size";
    case SettingType::percent: return "a percentage";
    case SettingType::field: return "a field or a constant";
    case SettingType::default_value: return "a constant or a field";
    case SettingType::column_type: return "a column type";
    case SettingType::properties: return "a map of librdkafka properties";
  }
  return "";
}

std::string_view Setting::name() const {
  if (path.size() > 2 && path.substr(path.size() - 2) == "[]") return "[]";
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string_view Setting::parent() const {
  if (name() == "[]") return path.substr(0, path.size() - 2);
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

bool Setting::belongs_to(std::string_view kind) const {
  if (kinds.empty()) return true;
  const auto words = split_words(kinds);
  return std::find(words.begin(), words.end(), kind) != words.end();
}

const Setting* find_setting(std::string_view path) {
  const auto all = settings();
  const auto row = std::find_if(all.begin(), all.end(),
                                [path](const Setting& setting) { return setting.path == path; });
  return row == all.end() ? nullptr : &*row;
}

std::vector<const Setting*> settings_below(std::string_view parent) {
  std::vector<const Setting*> out;
  for (const Setting& setting : settings()) {
    if (setting.parent() == parent) out.push_back(&setting);
  }
  return out;
}

std::string_view kind_setting_of(std::string_view parent) {
  if (parent.empty()) return "format";
  if (parent == "source") return "source.kind";
  if (parent == "targets[]") return "targets[].kind";
  return "";
}

std::vector<std::string_view> split_words(std::string_view words) {
  std::vector<std::string_view> out;
  while (!words.empty()) {
    const std::size_t bar = std::min(words.find('|'), words.size());
    out.push_back(words.substr(0, bar));
    words.remove_prefix(std::min(bar + 1, words.size()));
  }
  return out;
}

std::string words_or(std::string_view words) {
  const auto all = split_words(words);
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += i + 1 == all.size() ? " or " : ", ";
    out += all[i];
  }
  return out;
}

std::optional<std::string_view> owned_kafka_property(KafkaRole role, std::string_view name) {
  const std::span<const Owned> owned =
      role == KafkaRole::source ? std::span<const Owned>(owned_by_source) : owned_by_target;
  const auto row =
      std::find_if(owned.begin(), owned.end(), [name](const Owned& o) { return o.name == name; });
  return row == owned.end() ? std::nullopt : std::optional(row->instead);
}

}  // namespace flow
