#pragma once
// Which rows of a batch are written, and in which order.
#include <cstddef>
#include <vector>

#include "core/batch.h"
#include "core/column.h"

namespace flow {

// Fills rows.order. No key: every row, in record order. With a key: the last row of each key,
// sorted by key, so that two writers lock in the same order and an index is walked in order. Keys
// are equal as the typed values are: 1.5 and 1.50 in a decimal column, "a" and "a " in a char(n)
// column, -0.0 and 0.0. Null equals null. key_columns: indexes into `columns`, whose types the
// cells have. Rows that are done are left out, and with a key whatever they superseded too.
void order_rows(RowSet& rows, const Columns& columns, const std::vector<std::size_t>& key_columns);

}  // namespace flow
