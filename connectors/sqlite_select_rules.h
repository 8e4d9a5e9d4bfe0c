#pragma once
// What a SQL transform may say, as far as its words show it: one SELECT, one row at most from each
// record, in record order. The rest (tables, functions, aggregates) SQLite itself tells once the
// statement is prepared.
#include <string>
#include <string_view>

namespace flow {

// Empty: fine. Else why not, in words that follow "the statement".
std::string select_fault(std::string_view sql);

// The first string literal that makes a date function read the machine's clock or time zone; empty:
// there is none.
std::string_view clock_word(std::string_view sql);

}  // namespace flow
