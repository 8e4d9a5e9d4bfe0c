#include "cli/replay.h"

namespace flow {

void add_dlq_replay(CLI::App& dlq, Globals& globals, Action& action) {
  auto o = std::make_shared<ReplayOptions>();
  CLI::App* c = add_command(dlq, globals, "replay",
                            "Sends dead letters through their pipeline again, as its file is now",
                            "flow dlq replay orders.yaml --topic orders --dry-run");
  add_letter_flags(*c, globals, o->letters);
  c->add_flag("-n,--dry-run", o->dry_run,
              "Show which letters, how many, and a snapshot id; change nothing");
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
  c->add_option("--failure-point", o->failure_points,
                "For drills: NAME[@k]=kill|term|error:CLASS at a durable boundary; repeatable")
      ->allow_extra_args(false);
  c->add_flag("-y,--yes", o->yes, "Replay more than 100 letters without asking");
  c->callback(
      [&globals, &action, o] { action = [&globals, o] { return Replay(globals, *o).go(); }; });
}

}  // namespace flow
