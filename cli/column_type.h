#pragma once
// The type of a column as the pipeline file writes it: "bigint", "numeric(10,2)", "varchar(20)".
#include <string_view>

#include "core/column.h"
#include "core/result.h"

namespace flow {

struct ColumnType {
  Type type = Type::any;
  Limits limits;
};

// Errors: Failure::what says what is wrong, Failure::hint what to write instead; class setup.
Result<ColumnType> parse_column_type(std::string_view text);

}  // namespace flow
