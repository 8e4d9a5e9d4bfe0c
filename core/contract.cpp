#include "core/contract.h"

#include <algorithm>

namespace flow {

namespace {

bool from_kafka(const Pipeline& p) { return p.source.kind == "kafka"; }

bool from_stdin(const Pipeline& p) {
  return p.source.kind == "file" &&
         std::find(p.source.file.paths.begin(), p.source.file.paths.end(), "-") !=
             p.source.file.paths.end();
}

std::string batch_bound(const Pipeline& p) {
  return "at most one batch per crash (" + std::to_string(p.source.batch.records) + " records or " +
         std::to_string(p.source.batch.bytes) + " bytes)";
}

std::string_view name_of(Delivery d) {
  switch (d) {
    case Delivery::at_least_once: return "at_least_once";
    case Delivery::exactly_once: return "exactly_once";
    case Delivery::automatic: return "auto";
  }
  return "auto";
}

// A file target is cut back to its mark; with a file source mark and position are one transaction
// of the state.
bool cut_exactly(const Pipeline& p, const TargetSpec& t) {
  return t.kind == "file" && !from_kafka(p);
}

TargetContract contract_of(const Pipeline& p, const TargetSpec& t) {
  TargetContract c;
  c.label = t.label;
  c.mode = t.mode == Mode::merge ? "merge" : "append";
  c.guarantee = "at_least_once";
  c.repeats = batch_bound(p);
  if (t.mode == Mode::merge) {
    c.guarantee = "at_least_once, idempotent";
    c.why =
        "rows are merged by key in one transaction a batch; a repeated batch leaves the same rows";
    c.repeats = "none that a reader of the table can see";
    c.needs = "the key identifies the row, and nothing else writes these rows";
    c.stops =
        "a repeated batch may show an older version of a row for as long as it takes to write it "
        "again";
  } else if (t.kind == "kafka") {
    c.why =
        "acks=all and an idempotent producer; each delivery report is checked before the position "
        "moves";
    c.needs = "consumers of the topic tolerate repeats";
    c.stops = "a crash between the flush and the position commit sends the batch again";
  } else if (cut_exactly(p, t)) {
    c.guarantee = "at_least_once, cut at restart";
    c.why =
        "synced at each batch; its length and the source position are one transaction of the state";
    c.repeats =
        "none after a restart: what was written past the last stored position is cut off first";
    c.needs = "nothing else writes the file";
    c.stops = "a reader of the file may see lines that a restart cuts off and writes again";
  } else if (t.kind == "file") {
    c.why =
        "synced at each batch; its length is stored in the state just before the position moves";
    c.needs = "nothing else writes the file";
    c.stops = "a crash between the two stores repeats the batch";
  } else if (t.kind == "stdout") {
    c.why =
        "written before the position moves; what the reader of the pipe does with it is not known";
    c.needs = "the reader of the pipe keeps what it was given";
    c.stops = "the pipe";
  } else {
    c.why = "rows of a batch are one transaction, committed before the position moves";
    c.needs = "repeats do not matter, or are removed downstream";
    c.stops = "a crash or a lost answer to COMMIT between the two commits writes the batch again";
  }
  if (from_stdin(p))
    c.stops += "; standard input has no position, so what a crashed run had not written is gone";
  return c;
}

std::vector<std::string> reasons_against_exactly_once(const Pipeline& p) {
  std::vector<std::string> reasons;
  if (from_stdin(p)) reasons.push_back("source: standard input cannot be read again");
  for (const TargetSpec& t : p.targets) {
    if (t.kind == "stdout") {
      reasons.push_back(t.label + ": a pipe keeps no position");
    } else if (t.kind == "kafka") {
      reasons.push_back(t.label + ": this version writes topics without transactions");
    } else if (t.kind == "file") {
      reasons.push_back(t.label + ": a file and the position are not one transaction");
    } else {
      reasons.push_back(t.label +
                        ": this version keeps no positions in the target's own transaction");
    }
  }
  if (p.targets.size() > 1) reasons.push_back("targets: several targets are not one transaction");
  return reasons;
}

std::string after_target(const Pipeline& p, const TargetSpec& t, bool done) {
  if (!done) return "nothing of the batch is there";
  if (t.mode == Mode::merge) return "written again, same result";
  if (cut_exactly(p, t)) return "cut off at the restart, written once";
  return "batch repeated";
}

void add_windows(const Pipeline& p, Contract& c) {
  const auto effects = [&](std::size_t done) {
    std::vector<std::string> out;
    for (std::size_t t = 0; t < p.targets.size(); ++t)
      out.push_back(after_target(p, p.targets[t], t < done));
    return out;
  };
  c.windows.push_back({"read, decode, transform", "nothing", effects(0)});
  if (p.on_error == OnError::dlq) {
    c.windows.push_back({"store_dead_letters",
                         "letters of records that do not map, but for those that a target keeps in "
                         "its own database with its rows; stored again they are not doubled",
                         effects(0)});
  }
  for (std::size_t t = 0; t < p.targets.size(); ++t) {
    c.windows.push_back(
        {"apply_to_targets: " + p.targets[t].label,
         "the batch in " + p.targets[t].label +
             (p.on_error == OnError::dlq ? ", and the letters of what it refused" : ""),
         effects(t + 1)});
  }
  c.windows.push_back({"commit_position", "the position after the batch",
                       std::vector<std::string>(p.targets.size(), "nothing is repeated")});
}

}  // namespace

Result<Contract> derive_contract(const Pipeline& p) {
  if (p.delivery == Delivery::exactly_once) {
    std::string what = "delivery: exactly_once cannot be had here:";
    for (const std::string& r : reasons_against_exactly_once(p)) what += " " + r + ";";
    what.pop_back();
    return Failure{.cls = FailureClass::setup,
                   .where = p.file,
                   .what = what,
                   .hint = "use at_least_once, with mode: merge where repeats must not show"};
  }
  for (const TargetSpec& t : p.targets) {
    const auto& topics = p.source.kafka.topics;
    if (t.kind == "kafka" && from_kafka(p) && t.brokers == p.source.kafka.brokers &&
        std::find(topics.begin(), topics.end(), t.topic) != topics.end()) {
      return Failure{.cls = FailureClass::setup,
                     .where = "target " + t.label,
                     .what = "topic " + t.topic +
                             " is read and written by the same pipeline: it would feed itself",
                     .hint = "write to another topic"};
    }
  }
  Contract c;
  c.asked = name_of(p.delivery);
  c.delivery = "at_least_once";
  if (from_kafka(p)) {
    c.source = "kafka, group " + p.source.kafka.group + ", read_committed";
    c.position_authority = "the broker (committed offsets of group " + p.source.kafka.group + ")";
    c.authority_why = "the group hands partitions over between replicas";
  } else if (from_stdin(p)) {
    c.source = "standard input";
    c.position_authority = "none";
    c.authority_why = "standard input cannot be read again";
  } else {
    c.source = "files";
    c.position_authority = "the state (positions by file identity and byte)";
    c.authority_why = "files keep no positions of their own";
  }
  c.order = {"read", "decode", "transform"};
  if (p.on_error == OnError::dlq) c.order.emplace_back("store_dead_letters");
  for (const TargetSpec& t : p.targets) {
    c.targets.push_back(contract_of(p, t));
    c.order.push_back("apply_to_targets: " + t.label);
  }
  c.order.push_back("commit_position");
  add_windows(p, c);
  return c;
}

std::string Contract::line() const {
  std::string out = delivery + "; position: " + position_authority;
  for (const TargetContract& t : targets) out += "; " + t.label + ": " + t.guarantee;
  return out;
}

}  // namespace flow
