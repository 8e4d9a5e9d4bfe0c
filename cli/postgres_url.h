#pragma once
// Whether libpq can read a connection URL or key=value text, without connecting.
#include <string>

namespace flow {

bool looks_like_postgres(const std::string& url);  // postgres://, postgresql:// or key=value text

// What is wrong, and what to do; empty: nothing. Shows no part of the text but names of unknown
// settings.
std::string check_postgres_url(const std::string& url);

}  // namespace flow
