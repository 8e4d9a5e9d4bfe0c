#include "cli/app.h"

#include <algorithm>
#include <iostream>
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>
#include <sqlite3.h>

#include "cli/command.h"
#include "core/suggest.h"

namespace flow {

namespace {

// Help that begins with an example.
class Formatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string out;
    if (mode != CLI::AppFormatMode::Sub && !app->get_footer().empty())
      out = "Example:\n  " + app->get_footer() + "\n\n";
    return out + CLI::Formatter::make_help(app, std::move(name), mode);
  }
  std::string make_footer(const CLI::App*) const override { return {}; }
};

std::string version_text() {
  const int pq = PQlibVersion();
  return std::string("flow ") + FLOW_VERSION + "\nlibrdkafka " + rd_kafka_version_str() +
         ", libpq " + std::to_string(pq / 10000) + "." + std::to_string(pq % 10000) + ", SQLite " +
         sqlite3_libversion();
}

void collect_words(const CLI::App& app, std::vector<std::string>& out) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    out.push_back(sub->get_name());
    collect_words(*sub, out);
  }
}

// The command or option that a mistyped word was meant to be, empty when it is none or right
// already.
std::string nearest_word(const CLI::App& app, const std::string& word) {
  std::vector<std::string> words;
  collect_words(app, words);
  if (std::find(words.begin(), words.end(), word.substr(0, word.find('='))) != words.end())
    return {};
  return nearest_name(word, {words.begin(), words.end()});
}

void add_commands(CLI::App& app, Globals& globals, Action& action) {
  add_run(app, globals, action);
  add_check(app, globals, action);
  add_explain(app, globals, action);
  add_offsets(app, globals, action);
  add_history(app, globals, action);
  add_dlq(app, globals, action);
  add_init(app, globals, action);
  add_schema(app, globals, action);
  add_completion(app, globals, action);
}

}  // namespace

int run_app(int argc, char** argv) {
  Globals globals;
  Action action;
  CLI::App app(
      "Moves events from Kafka and files into Postgres, SQLite, Kafka and files, and says exactly "
      "what cannot be "
      "lost and what may be there twice.",
      "flow");
  app.formatter(std::make_shared<Formatter>());
  app.footer("flow init --from file --to sqlite > orders.yaml && flow run orders.yaml");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(0, 1);
  app.fallthrough(false);
  add_commands(app, globals, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e, std::cout, std::cerr);
    if (code == 0) return 0;
    for (int i = 1; i < argc; ++i) {
      const std::string near = nearest_word(app, argv[i]);
      if (!near.empty()) std::cerr << "flow: did you mean " << near << "?\n";
    }
    return static_cast<int>(ExitCode::usage);
  }
  if (!action) {
    std::cerr << app.help();
    return static_cast<int>(ExitCode::usage);
  }
  try {
    return action();
  } catch (const std::exception& e) {
    std::cerr << "flow: defect: " << e.what()
              << "; please report this with the command that gave it\n";
    return static_cast<int>(ExitCode::defect);
  }
}

}  // namespace flow
