#pragma once
// What commands print: tables for people, JSON with a schema name for programs, messages on stderr.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/mask.h"
#include "core/result.h"
#include "core/state.h"

namespace flow {

using Json = nlohmann::ordered_json;

// Prints one JSON document on stdout: {"schema": "flow.NAME/1", ...}.
void print_json(const std::string& name, Json document, const Masker& masker);

// Left-aligned columns (numbers right-aligned when `right` says so), two blanks between them.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows,
                  const std::vector<char>& right = {});

// "flow: error: ..." on stderr.
void print_failure(const Failure& failure, const Masker& masker);
Json failure_json(const Failure& failure);

std::string with_separators(std::uint64_t n);  // 1,234,567
Json counts_json(const Counts& counts);
Json spans_json(const Spans& spans);

}  // namespace flow
