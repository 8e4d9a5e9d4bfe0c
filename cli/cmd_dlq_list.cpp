#include <iostream>

#include "cli/dlq.h"
#include "core/clock.h"

namespace flow {

namespace {

std::string short_time(std::int64_t ms) { return rfc3339(ms).substr(0, 19) + "Z"; }

Json group_json(const LetterGroup& g) {
  Json j;
  j["pipeline"] = g.pipeline;
  j["topic"] = g.topic;
  j["target"] = g.target;
  j["stage"] = g.stage;
  j["class"] = name_of(g.cls);
  j["code"] = g.code;
  j["status"] = name_of(g.state);
  j["count"] = g.count;
  j["first_failed"] = rfc3339(g.first_ms);
  j["last_failed"] = rfc3339(g.last_ms);
  return j;
}

int list_groups(const Globals& globals, Letters& letters, const LetterFilter& filter) {
  auto groups = letters.store->groups(filter);
  if (!groups) return report_failure(globals, groups.failure(), letters.masker);
  std::uint64_t total = 0;
  for (const LetterGroup& g : *groups) total += g.count;
  if (globals.json()) {
    Json j;
    j["state"] = letters.state->location();
    j["count"] = total;
    j["groups"] = Json::array();
    for (const LetterGroup& g : *groups) j["groups"].push_back(group_json(g));
    print_json("dlq.list", std::move(j), letters.masker);
    return 0;
  }
  if (groups->empty()) {
    std::cout << "no dead letters in " << letters.state->location() << '\n';
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const LetterGroup& g : *groups) {
    rows.push_back({with_separators(g.count), std::string(name_of(g.state)), g.pipeline, g.topic,
                    g.target, g.stage, std::string(name_of(g.cls)), g.code, short_time(g.first_ms),
                    short_time(g.last_ms)});
  }
  std::cout << letters.masker.text(table({"letters", "status", "pipeline", "topic", "target",
                                          "stage", "class", "code", "first failed", "last failed"},
                                         rows, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  std::cout << letters.masker.text("\nflow dlq list --each" + letters.words +
                                   " shows them one by one, flow dlq show ID" + letters.words +
                                   " one whole\n");
  return 0;
}

int list_each(const Globals& globals, Letters& letters, LetterFilter filter) {
  if (filter.limit == 0) filter.limit = 100;
  auto list = letters.store->list(filter);
  if (!list) return report_failure(globals, list.failure(), letters.masker);
  if (globals.json()) {
    Json j;
    j["state"] = letters.state->location();
    j["count"] = list->size();
    j["letters"] = Json::array();
    for (const DeadLetter& l : *list) j["letters"].push_back(letter_json(l));
    print_json("dlq.list", std::move(j), letters.masker);
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const DeadLetter& l : *list) {
    rows.push_back({std::to_string(l.id), std::string(name_of(l.state)), l.pipeline,
                    l.origin.text() + "@" + std::to_string(l.offset.value), l.target, l.stage,
                    std::string(name_of(l.cls)), std::to_string(l.attempts),
                    short_time(l.last_failed_ms), l.error});
  }
  std::cout << letters.masker.text(table({"id", "status", "pipeline", "record", "target", "stage",
                                          "class", "attempts", "last failed", "error"},
                                         rows, {1, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
  if (list->size() == filter.limit) std::cout << "\nthere may be more: --limit N\n";
  return 0;
}

int list(const Globals& globals, const LetterFlags& flags, bool each) {
  auto filter = filter_of(flags);
  if (!filter) return report_failure(globals, filter.failure(), {});
  auto letters = open_letters(globals, flags, StateAccess::read_only);
  if (!letters) return report_failure(globals, letters.failure(), {});
  return each ? list_each(globals, **letters, *filter) : list_groups(globals, **letters, *filter);
}

}  // namespace

void add_dlq_list(CLI::App& dlq, Globals& globals, Action& action) {
  auto flags = std::make_shared<LetterFlags>();
  auto each = std::make_shared<bool>(false);
  CLI::App* c = add_command(dlq, globals, "list", "Lists dead letters, grouped by what failed",
                            "flow dlq list --topic orders --since 2h");
  add_letter_flags(*c, globals, *flags);
  c->add_flag("--each", *each, "One line a letter instead of groups");
  c->callback([&globals, &action, flags, each] {
    action = [&globals, flags, each] { return list(globals, *flags, *each); };
  });
}

}  // namespace flow
