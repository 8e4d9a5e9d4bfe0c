#include "cli/dlq.h"

#include <algorithm>
#include <ctime>
#include <iostream>
#include <pwd.h>
#include <unistd.h>

#include "connectors/registry.h"
#include "core/base64.h"
#include "core/cast_text.h"
#include "core/clock.h"
#include "core/units.h"
#include "state/state.h"

namespace flow {

namespace {

Failure usage(std::string flag, std::string what, std::string hint) {
  return {.cls = FailureClass::setup,
          .where = std::move(flag),
          .what = std::move(what),
          .hint = std::move(hint),
          .exit = ExitCode::usage};
}

Result<std::int64_t> time_of(const std::string& flag, const std::string& text) {
  std::tm tm{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &tm);
  if (end != nullptr && *end == '\0') return std::int64_t{timegm(&tm)} * 1000;
  auto back = parse_duration(text);
  if (back) return wall_ms() - back->count();
  return usage(flag, "\"" + text + "\" is no time",
               "write 2026-01-31T09:30:00Z, or a duration back from now such as 2h");
}

template <class E>
std::optional<E> named(const std::string& text, E last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name_of(static_cast<E>(i)) == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

void put_bytes(Json& j, const char* name, const std::optional<std::string>& bytes) {
  if (!bytes) {
    j[name] = nullptr;
  } else if (valid_utf8(*bytes)) {
    j[name] = *bytes;
  } else {
    j[std::string(name) + "_base64"] = to_base64(*bytes);
  }
}

std::optional<std::string> take_bytes(const Json& j, const std::string& name) {
  if (j.contains(name + "_base64")) return from_base64(j.at(name + "_base64").get<std::string>());
  if (!j.contains(name) || j.at(name).is_null()) return std::nullopt;
  return j.at(name).get<std::string>();
}

}  // namespace

void add_letter_flags(CLI::App& c, Globals& globals, LetterFlags& f) {
  c.add_option("FILE", f.file,
               "The pipeline file whose letters are meant; default: all of the state");
  c.add_option("--id", f.ids, "This letter; repeatable")->allow_extra_args(false);
  c.add_option("--topic", f.topic, "Letters of records from this topic (or file)");
  c.add_option("--pipeline", f.pipeline, "Letters of this pipeline");
  c.add_option("--class", f.cls, "Letters of this failure class, e.g. invalid");
  c.add_option("--target", f.target, "Letters that this target refused");
  c.add_option("--stage", f.stage,
               "Letters that failed at this stage: decode, transform, cast or target");
  c.add_option("--key", f.key, "Letters with this message key");
  c.add_option("--since", f.since,
               "Letters that failed last at this time or later: a time, or 2h for two hours back");
  c.add_option("--until", f.until, "Letters that failed last before this time");
  c.add_option("--status", f.status,
               "Letters in this state: pending, replaying, replayed, parked, discarded");
  c.add_option("--snapshot", f.snapshot,
               "Letters of this snapshot, as flow dlq replay --dry-run took it");
  c.add_option("--limit", f.limit, "At most this many letters")->check(positive_count());
  add_set_flag(c, globals);
  add_state_flag(c, globals);
}

Result<LetterFilter> filter_of(const LetterFlags& f) {
  LetterFilter filter;
  filter.ids = f.ids;
  filter.topic = f.topic;
  filter.pipeline = f.pipeline;
  filter.target = f.target;
  filter.stage = f.stage;
  filter.snapshot = f.snapshot;
  filter.limit = f.limit;
  filter.key = f.key;
  if (!f.cls.empty()) {
    filter.cls = named(f.cls, FailureClass::defect);
    if (!filter.cls)
      return usage("--class", "no failure class " + f.cls, "flow explain --errors lists them");
  }
  if (!f.status.empty()) {
    filter.state = named(f.status, LetterState::discarded);
    if (!filter.state) {
      return usage("--status", "no state " + f.status,
                   "pending, replaying, replayed, parked or discarded");
    }
  }
  if (!f.since.empty()) {
    auto t = time_of("--since", f.since);
    if (!t) return std::move(t).failure();
    filter.since_ms = *t;
  }
  if (!f.until.empty()) {
    auto t = time_of("--until", f.until);
    if (!t) return std::move(t).failure();
    filter.until_ms = *t;
  }
  return filter;
}

Result<std::unique_ptr<Letters>> open_letters(const Globals& globals, const LetterFlags& flags,
                                              StateAccess access) {
  auto letters = std::make_unique<Letters>();
  if (!flags.file.empty()) letters->words += " " + flags.file;
  if (!globals.state.empty()) letters->words += " --state " + globals.state;
  if (!flags.file.empty()) {
    letters->loaded = load(globals, flags.file);
    const auto& faults = letters->loaded.faults;
    letters->masker = masker_of(letters->loaded);
    for (const ConfigFault& f : faults) {
      std::cerr << letters->masker.text(fault_text(f)) << '\n';
    }
    if (!faults.empty()) {
      return Failure{
          .cls = FailureClass::setup,
          .where = flags.file,
          .what = std::to_string(faults.size()) + (faults.size() == 1 ? " fault" : " faults"),
          .hint = "mend what is named above; flow check lists it too"};
    }
  } else {
    auto url = resolve_state(globals.state);
    if (!url) return std::move(url).failure();
    letters->loaded.pipeline.state = *url;
    letters->loaded.secrets = secrets_of_url(*url);
  }
  letters->masker = masker_of(letters->loaded);
  auto log = open_log(globals);
  if (!log) return std::move(log).failure();
  letters->log = std::move(log).value();
  for (const std::string& s : letters->loaded.secrets) letters->log->masker().add(s);
  auto state = open_state(letters->loaded.pipeline.state, access, *letters->log);
  if (!state) return std::move(state).failure();
  letters->state = std::move(state).value();
  letters->context.pipeline = &letters->loaded.pipeline;
  letters->context.log = letters->log.get();
  letters->context.state = letters->state.get();
  auto store = open_dead_letters(letters->context, *letters->state);
  if (!store) return std::move(store).failure();
  letters->store = std::move(store).value();
  return letters;
}

std::string acting_user() {
  const passwd* user = getpwuid(geteuid());
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return (user != nullptr ? std::string(user->pw_name) : std::to_string(geteuid())) + "@" + host;
}

Result<void> confirm(std::uint64_t letters, std::uint64_t without_asking, const std::string& verb,
                     bool yes) {
  if (yes || letters <= without_asking) return {};
  const std::string what = verb + " " + letters_text(letters);
  if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
    std::cerr << "flow: " << what << "? [y/N] " << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    if (answer == "y" || answer == "yes") return {};
    return usage("flow dlq", "nothing was changed", "answer y, or give --yes");
  }
  return usage("flow dlq", "this would " + what, "give --yes to do so");
}

std::string letters_text(std::uint64_t count) {
  return with_separators(count) + (count == 1 ? " letter" : " letters");
}

Result<std::uint64_t> for_each_letter(DeadLetterStore& store, LetterFilter filter,
                                      const EachLetter& each) {
  constexpr std::size_t page_bytes = std::size_t{1} << 20;
  constexpr std::size_t page_max = 5'000;
  const std::uint64_t wanted = filter.limit;
  std::uint64_t done = 0;
  std::size_t page = 100;  // before the size of the letters is known
  for (;;) {
    filter.limit = page;
    if (wanted != 0) filter.limit = std::min<std::uint64_t>(page, wanted - done);
    if (filter.limit == 0) return done;
    auto letters = store.list(filter);
    if (!letters) return std::move(letters).failure();
    std::size_t bytes = 0;
    for (const DeadLetter& l : *letters) {
      if (auto r = each(l); !r) return std::move(r).failure();
      bytes += (l.value ? l.value->size() : 0) + 200;
    }
    done += letters->size();
    if (letters->size() < filter.limit) return done;
    filter.after = letters->back().id;
    page = std::clamp<std::size_t>(page_bytes * letters->size() / bytes, 1, page_max);
  }
}

Json letter_json(const DeadLetter& l) {
  Json j;
  j["id"] = l.id;
  j["pipeline"] = l.pipeline;
  j["version"] = l.version;
  j["target"] = l.target;
  j["topic"] = l.origin.topic;
  j["partition"] = l.origin.partition;
  j["offset"] = l.offset.value;
  j["timestamp_ms"] = l.timestamp_ms;
  put_bytes(j, "key", l.key);
  put_bytes(j, "value", l.value);
  j["headers"] = Json::array();
  for (const LetterHeader& h : l.headers) {
    Json header;
    put_bytes(header, "name", h.name);
    put_bytes(header, "value", h.value);
    j["headers"].push_back(std::move(header));
  }
  j["stage"] = l.stage;
  j["class"] = name_of(l.cls);
  j["code"] = l.code;
  j["error"] = l.error;
  j["attempts"] = l.attempts;
  j["first_failed"] = rfc3339(l.first_failed_ms);
  j["last_failed"] = rfc3339(l.last_failed_ms);
  j["first_failed_ms"] = l.first_failed_ms;
  j["last_failed_ms"] = l.last_failed_ms;
  j["run"] = l.run_id;
  j["operation_id"] = l.operation_id;
  j["status"] = name_of(l.state);
  j["replays"] = l.replays;
  return j;
}

Result<DeadLetter> letter_of_json(const Json& j) {
  try {
    DeadLetter l;
    l.pipeline = j.at("pipeline").get<std::string>();
    l.version = j.value("version", "");
    l.target = j.at("target").get<std::string>();
    l.origin = {j.at("topic").get<std::string>(), j.at("partition").get<std::int32_t>()};
    l.offset = {j.at("offset").get<std::int64_t>()};
    l.timestamp_ms = j.value("timestamp_ms", std::int64_t{-1});
    l.key = take_bytes(j, "key");
    l.value = take_bytes(j, "value");
    for (const Json& h : j.value("headers", Json::array())) {
      l.headers.push_back({take_bytes(h, "name").value_or(""), take_bytes(h, "value")});
    }
    l.stage = j.at("stage").get<std::string>();
    const auto cls = named(j.at("class").get<std::string>(), FailureClass::defect);
    if (!cls) throw std::runtime_error("no failure class " + j.at("class").get<std::string>());
    l.cls = *cls;
    l.code = j.value("code", "");
    l.error = j.value("error", "");
    l.attempts = j.value("attempts", std::int64_t{1});
    l.first_failed_ms = j.at("first_failed_ms").get<std::int64_t>();
    l.last_failed_ms = j.at("last_failed_ms").get<std::int64_t>();
    l.run_id = j.value("run", "");
    l.operation_id = j.value("operation_id", "");
    return l;
  } catch (const std::exception& e) {
    return Failure{.cls = FailureClass::setup,
                   .what = std::string("is no exported letter: ") + e.what(),
                   .hint = "flow dlq export writes the form that is read here",
                   .exit = ExitCode::data};
  }
}

void add_dlq(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* dlq = app.add_subcommand("dlq", "Looks at dead letters and brings them back");
  dlq->footer("flow dlq list && flow dlq replay orders.yaml --topic orders");
  dlq->require_subcommand(1);
  add_dlq_list(*dlq, globals, action);
  add_dlq_show(*dlq, globals, action);
  add_dlq_move(*dlq, globals, action);
  add_dlq_change(*dlq, globals, action);
  add_dlq_replay(*dlq, globals, action);
}

}  // namespace flow
