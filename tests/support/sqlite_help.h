#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace flow::test {

// Rows as SQLite's own text of each value; NULL is nullopt. Several statements: the rows of all of
// them. Errors: throws std::runtime_error with SQLite's message. The database is opened and closed
// each time.
std::vector<std::vector<std::optional<std::string>>> sqlite_query(
    const std::filesystem::path& database, const std::string& sql);

}  // namespace flow::test
