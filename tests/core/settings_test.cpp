#include "core/settings.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <string>

using flow::Setting;
using flow::SettingType;

namespace {

bool is_group(const Setting& setting) {
  return setting.type == SettingType::section || setting.type == SettingType::list ||
         setting.type == SettingType::named;
}

}  // namespace

TEST_CASE("each setting stands in the table once, below a setting that can hold it") {
  std::set<std::string_view> paths;
  for (const Setting& setting : flow::settings()) {
    CAPTURE(std::string(setting.path));
    CHECK(paths.insert(setting.path).second);
    if (setting.parent().empty()) continue;
    const Setting* parent = flow::find_setting(setting.parent());
    REQUIRE(parent != nullptr);
    CHECK(is_group(*parent));
  }
}

TEST_CASE("each setting has a sentence, a place to go to and what its type needs") {
  for (const Setting& setting : flow::settings()) {
    CAPTURE(std::string(setting.path));
    REQUIRE_FALSE(setting.doc.empty());
    CHECK(setting.doc.back() == '.');
    CHECK_FALSE(setting.since.empty());
    CHECK((setting.set != nullptr) == !is_group(setting));
    CHECK((setting.type == SettingType::choice) == !setting.choices.empty());
    const bool ranged = setting.type == SettingType::integer || setting.type == SettingType::real ||
                        setting.type == SettingType::size || setting.type == SettingType::percent ||
                        setting.type == SettingType::duration;
    CHECK(ranged == (setting.min < setting.max));
    CHECK_FALSE((setting.need == flow::Need::required && !setting.fallback.empty()));
  }
}

TEST_CASE("the kinds of a setting are choices of the setting that decides the kind") {
  for (const Setting& setting : flow::settings()) {
    CAPTURE(std::string(setting.path));
    const std::string_view decides = flow::kind_setting_of(setting.parent());
    if (decides.empty()) continue;
    const auto kinds = flow::split_words(flow::find_setting(decides)->choices);
    for (const std::string_view kind : flow::split_words(setting.kinds)) {
      CHECK(std::find(kinds.begin(), kinds.end(), kind) != kinds.end());
    }
  }
}

TEST_CASE("properties that flow sets itself are refused with what to use instead") {
  using flow::KafkaRole;
  for (const char* name : {"enable.auto.commit", "enable.auto.offset.store", "group.id",
                           "bootstrap.servers", "isolation.level", "auto.offset.reset",
                           "enable.partition.eof", "partition.assignment.strategy"}) {
    CAPTURE(name);
    CHECK(flow::owned_kafka_property(KafkaRole::source, name).has_value());
  }
  for (const char* name : {"acks", "enable.idempotence", "bootstrap.servers", "transactional.id"}) {
    CAPTURE(name);
    CHECK(flow::owned_kafka_property(KafkaRole::target, name).has_value());
  }
  CHECK_FALSE(flow::owned_kafka_property(KafkaRole::source, "group.instance.id").has_value());
  CHECK_FALSE(flow::owned_kafka_property(KafkaRole::target, "compression.type").has_value());
}
