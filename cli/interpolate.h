#pragma once
// Fills ${...} into one scalar: once, as data. What a variable holds is never looked into again.
//   ${VAR}            the variable; unset or empty is an error
//   ${VAR:-text}      text where it is unset or empty; ${VAR:-} allows empty
//   ${VAR:?message}   the error's own words
//   ${file:path}      the file without its last line feed; relative to the pipeline file
//   $$                a dollar sign; a $ before anything else stands for itself
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// What the scalar is part of. url: what is filled in is percent-encoded in user, password, path and
// query of a URL, and escaped in libpq's key=value text, so that it cannot change their structure.
enum class FillAs : unsigned char { text, url };

struct FillSources {
  std::function<std::optional<std::string>(const std::string&)> getenv;
  std::string base_dir;
};

// Shape: text is whole only when there are no faults. filled: something was filled in, so the text
// is not to be typed as YAML. secrets: what came from ${file:...}.
struct Filled {
  std::string text;
  bool filled = false;
  std::vector<std::string> faults;
  std::vector<std::string> secrets;
};

Filled fill_in(std::string_view scalar, FillAs as, const FillSources& sources);

}  // namespace flow
