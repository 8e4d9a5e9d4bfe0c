#pragma once
// Keeps secrets out of whatever people see.
#include <string>
#include <string_view>
#include <vector>

namespace flow {

// The same text with *** for each password it shows: user:PASSWORD@ in a URL, and the values of
// password, sslpassword and the like in a URL's query or in key=value text.
std::string mask_url(std::string_view text);

// The passwords that mask_url would hide, as written and percent-decoded, without repeats.
std::vector<std::string> secrets_of_url(std::string_view text);

// True for a setting or property whose value is a secret: sasl.password, ssl.key.pem, ...
bool is_secret_name(std::string_view name);

std::string percent_encode(std::string_view text);  // all but letters, digits and -._~
std::string percent_decode(std::string_view text);  // a bad escape stays as it is

// Replaces each added secret by ***, also where it stands percent-encoded. Secrets under 4 bytes
// are left out: they would hide half of every line. Threads: any for text(), one for add().
class Masker {
 public:
  void add(std::string_view secret);
  void add_url(std::string_view url) {
    for (const std::string& secret : secrets_of_url(url)) add(secret);
  }
  std::string text(std::string_view text) const;
  bool empty() const { return forms_.empty(); }

 private:
  std::vector<std::string> forms_;  // longest first
};

}  // namespace flow
