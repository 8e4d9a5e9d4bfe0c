#include <algorithm>
#include <iostream>

#include "cli/assemble.h"
#include "cli/dlq.h"
#include "cli/letter_edit.h"
#include "cli/progress.h"
#include "cli/replay_source.h"
#include "cli/signals.h"
#include "core/clock.h"

namespace flow {

namespace {

constexpr std::uint64_t without_asking = 100;

StopSignal stop_signal;  // reached by the signal handler

struct ReplayOptions {
  LetterFlags letters;
  std::string snapshot;
  std::string rate;
  std::string to_topic;
  std::string brokers;
  std::vector<std::string> patches;
  std::string edits;
  std::string on_poison = "park";
  bool dry_run = false;
  bool yes = false;
};

// A target whose letters go to the replay, not into its own transaction.
class ReplayTarget final : public Target {
 public:
  explicit ReplayTarget(std::unique_ptr<Target> target) : target_(std::move(target)) {}
  const TargetSpec& spec() const override { return target_->spec(); }
  Result<TargetSchema> prepare(const std::vector<ColumnSpec>& c) override {
    return target_->prepare(c);
  }
  Result<void> start(const Columns& p, const std::optional<TargetMark>& m) override {
    return target_->start(p, m);
  }
  Result<void> write(const Batch& b, const RowSet& r) override { return target_->write(b, r); }
  Result<std::vector<RecordFailure>> write_around(const Batch& b, const RowSet& r,
                                                  const Aside& a) override {
    return target_->write_around(b, r, a);
  }
  bool keeps_letters() const override { return false; }
  std::optional<std::string> mark() const override { return target_->mark(); }
  void cancel() noexcept override { target_->cancel(); }
  void close() override { target_->close(); }

