#include <algorithm>
#include <iostream>
#include <utility>

#include "cli/dlq.h"
#include "core/clock.h"
#include "core/units.h"

namespace flow {

namespace {

constexpr std::uint64_t without_asking = 100;
constexpr std::size_t at_once = 1000;

// What discard and retry-parked do: letters of these states are settled to another, with an audit
// row each.
struct Change {
  std::string name;
  std::vector<LetterState> from;  // the first one is meant where neither ids nor a state are given
  LetterState to;
  std::string outcome;
};

// The states of the letters that are meant.
Result<std::vector<LetterState>> states_of(const LetterFilter& filter, const Change& change) {
  if (!filter.state && filter.ids.empty()) return std::vector{change.from.front()};
  if (!filter.state) return change.from;
  if (std::find(change.from.begin(), change.from.end(), *filter.state) != change.from.end())
    return std::vector{*filter.state};
  return Failure{.cls = FailureClass::setup,
                 .where = "--status " + std::string(name_of(*filter.state)),
                 .what = "flow dlq " + change.name + " leaves such letters alone",
                 .hint = "flow dlq list shows how many letters are in which state",
                 .exit = ExitCode::usage};
}

Result<std::uint64_t> settle_all(Letters& l, const LetterFilter& filter, const Change& change) {
  const std::string who = acting_user();
  std::vector<LetterOutcome> outcomes;
  const auto settle = [&]() -> Result<void> {
    const auto piece = std::exchange(outcomes, {});
    return l.store->settle(piece, "", who);
  };
  auto done = for_each_letter(*l.store, filter, [&](const DeadLetter& d) -> Result<void> {
    outcomes.push_back({.id = d.id, .state = change.to, .outcome = change.outcome});
    return outcomes.size() < at_once ? Result<void>() : settle();
  });
  if (!done) return done;
  if (auto r = settle(); !r) return std::move(r).failure();
  return done;
}

int print_changed(const Globals& globals, std::uint64_t changed, const LetterFilter& filter,
                  const Change& change) {
  const bool all = filter.ids.empty() || changed == filter.ids.size();
  if (globals.json()) {
    Json j;
    j["changed"] = changed;
    j["status"] = name_of(change.to);
    print_json("dlq." + change.name, std::move(j), {});
  } else {
    std::cout << letters_text(changed) << (changed == 1 ? " is now " : " are now ")
              << name_of(change.to) << '\n';
  }
  if (all) return 0;
  std::cerr << "flow: the other ids name no letter that this could change; flow dlq show ID tells "
               "why\n";
  return static_cast<int>(ExitCode::bad);
}

int change_letters(const Globals& globals, const LetterFlags& flags, const Change& change,
                   bool yes) {
  auto filter = filter_of(flags);
  if (!filter) return report_failure(globals, filter.failure(), {});
  auto states = states_of(*filter, change);
  if (!states) return report_failure(globals, states.failure(), {});
  auto letters = open_letters(globals, flags, StateAccess::read_write);
  if (!letters) return report_failure(globals, letters.failure(), {});
  Letters& l = **letters;
  std::uint64_t count = 0;
  for (const LetterState state : *states) {
    filter->state = state;
    auto some = l.store->count(*filter);
    if (!some) return report_failure(globals, some.failure(), l.masker);
    count += *some;
  }
  if (auto ok = confirm(count, without_asking, change.name, yes); !ok)
    return report_failure(globals, ok.failure(), l.masker);
  std::uint64_t changed = 0;
  for (const LetterState state : *states) {
    filter->state = state;
    auto some = settle_all(l, *filter, change);
    if (!some) return report_failure(globals, some.failure(), l.masker);
    changed += *some;
  }
  return print_changed(globals, changed, *filter, change);
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
  if (auto ok = confirm(*count, 0, "remove", yes); !ok)
    return report_failure(globals, ok.failure(), l.masker);
  auto gone = l.store->purge(*filter);
  if (!gone) return report_failure(globals, gone.failure(), l.masker);
  if (globals.json()) {
    Json j;
    j["removed"] = *gone;
    print_json("dlq.purge", std::move(j), l.masker);
  } else {
    std::cout << letters_text(*gone) << " removed\n";
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
    action = [&globals, flags, yes, change] {
      return change_letters(globals, *flags, change, *yes);
    };
  });
}

}  // namespace

void add_dlq_change(CLI::App& dlq, Globals& globals, Action& action) {
  add_change(
      dlq, globals, action,
      {"discard", {LetterState::pending, LetterState::parked}, LetterState::discarded, "discarded"},
      "Marks letters as not wanted; they are kept until purge", "flow dlq discard --id 17");
  add_change(dlq, globals, action,
             {"retry-parked", {LetterState::parked}, LetterState::pending, "pending again"},
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
