#pragma once
// One CSV record (RFC 4180) taken apart. Threads: one.
#include <string_view>
#include <vector>

#include "core/batch.h"

namespace flow::csv {

// A field's text; data() == nullptr: empty and without quotes, which means null.
using Fields = std::vector<std::string_view>;

// Fills `fields` from `record`, which holds no line end but inside quotes (one at its end is
// tolerated). Fields borrow the record, or the arena where doubled quotes were undone. nullptr:
// done; else what is wrong.
const char* split(std::string_view record, char delimiter, Arena& arena, Fields& fields);

}  // namespace flow::csv