 private:
  std::unique_ptr<Target> target_;
};

Failure usage(std::string where, std::string what, std::string hint) {
  return {.cls = FailureClass::setup,
          .where = std::move(where),
          .what = std::move(what),
          .hint = std::move(hint),
          .exit = ExitCode::usage};
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

// One `flow dlq replay`.
class Replay {
 public:
  Replay(Globals& globals, ReplayOptions& options) : globals_(globals), options_(options) {}

  int go() {
    auto r = prepare();
    if (r) r = options_.dry_run ? dry_run() : replay();
    if (!r) return report_failure(globals_, r.failure(), letters_ ? letters_->masker : Masker());
    return exit_;
  }

 private:
  Result<void> prepare();
  Result<void> dry_run();
  Result<void> replay();
  Result<void> replay_to(const Pipeline& pipeline, const std::string& target);
  Result<std::vector<std::string>> targets();
  Pipeline to_topic() const;
  void print_counts();

  Globals& globals_;
  ReplayOptions& options_;
  std::unique_ptr<Letters> letters_;
  ReplaySpec spec_;
  std::unique_ptr<Lock> lock_;
  ReplayCounts total_;
  int exit_ = 0;
};

Result<void> Replay::prepare() {
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
  spec_.filter.snapshot = options_.snapshot;
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
  auto letters = open_letters(globals_, options_.letters, StateAccess::read_write);
  if (!letters) return std::move(letters).failure();
  letters_ = std::move(letters).value();
  const Pipeline& pipeline = letters_->loaded.pipeline;
  if (spec_.filter.pipeline.empty()) spec_.filter.pipeline = pipeline.name;
  spec_.attempts_max = pipeline.dlq.max_attempts;
  spec_.who = acting_user();
  return {};
}

Result<void> Replay::dry_run() {
  LetterFilter filter = spec_.filter;
  auto found = letters_->store->list(filter);
  if (!found) return std::move(found).failure();
  std::string snapshot = options_.snapshot;
  if (snapshot.empty()) {
    auto made = letters_->store->snapshot(filter);
    if (!made) return std::move(made).failure();
    snapshot = std::move(made).value();
  }
  if (globals_.json()) {
    Json j;
    j["dry_run"] = true;
    j["count"] = found->size();
    j["snapshot"] = snapshot;
    j["ids"] = Json::array();
    for (const DeadLetter& l : *found) j["ids"].push_back(l.id);
    print_json("dlq.replay", std::move(j), letters_->masker);
    return {};
  }
  constexpr std::size_t shown = 20;
  for (std::size_t i = 0; i < std::min(shown, found->size()); ++i) {
    const DeadLetter& l = (*found)[i];
    std::cout << l.id << "  " << l.origin.text() << "@" << l.offset.value << "  " << l.target
              << "  " << letters_->masker.text(l.error) << '\n';
  }
  if (found->size() > shown)
    std::cout << "... and " << with_separators(found->size() - shown) << " more\n";
  std::cout << with_separators(found->size()) << (found->size() == 1 ? " letter" : " letters")
            << " would be replayed; nothing was changed. Just these, though new ones arrive:\n  "
               "flow dlq replay "
            << (options_.letters.file.empty() ? "--to-topic " + options_.to_topic
                                              : options_.letters.file)
            << " --snapshot " << snapshot << '\n';
  return {};
}

// The labels of the targets that the letters failed for; each must be one of the pipeline's.
Result<std::vector<std::string>> Replay::targets() {
  auto groups = letters_->store->groups(spec_.filter);
  if (!groups) return std::move(groups).failure();
  std::vector<std::string> out;
  for (const LetterGroup& g : *groups) {
    if (std::find(out.begin(), out.end(), g.target) == out.end()) out.push_back(g.target);
  }
  const Pipeline& pipeline = letters_->loaded.pipeline;
  for (const std::string& label : out) {
    const bool there = std::any_of(pipeline.targets.begin(), pipeline.targets.end(),
                                   [&](const TargetSpec& t) { return t.label == label; });
    if (there) continue;
    return Failure{
        .cls = FailureClass::setup,
        .where = options_.letters.file,
        .what = "letters failed for target " + label + ", which the pipeline no longer has",
        .hint = "narrow the letters with --target, or give the target that label"};
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

Result<void> Replay::replay() {
  auto count = letters_->store->count(spec_.filter);
  if (!count) return std::move(count).failure();
  std::uint64_t many = *count;
  if (spec_.filter.limit != 0) many = std::min<std::uint64_t>(many, spec_.filter.limit);
  if (auto ok = confirm(many, without_asking, "replay", options_.yes); !ok) return ok;
  spec_.id = "replay-" + make_run_id(wall_ms());
  auto lock = letters_->state->lock("replay/" + spec_.id, Millis{0});
  if (!lock) return std::move(lock).failure();
  lock_ = std::move(lock).value();
  install_signals(stop_signal);
  Result<void> done;
  if (!options_.to_topic.empty()) {
    done = replay_to(to_topic(), "");
  } else {
    auto labels = targets();
    if (!labels) return std::move(labels).failure();
    for (const std::string& label : *labels) {
      Pipeline one = letters_->loaded.pipeline;
      std::erase_if(one.targets, [&](const TargetSpec& t) { return t.label != label; });
      done = replay_to(one, label);
      if (!done || stop_signal.requested()) break;
    }
  }
  print_counts();
  if (done && total_.failed + total_.parked > 0) exit_ = static_cast<int>(ExitCode::data);
  return done;
}

Result<void> Replay::replay_to(const Pipeline& given, const std::string& target) {
  Pipeline pipeline = given;
  pipeline.on_error = OnError::dlq;
  pipeline.dlq.of_batch_percent = 0;  // these have failed before: a flood of them is no news
  pipeline.dlq.in_a_row = 0;
  pipeline.dlq.per_run = 0;
  pipeline.source.batch.records = std::min<std::size_t>(pipeline.source.batch.records, 10'000);
  ReplaySpec spec = spec_;
  if (!target.empty()) spec.filter.target = target;
  auto owned = std::make_unique<ReplaySource>(*letters_->store, std::move(spec));
  ReplaySource& source = *owned;
  Context context = letters_->context;
  context.pipeline = &pipeline;
  context.run_id = spec_.id;
  SourceParts parts;
  parts.positions = owned.get();
  parts.source = std::move(owned);
  auto assembly = assemble(context, stop_signal, std::move(parts));
  if (!assembly) return std::move(assembly).failure();
  for (auto& t : assembly->targets) t = std::make_unique<ReplayTarget>(std::move(t));
  ProgressLine line(!globals_.quiet);
  letters_->log->set_before_line([&] { line.wipe(); });
  LoopParts loop;
  loop.pipeline = &pipeline;
  loop.source = &source;
  loop.positions = &source;
  loop.targets = assembly->target_pointers();
  loop.mapper = &*assembly->mapper;
  loop.log = letters_->log.get();
  loop.stop = &stop_signal;
  loop.letters = &source;
  loop.run_id = spec_.id;
  loop.on_tick = [&](const LoopProgress& p) { line.draw(p); };
  const LoopEnd end = run_loop(loop);
  line.wipe();
  letters_->log->set_before_line({});
  assembly->close();
  const ReplayCounts counts = source.counts();
  total_.replayed += counts.replayed;
  total_.failed += counts.failed;
  total_.parked += counts.parked;
  auto released = source.release();
  if (end.failure) return *end.failure;
  return released;
}

void Replay::print_counts() {
  if (globals_.json()) {
    Json j;
    j["dry_run"] = false;
    j["replay"] = spec_.id;
    j["replayed"] = total_.replayed;
    j["failed"] = total_.failed;
    j["parked"] = total_.parked;
    print_json("dlq.replay", std::move(j), letters_->masker);
    return;
  }
  std::cout << with_separators(total_.replayed) << " replayed, " << with_separators(total_.failed)
            << " failed again, " << with_separators(total_.parked) << " parked (" << spec_.id
            << ")\n";
  if (total_.failed + total_.parked > 0) std::cout << "flow dlq list --each shows why\n";
}

}  // namespace

void add_dlq_replay(CLI::App& dlq, Globals& globals, Action& action) {
  auto o = std::make_shared<ReplayOptions>();
  CLI::App* c = add_command(dlq, globals, "replay",
                            "Sends dead letters through their pipeline again, as its file is now",
                            "flow dlq replay orders.yaml --topic orders --dry-run");
  add_letter_flags(*c, globals, o->letters);
  c->add_flag("-n,--dry-run", o->dry_run,
              "Show which letters, how many, and a snapshot id; change nothing");
  c->add_option("--snapshot", o->snapshot, "Just the letters of this snapshot");
  c->add_option("--rate", o->rate, "At most this many letters a second, e.g. 500/s");
  c->add_option("--to-topic", o->to_topic,
                "Send the letters as they were to this topic instead of the targets");
  c->add_option("--brokers", o->brokers, "The brokers of --to-topic; default: the source's");
  c->add_option("--patch", o->patches, "Change a field first: '$.status = \"paid\"'; repeatable")
      ->allow_extra_args(false);
  c->add_option("--edit", o->edits,
                "Replace values first: a file of JSON lines {\"id\": 17, \"value\": ...}");
  c->add_option("--on-poison", o->on_poison,
                "A letter that fails again: stop, park (after its last attempt), or park_key with "
                "all later ones of its key")
      ->check(CLI::IsMember({"stop", "park", "park_key"}));
  c->add_flag("-y,--yes", o->yes, "Replay more than 100 letters without asking");
  c->callback(
      [&globals, &action, o] { action = [&globals, o] { return Replay(globals, *o).go(); }; });
}

}  // namespace flow
