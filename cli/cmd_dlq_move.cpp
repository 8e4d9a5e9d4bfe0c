#include <fstream>
#include <iostream>

#include "cli/dlq.h"

namespace flow {

namespace {

constexpr std::size_t at_once = 1000;

int export_letters(const Globals& globals, const LetterFlags& flags) {
  auto filter = filter_of(flags);
  if (!filter) return report_failure(globals, filter.failure(), {});
  auto letters = open_letters(globals, flags, StateAccess::read_only);
  if (!letters) return report_failure(globals, letters.failure(), {});
  const auto print = [](const DeadLetter& l) -> Result<void> {
    std::cout << letter_json(l).dump() << '\n';
    if (std::cout) return {};
    return Failure{.cls = FailureClass::setup,
                   .where = "stdout",
                   .what = "cannot be written",
                   .hint = "the reader of the pipe has gone, or the disk is full",
                   .exit = ExitCode::io};
  };
  auto count = for_each_letter(*(*letters)->store, *filter, print);
  if (count && !std::cout.flush()) count = print({}).failure();
  if (!count) return report_failure(globals, count.failure(), (*letters)->masker);
  if (!globals.quiet) std::cerr << "exported " << letters_text(*count) << '\n';
  return 0;
}

// All lines are read before anything is written: a fault in one leaves the store as it was.
Result<std::vector<DeadLetter>> read_letters(std::istream& in, const std::string& name) {
  std::vector<DeadLetter> out;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    auto letter = json.is_object()
                      ? letter_of_json(json)
                      : Result<DeadLetter>(
                            Failure{.cls = FailureClass::setup,
                                    .what = "is no JSON object",
                                    .hint = "flow dlq export writes the form that is read here",
                                    .exit = ExitCode::data});
    if (!letter) {
      Failure f = std::move(letter).failure();
      f.where = name + ":" + std::to_string(number);
      return f;
    }
    out.push_back(std::move(letter).value());
  }
  return out;
}

int import_letters(const Globals& globals, const LetterFlags& flags, const std::string& from) {
  std::ifstream file;
  if (from != "-") file.open(from);
  if (from != "-" && !file) {
    return report_failure(globals,
                          {.cls = FailureClass::setup,
                           .where = from,
                           .what = "cannot be opened",
                           .hint = "name a file that flow dlq export wrote",
                           .exit = ExitCode::io},
                          {});
  }
  auto read = read_letters(from == "-" ? std::cin : file, from);
  if (!read) return report_failure(globals, read.failure(), {});
  auto letters = open_letters(globals, flags, StateAccess::read_write);
  if (!letters) return report_failure(globals, letters.failure(), {});
  for (std::size_t first = 0; first < read->size(); first += at_once) {
    const std::span<const DeadLetter> piece(read->data() + first,
                                            std::min(at_once, read->size() - first));
    if (auto r = (*letters)->store->put(piece); !r)
      return report_failure(globals, r.failure(), (*letters)->masker);
  }
  if (globals.json()) {
    Json j;
    j["imported"] = read->size();
    print_json("dlq.import", std::move(j), {});
  } else {
    std::cout << "imported " << letters_text(read->size())
              << "; one that was there already is not there twice\n";
  }
  return 0;
}

}  // namespace

void add_dlq_move(CLI::App& dlq, Globals& globals, Action& action) {
  auto flags = std::make_shared<LetterFlags>();
  CLI::App* c =
      add_command(dlq, globals, "export", "Prints dead letters as JSON lines, bytes exact",
                  "flow dlq export --pipeline orders > letters.jsonl");
  add_letter_flags(*c, globals, *flags);
  c->callback([&globals, &action, flags] {
    action = [&globals, flags] { return export_letters(globals, *flags); };
  });

  auto into = std::make_shared<LetterFlags>();
  auto from = std::make_shared<std::string>("-");
  CLI::App* i =
      add_command(dlq, globals, "import",
                  "Reads dead letters that export printed; one that is there is not there twice",
                  "flow dlq import letters.jsonl");
  i->add_option("LETTERS", *from, "The file, - for standard input");
  i->add_option("--pipeline-file", into->file,
                "The pipeline file, when its letters are kept in a topic");
  add_set_flag(*i, globals);
  add_state_flag(*i, globals);
  i->callback([&globals, &action, into, from] {
    action = [&globals, into, from] { return import_letters(globals, *into, *from); };
  });
}

}  // namespace flow
