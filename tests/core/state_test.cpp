#include "core/state.h"

#include <doctest/doctest.h>
#include <set>

using namespace flow;

TEST_CASE("a run id tells when the run started and is new each time") {
  std::set<std::string> ids;
  for (int i = 0; i < 50; ++i) ids.insert(make_run_id(1'767'225'600'999));
  CHECK(ids.size() > 45);
  for (const std::string& id : ids) {
    CHECK(id.size() == 23);
    CHECK(id.substr(0, 17) == "20260101T000000Z-");
  }
  CHECK(make_run_id(1'767'225'601'000) > *ids.rbegin());
}

TEST_CASE("every run status has a name that reads back") {
  for (const RunStatus status : {RunStatus::running, RunStatus::done, RunStatus::drained,
                                 RunStatus::failed, RunStatus::interrupted}) {
    CHECK(run_status_named(name_of(status)) == status);
  }
  CHECK_FALSE(run_status_named("paused").has_value());
}
