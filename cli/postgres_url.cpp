#include "cli/postgres_url.h"

#include <cctype>
#include <libpq-fe.h>
#include <memory>
#include <string_view>
#include <vector>

#include "core/suggest.h"

namespace flow {
namespace {

constexpr const char* at_in_password =
    "has an @ too many: in the user and the password write @ as %40, / as %2F and : as %3A";

// The text behind `prefix` up to the next quote, if libpq's message begins with the prefix.
std::string name_in(std::string_view message, std::string_view prefix) {
  if (message.substr(0, prefix.size()) != prefix) return "";
  message.remove_prefix(prefix.size());
  return std::string(message.substr(0, message.find('"')));
}

std::string near_setting(const std::string& name) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all(PQconndefaults(),
                                                                         &PQconninfoFree);
  std::vector<std::string_view> names;
  for (const PQconninfoOption* o = all.get(); o != nullptr && o->keyword != nullptr; ++o) {
    names.emplace_back(o->keyword);
  }
  return did_you_mean(name, names);
}

}  // namespace

bool looks_like_postgres(const std::string& url) {
  if (url.rfind("postgres://", 0) == 0 || url.rfind("postgresql://", 0) == 0) return true;
  std::size_t i = 0;
  while (i < url.size() &&
         (std::isalpha(static_cast<unsigned char>(url[i])) != 0 || url[i] == '_')) {
    ++i;
  }
  return i > 0 && url.find("://") == std::string::npos &&
         url.find_first_not_of(' ', i) < url.size() && url[url.find_first_not_of(' ', i)] == '=';
}

std::string check_postgres_url(const std::string& url) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(
      PQconninfoParse(url.c_str(), &error), &PQconninfoFree);
  const std::unique_ptr<char, decltype(&PQfreemem)> message(error, &PQfreemem);
  if (parsed) {
    for (const PQconninfoOption* o = parsed.get(); o->keyword != nullptr; ++o) {
      const std::string_view keyword = o->keyword;
      const bool place = keyword == "host" || keyword == "dbname";
      if (place && o->val != nullptr &&
          std::string_view(o->val).find('@') != std::string_view::npos) {
        return at_in_password;
      }
    }
    return "";
  }
  const std::string_view text = error == nullptr ? "" : error;
  std::string name = name_in(text, "invalid URI query parameter: \"");
  if (name.empty()) name = name_in(text, "invalid connection option \"");
  if (!name.empty()) return "libpq knows no setting \"" + name + "\"" + near_setting(name);
  return "libpq cannot read it; write postgres://user:password@host:5432/database, with other "
         "signs than "
         "letters and digits in the password as %XX";
}

}  // namespace flow
