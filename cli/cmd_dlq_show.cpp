#include <iostream>

#include "cli/dlq.h"
#include "core/cast_text.h"
#include "core/clock.h"

namespace flow {

namespace {

std::string hex_dump(std::string_view bytes) {
  constexpr std::size_t per_line = 16;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += per_line) {
    char place[24];
    std::snprintf(place, sizeof place, "%08zx ", at);
    out += place;
    std::string text;
    for (std::size_t i = at; i < std::min(at + per_line, bytes.size()); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      char digits[4];
      std::snprintf(digits, sizeof digits, " %02x", byte);
      out += digits;
      text += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
    }
    out += "  " + text + '\n';
  }
  return out;
}

// How a payload is shown: pretty (JSON indented, other text as it is, else hex), raw, or hex.
std::string payload(const std::optional<std::string>& bytes, const std::string& form) {
  if (!bytes) return "(null)\n";
  if (form == "hex") return hex_dump(*bytes);
  if (form == "raw") return *bytes + '\n';
  const Json parsed = Json::parse(*bytes, nullptr, false);
  // Printed anew only when no number would change its digits.
  if (!parsed.is_discarded() && parsed.dump() == *bytes) return parsed.dump(2) + '\n';
  return valid_utf8(*bytes) ? *bytes + '\n' : hex_dump(*bytes);
}

std::string text_of(const DeadLetter& l, const std::vector<LetterAudit>& story,
                    const std::string& form) {
  const auto line = [](const std::string& name, const std::string& value) {
    return name + std::string(name.size() < 16 ? 16 - name.size() : 1, ' ') + value + '\n';
  };
  std::string out = line("letter", std::to_string(l.id) + ", " + std::string(name_of(l.state)));
  out += line("record", l.origin.text() + "@" + std::to_string(l.offset.value));
  if (l.timestamp_ms >= 0) out += line("timestamp", rfc3339(l.timestamp_ms));
  out += line("pipeline", l.pipeline + ", version " + l.version);
  out += line("target", l.target);
  out += line("stage", l.stage);
  out += line("class", std::string(name_of(l.cls)) + (l.code.empty() ? "" : ", code " + l.code));
  out += line("error", l.error);
  out += line("attempts", std::to_string(l.attempts) + ", first " + rfc3339(l.first_failed_ms) +
                              ", last " + rfc3339(l.last_failed_ms));
  out += line("run", l.run_id);
  out += line("operation id", l.operation_id);
  out += line("replays", std::to_string(l.replays));
  out += line("key", l.key ? (valid_utf8(*l.key) ? *l.key : "(not text)") : "(null)");
  for (const LetterHeader& h : l.headers) {
    out += line("header", h.name + ": " +
                              (!h.value               ? "(null)"
                               : valid_utf8(*h.value) ? *h.value
                                                      : "(not text)"));
  }
  out += "\nvalue, " + std::to_string(l.value ? l.value->size() : 0) + " bytes\n" +
         payload(l.value, form);
  if (!story.empty()) out += "\nstory\n";
  for (const LetterAudit& a : story) {
    out += "  " + rfc3339(a.at_ms) + "  " + a.who + "  " +
           (a.replay.empty() ? "" : a.replay + "  ") + a.outcome + '\n';
  }
  return out;
}

int show(const Globals& globals, const LetterFlags& flags, const std::string& form) {
  auto letters = open_letters(globals, flags, StateAccess::read_only);
  if (!letters) return report_failure(globals, letters.failure(), {});
  Letters& l = **letters;
  LetterFilter filter;
  filter.ids = flags.ids;
  auto found = l.store->list(filter);
  if (!found) return report_failure(globals, found.failure(), l.masker);
  if (found->empty()) {
    return report_failure(globals,
                          {.cls = FailureClass::setup,
                           .where = "letter " + std::to_string(flags.ids.front()),
                           .what = "is not in " + l.state->location(),
                           .hint = "flow dlq list --each shows the ids; name the pipeline file or "
                                   "--state when it is elsewhere",
                           .exit = ExitCode::bad},
                          l.masker);
  }
  const DeadLetter& letter = found->front();
  auto story = l.store->audit(letter.id);
  if (!story) return report_failure(globals, story.failure(), l.masker);
  if (!globals.json()) {
    std::cout << text_of(letter, *story, form);
    return 0;
  }
  Json j;
  j["letter"] = letter_json(letter);
  j["story"] = Json::array();
  for (const LetterAudit& a : *story) {
    Json e;
    e["at"] = rfc3339(a.at_ms);
    e["who"] = a.who;
    e["host"] = a.host;
    e["replay"] = a.replay;
    e["what"] = a.what;
    e["outcome"] = a.outcome;
    j["story"].push_back(std::move(e));
  }
  print_json("dlq.show", std::move(j), l.masker);
  return 0;
}

}  // namespace

void add_dlq_show(CLI::App& dlq, Globals& globals, Action& action) {
  auto flags = std::make_shared<LetterFlags>();
  auto id = std::make_shared<std::int64_t>(0);
  auto form = std::make_shared<std::string>("pretty");
  CLI::App* c = add_command(dlq, globals, "show",
                            "Shows one dead letter whole: payload, headers and its story",
                            "flow dlq show 17");
  c->add_option("ID", *id, "The letter's id")->required();
  c->add_option("FILE", flags->file, "The pipeline file, when its letters are in a topic");
  c->add_option("--payload", *form, "How the value is shown")
      ->check(CLI::IsMember({"pretty", "raw", "hex"}));
  add_set_flag(*c, globals);
  add_state_flag(*c, globals);
  c->callback([&globals, &action, flags, id, form] {
    action = [&globals, flags, id, form] {
      flags->ids = {*id};
      return show(globals, *flags, *form);
    };
  });
}

}  // namespace flow
