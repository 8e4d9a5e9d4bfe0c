#include "core/mask.h"

#include <algorithm>
#include <doctest/doctest.h>

TEST_CASE("a password in a URL or in key=value text is masked and nothing else is") {
  CHECK(flow::mask_url("postgres://u:s3cret@h:5432/db?sslmode=require") ==
        "postgres://u:***@h:5432/db?sslmode=require");
  CHECK(flow::mask_url("postgres://u:s@cret@h/db") == "postgres://u:***@h/db");
  CHECK(flow::mask_url("postgres://u:s/c?r#t@h/db") == "postgres://u:***@h/db");
  CHECK(flow::mask_url("postgres://h/db?password=s3cret&sslpassword=other&user=u") ==
        "postgres://h/db?password=***&sslpassword=***&user=u");
  CHECK(flow::mask_url("host=h password=s3cret dbname=d") == "host=h password=*** dbname=d");
  CHECK(flow::mask_url("host=h password = 's3 cr\\'et' dbname=d") ==
        "host=h password = *** dbname=d");
  CHECK(flow::mask_url("host=h password=s3\\ cret dbname=d") == "host=h password=*** dbname=d");
  for (const char* open :
       {"postgres://u@h:5432/db", "sqlite:/var/x.db", "h:9092", "", "postgres://u:@h/db"}) {
    CHECK(flow::mask_url(open) == open);
  }
}

TEST_CASE("the secrets of a URL are given as written and decoded") {
  const auto secrets = flow::secrets_of_url("postgres://u:p%40ss%231@h/db");
  CHECK(std::find(secrets.begin(), secrets.end(), "p%40ss%231") != secrets.end());
  CHECK(std::find(secrets.begin(), secrets.end(), "p@ss#1") != secrets.end());
  const auto quoted = flow::secrets_of_url("host=h password='a b'");
  CHECK(std::find(quoted.begin(), quoted.end(), "a b") != quoted.end());
}

TEST_CASE("names of secret settings are known") {
  for (const char* name :
       {"sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sslpassword"}) {
    CHECK(flow::is_secret_name(name));
  }
  for (const char* name : {"sasl.username", "ssl.ca.location", "ssl.key.location", "client.id",
                           "sasl.oauthbearer.token.endpoint.url", "ssl.certificate.pem"}) {
    CHECK_FALSE(flow::is_secret_name(name));
  }
}

TEST_CASE("a masker hides each secret, also where it stands percent-encoded") {
  flow::Masker masker;
  masker.add("p@ss word");
  masker.add("abc");  // too short to be told from other text
  CHECK(masker.text("p@ss word, p%40ss%20word: abc") == "***, ***: abc");
  masker.add("p@ss word longer");
  CHECK(masker.text("p@ss word longer|p@ss word") == "***|***");
  flow::Masker of_url;
  of_url.add_url("postgres://u:s3cret@h/db");
  CHECK(of_url.text("FATAL: s3cret is wrong") == "FATAL: *** is wrong");
  CHECK(flow::Masker().text("nothing to hide") == "nothing to hide");
}

TEST_CASE("percent-encoding gives back the same bytes") {
  std::string all;
  for (int i = 1; i < 256; ++i) all += static_cast<char>(i);
  CHECK(flow::percent_decode(flow::percent_encode(all)) == all);
  CHECK(flow::percent_encode("a-b_c.d~1") == "a-b_c.d~1");
  CHECK(flow::percent_decode("%4") == "%4");
  CHECK(flow::percent_decode("%zz%41") == "%zzA");
}
