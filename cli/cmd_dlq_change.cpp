#include <iostream>

#include "cli/dlq.h"
#include "core/clock.h"
#include "core/units.h"

namespace flow {

namespace {

constexpr std::uint64_t without_asking = 100;
constexpr std::size_t at_once = 1000;

// What discard and retry-parked do: letters of one state are settled to another, with an audit row
// each.
struct Change {
  std::string name;
  LetterState from;
  LetterState to;
  std::string outcome;
};

int settle_all(const Globals& globals, const LetterFlags& flags, const Change& change, bool yes) {
  auto filter = filter_of(flags);
  if (!filter) return report_failure(globals, filter.failure(), {});
  if (!filter->state) filter->state = change.from;
  auto letters = open_letters(globals, flags, StateAccess::read_write);
  if (!letters) return report_failure(globals, letters.failure(), {});
  Letters& l = **letters;
  auto list = l.store->list(*filter);
  if (!list) return report_failure(globals, list.failure(), l.masker);
  if (auto ok = confirm(list->size(), without_asking, change.name, yes); !ok) {
    return report_failure(globals, ok.failure(), l.masker);
  }
  const std::string who = acting_user();
  std::vector<LetterOutcome> outcomes;
  for (const DeadLetter& d : *list) outcomes.push_back({d.id, change.to, change.outcome});
  for (std::size_t first = 0; first < outcomes.size(); first += at_once) {
    const std::span<const LetterOutcome> piece(outcomes.data() + first,
                                               std::min(at_once, outcomes.size() - first));
    if (auto r = l.store->settle(piece, "", who); !r)
      return report_failure(globals, r.failure(), l.masker);
  }
  if (globals.json()) {
    Json j;
    j["changed"] = outcomes.size();
    j["status"] = name_of(change.to);
    print_json("dlq." + change.name, std::move(j), l.masker);
  } else {
    std::cout << outcomes.size() << (outcomes.size() == 1 ? " letter is now " : " letters are now ")
              << name_of(change.to) << '\n';
  }
  return 0;
}

int purge(const Globals& globals, LetterFlags flags, const std::string& older_than, bool yes) {
  auto age = parse_duration(older_than);
  if (!age) {
    Failure f = std::move(age).failure();
    f.where = "--older-than";
    f.exit = ExitCode::usage;
    return report_failure(globals, f, {});
  }
  auto filter = filter_of(flags);
  if (!filter) return report_failure(globals, filter.failure(), {});
  filter->until_ms = wall_ms() - age->count();
  auto letters = open_letters(globals, flags, StateAccess::read_write);
  if (!letters) return report_failure(globals, letters.failure(), {});
  Letters& l = **letters;
  auto count = l.store->count(*filter);
  if (!count) return report_failure(globals, count.failure(), l.masker);
  if (auto ok = confirm(*count, 0, "remove for good", yes); !ok)
    return report_failure(globals, ok.failure(), l.masker);
  auto gone = l.store->purge(*filter);
  if (!gone) return report_failure(globals, gone.failure(), l.masker);
  if (globals.json()) {
    Json j;
    j["removed"] = *gone;
    print_json("dlq.purge", std::move(j), l.masker);
  } else {
    std::cout << with_separators(*gone) << (*gone == 1 ? " letter" : " letters") << " removed\n";
  }
  return 0;
}

void add_change(CLI::App& dlq, Globals& globals, Action& action, const Change& change,
                const std::string& what, const std::string& example) {
  auto flags = std::make_shared<LetterFlags>();
  auto yes = std::make_shared<bool>(false);
  CLI::App* c = add_command(dlq, globals, change.name, what, example);
  add_letter_flags(*c, globals, *flags);
  c->add_flag("-y,--yes", *yes, "Do it without asking, also for more than 100 letters");
  c->callback([&globals, &action, flags, yes, change] {
    action = [&globals, flags, yes, change] { return settle_all(globals, *flags, change, *yes); };
  });
}

}  // namespace

void add_dlq_change(CLI::App& dlq, Globals& globals, Action& action) {
  add_change(dlq, globals, action,
             {"discard", LetterState::pending, LetterState::discarded, "discarded"},
             "Marks letters as not wanted; they are kept until purge", "flow dlq discard --id 17");
  add_change(dlq, globals, action,
             {"retry-parked", LetterState::parked, LetterState::pending, "pending again"},
             "Makes parked letters pending again, for the next replay",
             "flow dlq retry-parked --topic orders");

  auto flags = std::make_shared<LetterFlags>();
  auto older = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  CLI::App* p = add_command(dlq, globals, "purge",
                            "Removes old letters for good; nothing is ever removed by itself",
                            "flow dlq purge --older-than 90d --status replayed --yes");
  add_letter_flags(*p, globals, *flags);
  p->add_option("--older-than", *older, "Letters that failed last longer ago than this, e.g. 90d")
      ->required();
  p->add_flag("-y,--yes", *yes, "Do it without asking");
  p->callback([&globals, &action, flags, older, yes] {
    action = [&globals, flags, older, yes] { return purge(globals, *flags, *older, *yes); };
  });
}

}  // namespace flow
