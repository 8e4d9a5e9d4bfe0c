#pragma once
// What the dlq commands share: which letters (flags), which store, and how a letter is shown.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "core/dead_letter.h"
#include "core/registry.h"
#include "core/state.h"

namespace flow {

// The filter flags as typed. Times: RFC 3339 UTC, or a duration back from now ("2h").
struct LetterFlags {
  std::string file;
  std::vector<std::int64_t> ids;
  std::string topic, pipeline, cls, target, stage, since, until, status, snapshot;
  std::optional<std::string> key;
  std::size_t limit = 0;
};

// Adds FILE and the filter flags to a command.
void add_letter_flags(CLI::App& command, Globals& globals, LetterFlags& flags);
Result<LetterFilter> filter_of(const LetterFlags& flags);

// The store that the flags name: the pipeline file's, or the table of the state. Owner: the
// command.
struct Letters {
  LoadedPipeline loaded;
  Masker masker;
  std::unique_ptr<EventLog> log;
  std::unique_ptr<StateStore> state;
  std::unique_ptr<DeadLetterStore> store;
  Context context;
  std::string words;  // the file and --state as given, for commands that are shown: " orders.yaml"
};
Result<std::unique_ptr<Letters>> open_letters(const Globals& globals, const LetterFlags& flags,
                                              StateAccess access);

// Who acts, for the audit: user@host.
std::string acting_user();
// May this many letters be changed: yes was given, few enough, or a person says so on a terminal.
Result<void> confirm(std::uint64_t letters, std::uint64_t without_asking, const std::string& verb,
                     bool yes);

// Calls `each` with the letters of the filter, in the order of their ids; about a megabyte of them
// is in memory at a time. Stops at the first failure.
using EachLetter = std::function<Result<void>(const DeadLetter&)>;
Result<std::uint64_t> for_each_letter(DeadLetterStore& store, LetterFilter filter,
                                      const EachLetter& each);
// "1 letter", "2,000 letters".
std::string letters_text(std::uint64_t count);

Json letter_json(const DeadLetter& letter);  // payload as text when it is UTF-8, else base64
Result<DeadLetter> letter_of_json(const Json& json);

void add_dlq_list(CLI::App& dlq, Globals& globals, Action& action);
void add_dlq_show(CLI::App& dlq, Globals& globals, Action& action);
void add_dlq_move(CLI::App& dlq, Globals& globals, Action& action);  // export, import
void add_dlq_change(CLI::App& dlq, Globals& globals,
                    Action& action);  // discard, retry-parked, purge
void add_dlq_replay(CLI::App& dlq, Globals& globals, Action& action);

}  // namespace flow
