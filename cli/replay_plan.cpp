// The plan of a replay: which letters, into which targets.
#include <algorithm>
#include <iostream>

#include "cli/letter_edit.h"
#include "cli/replay.h"
#include "core/clock.h"
#include "core/failure_point.h"
#include "core/suggest.h"

namespace flow {

namespace {

constexpr std::size_t shown_letters = 20;
constexpr std::size_t batch_records_max = 10'000;

Failure usage(std::string where, std::string what, std::string hint) {
  return {.cls = FailureClass::setup,
          .where = std::move(where),
          .what = std::move(what),
          .hint = std::move(hint),
          .exit = ExitCode::usage};
}

std::vector<std::string_view> labels_of(const Pipeline& pipeline) {
  std::vector<std::string_view> out;
  for (const TargetSpec& t : pipeline.targets) out.push_back(t.label);
  return out;
}

Result<double> rate_of(const std::string& text) {
  if (text.empty()) return 0.0;
  std::size_t used = 0;
  double rate = 0;
  try {
    rate = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string rest = text.substr(used);
  if (used == 0 || rate <= 0 || (!rest.empty() && rest != "/s")) {
    return usage("--rate", "\"" + text + "\" is no rate", "write 500/s");
  }
  return rate;
}

}  // namespace

std::size_t replay_batch(const Pipeline& pipeline) {
  return std::min(pipeline.source.batch.records, batch_records_max);
}

Result<std::vector<ReplayPart>> Replay::prepare() {
  if (auto r = read_flags(); !r) return std::move(r).failure();
  auto letters = open_letters(globals_, options_.letters, StateAccess::read_write);
  if (!letters) return std::move(letters).failure();
  letters_ = std::move(letters).value();
  const Pipeline& pipeline = letters_->loaded.pipeline;
  if (spec_.filter.pipeline.empty()) spec_.filter.pipeline = pipeline.name;
  spec_.attempts_max = pipeline.dlq.max_attempts;
  spec_.who = acting_user();
  spec_.id = "replay-" + make_run_id(wall_ms());
  if (auto r = free_dead_claims(); !r) return std::move(r).failure();
  if (auto r = known_snapshot(); !r) return std::move(r).failure();
  auto found = parts();
  if (!found) return found;
  for (const ReplayPart& p : *found) many_ += p.letters;
  if (spec_.filter.limit != 0) many_ = std::min<std::uint64_t>(many_, spec_.filter.limit);
  return found;
}

Result<void> Replay::read_flags() {
  if (options_.letters.file.empty() && options_.to_topic.empty()) {
    return usage("flow dlq replay", "no pipeline file",
                 "name it, or send the letters back with --to-topic");
  }
  if (options_.letters.file.empty() && options_.brokers.empty()) {
    return usage("--to-topic", "no brokers",
                 "give --brokers, or the pipeline file that names them");
  }
  auto filter = filter_of(options_.letters);
  if (!filter) return std::move(filter).failure();
  spec_.filter = std::move(filter).value();
  if (spec_.filter.state && *spec_.filter.state != LetterState::pending) {
    return usage("--status", "only pending letters are replayed",
                 "flow dlq retry-parked makes parked ones pending");
  }
  spec_.filter.state = LetterState::pending;
  auto rate = rate_of(options_.rate);
  if (!rate) return std::move(rate).failure();
  spec_.per_second = *rate;
  spec_.on_poison = options_.on_poison == "stop"   ? OnPoison::stop
                    : options_.on_poison == "park" ? OnPoison::park
                                                   : OnPoison::park_key;
  auto edit = make_letter_edit(options_.patches, options_.edits);
  if (!edit) return std::move(edit).failure();
  spec_.edit = std::move(edit).value();
  for (const std::string& p : options_.failure_points) {
    if (auto r = failure_point::arm(p); !r) return r;
  }
  return {};
}

// What a replay held when it died counts as pending again once somebody claims, were it nothing.
Result<void> Replay::free_dead_claims() {
  LetterFilter none;
  none.ids = {0};
  auto claimed = letters_->store->claim(none, spec_.id);
  if (!claimed) return std::move(claimed).failure();
  return {};
}

Result<void> Replay::known_snapshot() {
  if (spec_.filter.snapshot.empty()) return {};
  LetterFilter all;
  all.snapshot = spec_.filter.snapshot;
  auto count = letters_->store->count(all);
  if (!count) return std::move(count).failure();
  if (*count > 0) return {};
  return Failure{.cls = FailureClass::setup,
                 .where = "--snapshot " + spec_.filter.snapshot,
                 .what = "holds no letter in " + letters_->state->location(),
                 .hint = "flow dlq replay --dry-run takes one and prints its id",
                 .exit = ExitCode::usage};
}

// The targets that the letters failed for, each with its letters; each must be the pipeline's.
Result<std::vector<ReplayPart>> Replay::parts() {
  auto groups = letters_->store->groups(spec_.filter);
  if (!groups) return std::move(groups).failure();
  const Pipeline& pipeline = letters_->loaded.pipeline;
  const bool into_topic = !options_.to_topic.empty();
  std::vector<ReplayPart> out;
  for (const LetterGroup& g : *groups) {
    const std::string target = into_topic ? "" : g.target;
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const ReplayPart& p) { return p.target == target; });
    if (at == out.end()) {
      at = out.insert(out.end(), {target, into_topic ? to_topic() : pipeline, 0});
      if (!into_topic) {
        std::erase_if(at->pipeline.targets, [&](const TargetSpec& t) { return t.label != target; });
      }
    }
    if (into_topic && g.target != groups->front().target) spec_.once_a_record = true;
    at->letters += g.count;
    if (!at->pipeline.targets.empty()) continue;
    return Failure{
        .cls = FailureClass::setup,
        .where = options_.letters.file,
        .what = letters_text(g.count) + " failed for target " + target +
                ", which the pipeline does not have" + did_you_mean(target, labels_of(pipeline)),
        .hint =
            "narrow the letters with --target, or give a target this label: its letters go "
            "where the label points"};
  }
  return out;
}

