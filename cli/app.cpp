#include "cli/app.h"

#include <iostream>
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>
#include <sqlite3.h>

#include "cli/command.h"

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

void add_commands(CLI::App& app, Globals& globals, Action& action) {
  add_run(app, globals, action);
  add_check(app, globals, action);
  add_explain(app, globals, action);
  add_offsets(app, globals, action);
  add_history(app, globals, action);
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
    return code == 0 ? 0 : static_cast<int>(ExitCode::usage);
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
