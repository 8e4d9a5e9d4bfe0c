#include <iostream>

#include "cli/command.h"

namespace flow {

namespace {

// One command of the tree: its words ("offsets inspect"), its subcommands and flags.
struct Words {
  std::string path;
  std::vector<std::pair<std::string, std::string>> subcommands;  // name, what
  std::vector<std::pair<std::string, std::string>> flags;        // --name, what
};

void collect(const CLI::App& app, const std::string& path, std::vector<Words>& out) {
  Words w;
  w.path = path;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      w.flags.emplace_back("--" + name, option->get_description());
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    w.subcommands.emplace_back(sub->get_name(), sub->get_description());
  }
  out.push_back(w);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), out);
  }
}

std::string join(const std::vector<std::pair<std::string, std::string>>& words) {
  std::string out;
  for (const auto& [name, what] : words) out += (out.empty() ? "" : " ") + name;
  return out;
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash(const std::vector<Words>& all) {
  std::string out =
      "_flow() {\n  local cur=${COMP_WORDS[COMP_CWORD]} path= word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case \"$path $word\" in\n";
  for (const Words& w : all) {
    if (!w.path.empty())
      out += "      " + shell_quoted((w.path.find(' ') == std::string::npos ? " " : "") + w.path) +
             ") path=" + shell_quoted(w.path) + " ;;\n";
  }
  out += "    esac\n  done\n  case \"$path\" in\n";
  for (const Words& w : all) {
    out += "    " + shell_quoted(w.path) + ") COMPREPLY=($(compgen -W " +
           shell_quoted(join(w.subcommands) + " " + join(w.flags)) + " -- \"$cur\")) ;;\n";
  }
  return out +
         "  esac\n  [ ${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "
         "\"$cur\"))\n}\ncomplete -o filenames -F _flow flow\n";
}

std::string zsh(const std::vector<Words>& all) {
  return "#compdef flow\nautoload -U +X bashcompinit && bashcompinit\n" + bash(all);
}

std::string fish(const std::vector<Words>& all) {
  std::string out;
  for (const Words& w : all) {
    const bool top = w.path.empty();
    const std::size_t blank = w.path.find(' ');
    std::string when = top ? "__fish_use_subcommand"
                           : "__fish_seen_subcommand_from " +
                                 w.path.substr(blank == std::string::npos ? 0 : blank + 1);
    for (const auto& [name, what] : w.subcommands)
      out += "complete -c flow -f -n " + shell_quoted(when) + " -a " + name + " -d " +
             shell_quoted(what) + "\n";
    for (const auto& [name, what] : w.flags)
      out += "complete -c flow -n " + shell_quoted(when) + " -l " + name.substr(2) + " -d " +
             shell_quoted(what) + "\n";
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, Globals& globals, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* c =
      add_command(app, globals, "completion", "Prints the completion script of a shell",
                  "flow completion bash > ~/.local/share/bash-completion/completions/flow");
  c->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  c->callback([&app, &action, shell] {
    action = [&app, shell] {
      std::vector<Words> all;
      collect(app, "", all);
      std::cout << (*shell == "bash" ? bash(all) : *shell == "zsh" ? zsh(all) : fish(all));
      return 0;
    };
  });
}

}  // namespace flow
