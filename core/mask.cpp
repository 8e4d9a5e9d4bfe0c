#include "core/mask.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace flow {
namespace {

constexpr std::string_view stars = "***";
constexpr std::size_t shortest_secret = 4;

// A part of a text that is a secret.
struct Part {
  std::size_t from = 0;
  std::size_t to = 0;
};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

// user:SECRET@ after "://", up to the last @ before the path or query begins. A password may hold
// an unescaped
// "/", "?" or "#" by mistake: then it still ends at an @ before which a ":" stands.
void find_userinfo(std::string_view text, std::vector<Part>& parts) {
  std::size_t start = 0;
  while ((start = text.find("://", start)) != std::string_view::npos) {
    start += 3;
    const auto space =
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(start), text.end(), is_space);
    const auto stop = static_cast<std::size_t>(space - text.begin());
    const std::string_view rest = text.substr(start, stop - start);
    std::size_t at = rest.substr(0, rest.find_first_of("/?")).rfind('@');
    if (at == std::string_view::npos) at = rest.rfind('@');
    const std::size_t colon = rest.find(':');
    if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) continue;
    if (rest.substr(0, colon).find_first_of("/?") != std::string_view::npos) continue;
    parts.push_back({start + colon + 1, start + at});
  }
}

// Where the value that begins at `from` ends: a quoted one at its quote, another at a space; in a
// query at "&".
std::size_t value_end(std::string_view text, std::size_t from, bool in_query) {
  if (!in_query && from < text.size() && text[from] == '\'') {
    for (std::size_t i = from + 1; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '\'') {
        return i + 1;
      }
    }
    return text.size();
  }
  for (std::size_t i = from; i < text.size(); ++i) {
    if (!in_query && text[i] == '\\') {
      ++i;
    } else if (is_space(text[i]) || (in_query && text[i] == '&')) {
      return i;
    }
  }
  return text.size();
}

// name=SECRET, in a query or in key=value text.
void find_settings(std::string_view text, std::vector<Part>& parts) {
  for (std::size_t equals = text.find('='); equals != std::string_view::npos;
       equals = text.find('=', equals + 1)) {
    std::size_t name_end = equals;
    while (name_end > 0 && is_space(text[name_end - 1])) --name_end;
    std::size_t name = name_end;
    while (name > 0 && is_name(text[name - 1])) --name;
    if (!is_secret_name(text.substr(name, name_end - name))) continue;
    const bool in_query = name > 0 && (text[name - 1] == '?' || text[name - 1] == '&');
    std::size_t from = equals + 1;
    while (!in_query && from < text.size() && is_space(text[from])) ++from;
    parts.push_back({from, value_end(text, from, in_query)});
  }
}

// In order and without overlap.
std::vector<Part> secret_parts(std::string_view text) {
  std::vector<Part> found, out;
  find_userinfo(text, found);
  find_settings(text, found);
  std::sort(found.begin(), found.end(),
            [](const Part& a, const Part& b) { return a.from < b.from; });
  for (const Part& part : found) {
    if (part.from == part.to) continue;
    if (!out.empty() && part.from < out.back().to) {
      out.back().to = std::max(out.back().to, part.to);
    } else {
      out.push_back(part);
    }
  }
  return out;
}

// The value of a key=value part without its quotes and backslashes.
std::string unquoted(std::string_view text) {
  const bool quotes = text.size() >= 2 && text.front() == '\'' && text.back() == '\'';
  if (quotes) text = text.substr(1, text.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool is_secret_name(std::string_view name) {
  static constexpr std::array<std::string_view, 7> marks{
      "password", "passwd", "secret", "token", "key.pem", "oauthbearer.config", "jaas"};
  std::string low(name);
  std::transform(low.begin(), low.end(), low.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (low == "sasl.oauthbearer.token.endpoint.url") return false;
  return std::any_of(marks.begin(), marks.end(),
                     [&low](std::string_view mark) { return low.find(mark) != std::string::npos; });
}

std::string mask_url(std::string_view text) {
  std::string out;
  std::size_t done = 0;
  for (const Part& part : secret_parts(text)) {
    out.append(text.substr(done, part.from - done)).append(stars);
    done = part.to;
  }
  return out.append(text.substr(done));
}

std::vector<std::string> secrets_of_url(std::string_view text) {
  std::vector<std::string> out;
  const auto add = [&out](std::string secret) {
    if (!secret.empty() && std::find(out.begin(), out.end(), secret) == out.end()) {
      out.push_back(std::move(secret));
    }
  };
  for (const Part& part : secret_parts(text)) {
    const std::string_view raw = text.substr(part.from, part.to - part.from);
    add(std::string(raw));
    add(percent_decode(raw));
    add(unquoted(raw));
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~');
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                        hex_digit(text[i + 2]) >= 0;
    if (escape) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

void Masker::add(std::string_view secret) {
  if (secret.size() < shortest_secret) return;
  for (std::string form : {std::string(secret), percent_encode(secret)}) {
    if (std::find(forms_.begin(), forms_.end(), form) == forms_.end()) {
      forms_.push_back(std::move(form));
    }
  }
  std::stable_sort(forms_.begin(), forms_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string Masker::text(std::string_view text) const {
  if (forms_.empty()) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto form = std::find_if(forms_.begin(), forms_.end(), [&](const std::string& f) {
      return text.compare(i, f.size(), f) == 0;
    });
    if (form == forms_.end()) {
      out += text[i++];
    } else {
      out += stars;
      i += form->size();
    }
  }
  return out;
}

}  // namespace flow
