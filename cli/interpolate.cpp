#include "cli/interpolate.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "core/mask.h"

namespace flow {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = std::size_t{64} << 10;
constexpr std::string_view file_prefix = "file:";

bool is_variable(std::string_view name) {
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// A part of the scalar: text as it stands, or what is between "${" and "}".
struct Piece {
  std::string text;
  bool reference = false;
};

std::vector<Piece> split(std::string_view scalar, std::vector<std::string>& faults) {
  std::vector<Piece> out{{"", false}};
  for (std::size_t i = 0; i < scalar.size(); ++i) {
    const char next = i + 1 < scalar.size() ? scalar[i + 1] : '\0';
    if (scalar[i] != '$' || (next != '$' && next != '{')) {
      out.back().text += scalar[i];
    } else if (next == '$') {
      out.back().text += '$';
      ++i;
    } else {
      const std::size_t close = scalar.find('}', i);
      if (close == std::string_view::npos) {
        faults.push_back("\"${\" is never closed; write ${NAME}, or $${ for the two characters");
        return out;
      }
      out.push_back({std::string(scalar.substr(i + 2, close - i - 2)), true});
      out.push_back({"", false});
      i = close;
    }
  }
  return out;
}

// One reference's value, or the reason why there is none.
class Resolver {
 public:
  Resolver(const FillSources& sources, Filled& out) : sources_(sources), out_(out) {}

  std::string value(const std::string& reference) {
    if (reference.substr(0, file_prefix.size()) == file_prefix && reference.substr(4, 2) != ":-" &&
        reference.substr(4, 2) != ":?") {
      return file(reference.substr(file_prefix.size()));
    }
    const std::size_t colon = reference.find(':');
    const std::string name = reference.substr(0, colon);
    const std::string form = colon == std::string::npos ? "" : reference.substr(colon, 2);
    if (!is_variable(name) || (!form.empty() && form != ":-" && form != ":?")) {
      return fault("\"${" + reference +
                   "}\" is not understood; write ${NAME}, ${NAME:-default}, ${NAME:?message} or "
                   "${file:path}");
    }
    const std::string rest = form.empty() ? "" : reference.substr(colon + 2);
    if (rest.find("${") != std::string::npos) {
      return fault("the default or message of ${" + name + "} cannot hold another ${...}");
    }
    const auto found = sources_.getenv ? sources_.getenv(name) : std::nullopt;
    if (found && !found->empty()) return *found;
    if (form == ":-") return rest;
    if (form == ":?") return fault("variable " + name + " is needed: " + rest);
    if (!found) {
      return fault("variable " + name + " is not set; set it, or write ${" + name +
                   ":-default} for a default");
    }
    return fault("variable " + name + " is empty; set it, or write ${" + name +
                 ":-} if it may be empty");
  }

 private:
  std::string fault(std::string message) {
    out_.faults.push_back(std::move(message));
    return "";
  }

  std::string file(const std::string& name) {
    if (name.empty()) return fault("${file:} names no file; write ${file:path}");
    const fs::path path = fs::path(sources_.base_dir) / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
      const std::string why = error ? error.message() : "it is not a regular file";
      return fault("file " + path.string() + " cannot be read: " + why);
    }
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in.is_open() || in.bad())
      return fault("file " + path.string() + " cannot be read; check its rights");
    if (text.size() > file_bytes_max)
      return fault("file " + path.string() + " is larger than 64 KiB");
    if (text.find('\0') != std::string::npos)
      return fault("file " + path.string() + " is not text");
    if (!text.empty() && text.back() == '\n') text.pop_back();
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty()) return fault("file " + path.string() + " is empty");
    out_.secrets.push_back(text);
    return text;
  }

  const FillSources& sources_;
  Filled& out_;
};

// Where in a URL the text after `before` stands: its structure is what the file itself writes.
bool encoded_here(const std::string& before, const std::string& after) {
  const std::size_t scheme = before.find("://");
  if (scheme == std::string::npos) return false;
  const std::string rest = before.substr(scheme + 3);
  if (rest.find_first_of("/?") != std::string::npos) return true;
  return rest.find('@') == std::string::npos &&
         after.substr(0, after.find_first_of("/?")).find('@') != std::string::npos;
}

// libpq's key=value text: spaces, quotes and backslashes lose their meaning.
std::string escaped_setting(const std::string& value, const std::string& before) {
  if (value.empty() && !before.empty() && before.back() == '=') return "''";
  std::string out;
  for (const char c : value) {
    if (c == '\'' || c == '\\' || std::isspace(static_cast<unsigned char>(c)) != 0) out += '\\';
    out += c;
  }
  return out;
}

std::string as_part_of_url(const std::string& value, const std::string& before,
                           const std::string& after) {
  if (before.find("://") != std::string::npos) {
    return encoded_here(before, after) ? percent_encode(value) : value;
  }
  const bool settings = before.find('=') != std::string::npos && before.rfind("sqlite:", 0) != 0;
  return settings ? escaped_setting(value, before) : value;
}

}  // namespace

Filled fill_in(std::string_view scalar, FillAs as, const FillSources& sources) {
  Filled out;
  const std::vector<Piece> pieces = split(scalar, out.faults);
  Resolver resolver(sources, out);
  std::string literal;  // what the file writes before this piece
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].reference) {
      out.text += pieces[i].text;
      literal += pieces[i].text;
      continue;
    }
    out.filled = true;
    std::string after;
    for (std::size_t k = i + 1; k < pieces.size(); ++k) {
      if (!pieces[k].reference) after += pieces[k].text;
    }
    const std::string value = resolver.value(pieces[i].text);
    out.text += as == FillAs::url ? as_part_of_url(value, literal, after) : value;
  }
  return out;
}

}  // namespace flow