Result<void> Replay::dry_run(const std::vector<ReplayPart>& parts) {
  std::string snapshot = spec_.filter.snapshot;
  if (snapshot.empty()) {
    auto made = letters_->store->snapshot(spec_.filter);
    if (!made) return std::move(made).failure();
    snapshot = std::move(made).value();
  }
  LetterFilter first = spec_.filter;
  first.snapshot = snapshot;
  auto count = letters_->store->count(first);
  if (!count) return std::move(count).failure();
  many_ = *count;
  first.limit =
      std::min<std::size_t>(shown_letters, first.limit == 0 ? shown_letters : first.limit);
  auto found = letters_->store->list(first);
  if (!found) return std::move(found).failure();
  print_plan(parts, snapshot, *found);
  return {};
}

void Replay::print_plan(const std::vector<ReplayPart>& parts, const std::string& snapshot,
                        const std::vector<DeadLetter>& first) const {
  const Masker& masker = letters_->masker;
  if (globals_.json()) {
    Json j;
    j["dry_run"] = true;
    j["snapshot"] = snapshot;
    j["count"] = many_;
    j["first"] = Json::array();
    for (const DeadLetter& l : first) j["first"].push_back(letter_json(l));
    print_json("dlq.replay", std::move(j), masker);
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const DeadLetter& l : first) {
    rows.push_back({std::to_string(l.id), l.origin.text() + "@" + std::to_string(l.offset.value),
                    l.target, std::string(name_of(l.cls)), l.error});
  }
  if (!rows.empty()) {
    std::cout << masker.text(
        table({"id", "record", "target", "class", "error"}, rows, {1, 0, 0, 0, 0}));
  }
  if (many_ > first.size()) {
    std::cout << "... and " << with_separators(many_ - first.size())
              << " more: flow dlq list --each" << masker.text(letters_->words) << " --snapshot "
              << snapshot << '\n';
  }
  std::cout << letters_text(many_) << " would be replayed; nothing was changed\n"
            << doubt(parts) << "just these, though new ones arrive: flow dlq replay"
            << masker.text(letters_->words) << " --snapshot " << snapshot << '\n';
}

// What a crash in the middle of a replay may do twice.
std::string Replay::doubt(const std::vector<ReplayPart>& parts) const {
  std::string out;
  for (const ReplayPart& p : parts) {
    const TargetSpec& t = p.pipeline.targets.front();
    if (t.mode == Mode::merge) continue;
    out += t.label +
           ": letters are settled after they are written; a crash between the two sends at most " +
           "one batch of " + with_separators(replay_batch(p.pipeline)) + " again\n";
  }
  return out;
}

Pipeline Replay::to_topic() const {
  Pipeline p = letters_->loaded.pipeline;
  TargetSpec spec;
  spec.kind = "kafka";
  spec.topic = options_.to_topic;
  spec.label = "kafka:" + options_.to_topic;
  spec.brokers = !options_.brokers.empty() ? options_.brokers : p.source.kafka.brokers;
  if (options_.brokers.empty()) spec.properties = p.source.kafka.properties;
  p.targets = {spec};
  p.columns.clear();
  p.transform.clear();
  p.format = FormatKind::raw;
  return p;
}

}  // namespace flow
