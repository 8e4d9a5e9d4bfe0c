#include <iostream>
#include <unistd.h>

#include "cli/assemble.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "connectors/registry.h"
#include "core/clock.h"
#include "core/failure_point.h"
#include "core/units.h"
#include "state/state.h"

namespace flow {

namespace {

StopSignal stop_signal;  // reached by the signal handler

struct RunOptions {
  std::string file;
  bool until_end = false;
  bool follow = false;
  bool dry_run = false;
  std::uint64_t limit = 0;
  std::string max_time;
  std::string drain_timeout;
  std::string wait_lock = "0s";
  std::vector<std::string> failure_points;
};

Failure usage(std::string what, std::string hint) {
  return {.cls = FailureClass::setup,
          .where = "flow run",
          .what = std::move(what),
          .hint = std::move(hint),
          .exit = ExitCode::usage};
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

Json dead_json(const DeadCounts& dead) {
  Json j = Json::object();
  for (std::size_t c = 0; c < dead.size(); ++c) {
    if (dead[c] > 0) j[std::string(name_of(static_cast<FailureClass>(c)))] = dead[c];
  }
  return j;
}

// One `flow run`: owns what lives from the first check to the last line.
class Run {
 public:
  Run(Globals& globals, RunOptions& options) : globals_(globals), options_(options) {}

  int go() {
    auto loaded = load_or_report(globals_, options_.file);
    if (!loaded) return static_cast<int>(ExitCode::configuration);
    pipeline_ = std::move(loaded->pipeline);
    masker_ = masker_of(*loaded);
    if (auto r = prepare(); !r) return report_failure(globals_, r.failure(), masker_);
    for (const std::string& s : loaded->secrets) log_->masker().add(s);
    install_signals(stop_signal);
    auto outcome = options_.dry_run ? dry_run() : real_run();
    if (!outcome) return report_failure(globals_, outcome.failure(), masker_);
    return finish(*outcome);
  }

 private:
  Result<void> prepare();
  Result<void> take_locks();
  Result<LoopEnd> real_run();
  Result<LoopEnd> dry_run();
  LoopEnd loop(Assembly& assembly);
  Result<LoopEnd> assemble_and_loop();
  void tick(const LoopProgress& progress);
  void fill_row(const LoopProgress& progress);
  int finish(const LoopEnd& end);
  void print_summary(const LoopEnd& end) const;
  std::string dead_letter_lines(const DeadCounts& dead) const;

  Globals& globals_;
  RunOptions& options_;
  Pipeline pipeline_;
  Masker masker_;
  Contract contract_;
  LoopLimits limits_;
  Millis wait_lock_{0};
  std::unique_ptr<EventLog> log_;
  std::unique_ptr<ProgressLine> progress_;
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<Lock> lock_;
  std::unique_ptr<DeadLetterStore> letters_;
  Context context_;
  RunRow row_;
  Monotonic::time_point started_ = Monotonic::now();
  Monotonic::time_point heartbeat_ = Monotonic::now();
  bool heartbeat_failed_ = false;
};

Result<void> Run::prepare() {
  const auto duration = [](const std::string& text, std::string_view flag) -> Result<Millis> {
    auto d = parse_duration(text);
    if (!d) return usage(std::string(flag) + ": " + d.failure().what, d.failure().hint);
    return d;
  };
  if (!options_.max_time.empty()) {
    auto d = duration(options_.max_time, "--max-time");
    if (!d) return std::move(d).failure();
    limits_.time = *d;
  }
  if (!options_.drain_timeout.empty()) {
    auto d = duration(options_.drain_timeout, "--drain-timeout");
    if (!d) return std::move(d).failure();
    pipeline_.drain_timeout = *d;
  }
  auto wait = duration(options_.wait_lock, "--wait-lock");
  if (!wait) return std::move(wait).failure();
  wait_lock_ = *wait;
  if (options_.limit > 0) limits_.records = options_.limit;
  const bool from_kafka = pipeline_.source.kind == "kafka";
  if (options_.follow && from_kafka)
    return usage("--follow is for file sources", "a Kafka source follows by itself");
  if (options_.follow && options_.until_end)
    return usage("--follow and --until-end exclude each other", "choose one");
  for (const TargetSpec& t : pipeline_.targets) {
    if (t.kind == "stdout" && globals_.json()) {
      return usage("--output json and a stdout target would mix",
                   "leave --output out, or write to a file target");
    }
  }
  for (const std::string& p : options_.failure_points) {
    if (auto r = failure_point::arm(p); !r) return r;
  }
  auto contract = derive_contract(pipeline_);
  if (!contract) return std::move(contract).failure();
  contract_ = std::move(contract).value();
  auto log = open_log(globals_);
  if (!log) return std::move(log).failure();
  log_ = std::move(log).value();
  progress_ = std::make_unique<ProgressLine>(!globals_.quiet);
  log_->set_before_line([this] { progress_->wipe(); });
  context_.pipeline = &pipeline_;
  context_.log = log_.get();
  context_.dry_run = options_.dry_run;
  context_.until_end = options_.until_end || options_.dry_run || (!from_kafka && !options_.follow);
  context_.follow = options_.follow;
  return {};
}

// A file pipeline runs once at a time. A Kafka pipeline may run as many times as it likes: each run
// takes the lowest free slot, and the slot names its group member, so that a restart after a crash
// gets its partitions back at once.
Result<void> Run::take_locks() {
  if (pipeline_.source.kind != "kafka") {
    auto lock = state_->lock("pipeline/" + pipeline_.name, wait_lock_);
    if (!lock) return std::move(lock).failure();
    lock_ = std::move(lock).value();
    if (lock_) return {};
    return Failure{.cls = FailureClass::transient,
                   .where = "pipeline " + pipeline_.name,
                   .what = "another run of it is under way",
                   .hint = "wait for it with --wait-lock 10m",
                   .exit = ExitCode::temporary};
  }
  const std::string& group = pipeline_.source.kafka.group;
  constexpr int slots = 1024;
  for (int slot = 0; slot < slots; ++slot) {
    auto lock = state_->lock("member/" + group + "/" + std::to_string(slot), Millis{0});
    if (!lock) return std::move(lock).failure();
    if (*lock == nullptr) continue;
    lock_ = std::move(lock).value();
    context_.instance_id = group + "-" + state_->id().substr(0, 8) + "-" + std::to_string(slot);
    return {};
  }
  return Failure{.cls = FailureClass::transient,
                 .where = "group " + group,
                 .what = "all 1024 member slots are taken",
                 .hint = "stop a replica",
                 .exit = ExitCode::temporary};
}

Result<LoopEnd> Run::real_run() {
  auto state = open_state(pipeline_.state, StateAccess::read_write, *log_);
  if (!state) return std::move(state).failure();
  state_ = std::move(state).value();
  if (auto r = take_locks(); !r) return r.failure();
  context_.state = state_.get();
  row_.pipeline = pipeline_.name;
  row_.version = pipeline_.digest;
  row_.contract = masker_.text(contract_.line());
  row_.host = host_name();
  row_.pid = getpid();
  row_.started_ms = row_.heartbeat_ms = wall_ms();
  row_.id = context_.run_id = make_run_id(row_.started_ms);
  if (auto r = state_->open_run(row_); !r) return r.failure();
  log_->add_field("run", row_.id);
  log_->event(Level::info, "run.started",
              {{"pipeline", pipeline_.name},
               {"contract", contract_.line()},
               {"state", state_->location()}});
  auto end = [&]() -> Result<LoopEnd> {
    if (auto f = reach(Point::open_run_after)) return *f;
    return assemble_and_loop();
  }();
  if (!end) {
    LoopEnd failed;
    failed.status = RunStatus::failed;
    failed.failure = std::move(end).failure();
    failed.progress.counts = row_.targets;
    end = std::move(failed);
  }
  if (auto f = reach(Point::close_run_before)) return *f;
  fill_row(end->progress);
  row_.status = end->status;
  row_.ended_ms = wall_ms();
  if (end->failure) row_.error = masker_.text(end->failure->text());
  if (auto r = state_->close_run(row_); !r && !end->failure) end->failure = r.failure();
  log_->event(Level::info, "run.ended",
              {{"status", std::string(name_of(end->status))}, {"read", std::to_string(row_.read)}});
  return end;
}

Result<LoopEnd> Run::dry_run() {
  auto state = open_state(pipeline_.state, StateAccess::read_only, *log_);
  if (!state) return std::move(state).failure();
  state_ = std::move(state).value();
  context_.state = state_.get();
  return assemble_and_loop();
}

Result<LoopEnd> Run::assemble_and_loop() {
  if (pipeline_.on_error == OnError::dlq && !options_.dry_run) {
    auto letters = open_dead_letters(context_, *state_);
    if (!letters) return std::move(letters).failure();
    letters_ = std::move(letters).value();
  }
  auto assembly = assemble(context_, stop_signal);
  if (!assembly) {
    if (!stop_signal.requested() || !assembly.failure().retryable())
      return std::move(assembly).failure();
    LoopEnd drained;
    drained.status = RunStatus::drained;
    return drained;
  }
  for (const std::string& note : assembly->notes)
    log_->event(Level::info, "target.created", {{"ddl", note}});
  LoopEnd end = loop(*assembly);
  assembly->close();
  return end;
}

LoopEnd Run::loop(Assembly& assembly) {
  LoopParts parts;
  parts.pipeline = &pipeline_;
  parts.source = assembly.source.source.get();
  parts.positions = assembly.source.positions;
  parts.targets = assembly.target_pointers();
  parts.mapper = &*assembly.mapper;
  parts.log = log_.get();
  parts.stop = &stop_signal;
  parts.limits = limits_;
  parts.marks = assembly.marks;
  parts.letters = letters_.get();
  parts.state = options_.dry_run ? nullptr : state_.get();
  parts.run_id = row_.id;
  parts.on_tick = [this](const LoopProgress& p) { tick(p); };
  return run_loop(parts);
}

void Run::tick(const LoopProgress& progress) {
  progress_->draw(progress);
  constexpr auto every = std::chrono::seconds(5);
  if (options_.dry_run || Monotonic::now() - heartbeat_ < every) return;
  heartbeat_ = Monotonic::now();
  fill_row(progress);
  const auto r = state_->heartbeat(row_);
  if (!r && !heartbeat_failed_)
    log_->event(Level::warn, "heartbeat.failed", {{"error", r.failure().text()}});
  heartbeat_failed_ = !r;
}

void Run::fill_row(const LoopProgress& progress) {
  row_.heartbeat_ms = wall_ms();
  row_.read = progress.read;
  row_.targets = progress.counts;
  row_.positions = progress.positions;
}

int Run::finish(const LoopEnd& end) {
  progress_->wipe();
  if (end.failure) print_failure(*end.failure, masker_);
  if (globals_.json()) {
    Json j;
    j["pipeline"] = pipeline_.name;
    j["run"] = options_.dry_run ? Json(nullptr) : Json(row_.id);
    j["dry_run"] = options_.dry_run;
    j["status"] = name_of(end.status);
    j["seconds"] = std::chrono::duration<double>(Monotonic::now() - started_).count();
    j["read"] = end.progress.read;
    Json targets = Json::array();
    for (const TargetCounts& t : end.progress.counts) {
      Json entry = counts_json(t.counts);
      entry["target"] = t.target;
      targets.push_back(std::move(entry));
    }
    j["targets"] = std::move(targets);
    j["dead_letters"] = dead_json(end.progress.dead);
    j["positions"] = spans_json(end.progress.positions);
    j["contract"] = contract_.line();
    j["error"] = end.failure ? failure_json(*end.failure) : Json(nullptr);
    print_json("run", std::move(j), masker_);
  } else {
    print_summary(end);
  }
  return end.failure ? static_cast<int>(end.failure->exit_code()) : 0;
}

void Run::print_summary(const LoopEnd& end) const {
  if (globals_.quiet && !end.failure) return;
  std::string out;
  const double seconds = std::chrono::duration<double>(Monotonic::now() - started_).count();
  for (const TargetCounts& t : end.progress.counts) {
    const Counts& c = t.counts;
    out += t.target + ": " + with_separators(c.read) + " read = " + with_separators(c.written) +
           " written + " + with_separators(c.filtered) + " filtered + " +
           with_separators(c.dropped) + " dropped + " + with_separators(c.dead) +
           " dead-lettered + " + with_separators(c.pending) + " pending";
    if (c.repeats > 0) out += "; up to " + with_separators(c.repeats) + " may be there twice";
    out += '\n';
  }
  out += dead_letter_lines(end.progress.dead);
  char rate[64];
  std::snprintf(rate, sizeof rate, "%.1f s, %s records/s", seconds,
                with_separators(static_cast<std::uint64_t>(static_cast<double>(end.progress.read) /
                                                           std::max(seconds, 0.001)))
                    .c_str());
  out += (options_.dry_run ? std::string("dry run") : "run " + row_.id) + " of " + pipeline_.name +
         ": " + std::string(name_of(end.status)) + " in " + rate;
  if (!options_.dry_run) out += "; state " + state_->location();
  if (end.progress.read == 0 && end.status == RunStatus::done)
    out += "; there was nothing new to read";
  if (options_.dry_run) out += "; nothing was written and no position moved";
  std::cerr << masker_.text(out) << std::endl;
}

// How many, of which class, and the command that shows them.
std::string Run::dead_letter_lines(const DeadCounts& dead) const {
  std::string classes;
  std::uint64_t all = 0;
  for (std::size_t c = 0; c < dead.size(); ++c) {
    if (dead[c] == 0) continue;
    all += dead[c];
    classes += (classes.empty() ? "" : ", ") + with_separators(dead[c]) + " " +
               std::string(name_of(static_cast<FailureClass>(c)));
  }
  if (all == 0) return "";
  const std::string count = with_separators(all) + (all == 1 ? " dead letter" : " dead letters");
  if (options_.dry_run) return count + " would be stored (" + classes + ")\n";
  std::string command = "flow dlq list " + options_.file + " --pipeline " + pipeline_.name;
  if (!globals_.state.empty()) command += " --state " + globals_.state;
  return count + " stored in this run (" + classes + "); look at them with: " + command + "\n";
}

}  // namespace

void add_run(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* c = add_command(app, globals, "run",
                            "Runs a pipeline: files end at their end, Kafka goes on until stopped",
                            "flow run orders.yaml --until-end");
  c->add_option("FILE", options->file, "The pipeline file")->required();
  c->add_flag("--until-end", options->until_end,
              "Stop when all that was there at the start is done");
  c->add_flag("--follow", options->follow, "Files: go on when more is written, rotated or added");
  c->add_option("--limit", options->limit, "Stop after this many records")
      ->check(CLI::PositiveNumber);
  c->add_option("--max-time", options->max_time, "Stop after this long, e.g. 10m");
  c->add_flag("-n,--dry-run", options->dry_run,
              "Read, transform and print rows; write nothing, move nothing");
  c->add_option("--drain-timeout", options->drain_timeout,
                "How long the batch in hand may take after a stop signal");
  c->add_option("--wait-lock", options->wait_lock,
                "How long to wait while another run of the same file pipeline is under way");
  c->add_option("--failure-point", options->failure_points,
                "For drills: NAME[@k]=kill|term|error:CLASS at a durable boundary; repeatable")
      ->allow_extra_args(false);
  add_set_flag(*c, globals);
  add_state_flag(*c, globals);
  c->callback([&globals, &action, options] {
    action = [&globals, options] { return Run(globals, *options).go(); };
  });
}

}  // namespace flow
