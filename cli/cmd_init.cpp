#include <iostream>

#include "cli/command.h"
#include "cli/init_template.h"
#include "cli/output.h"
#include "cli/schema.h"

namespace flow {

void add_init(CLI::App& app, Globals& globals, Action& action) {
  auto from = std::make_shared<std::string>("kafka");
  auto to = std::make_shared<std::string>("postgres");
  CLI::App* c = add_command(app, globals, "init", "Prints a commented pipeline file to start from",
                            "flow init --from file --to sqlite > orders.yaml");
  c->add_option("--from", *from, "Source kind")->check(CLI::IsMember({"kafka", "file"}));
  c->add_option("--to", *to, "Target kind")
      ->check(CLI::IsMember({"postgres", "sqlite", "kafka", "file", "stdout"}));
  c->callback([&globals, &action, from, to] {
    action = [&globals, from, to] {
      const std::string text = init_template(*from, *to);
      if (globals.json()) {
        Json j;
        j["from"] = *from;
        j["to"] = *to;
        j["text"] = text;
        print_json("init", std::move(j), {});
      } else {
        std::cout << text;
      }
      return 0;
    };
  });
}

void add_schema(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* c = add_command(app, globals, "schema",
                            "Prints the JSON Schema of pipeline files, for completion in editors",
                            "flow schema > flow-pipeline.schema.json");
  c->callback([&action] {
    action = [] {
      std::cout << pipeline_schema() << '\n';
      return 0;
    };
  });
}

}  // namespace flow
