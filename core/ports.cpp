#include "core/ports.h"

#include <algorithm>

namespace flow {

Result<std::vector<RecordFailure>> Target::write_around(const Batch& batch, const RowSet& rows,
                                                        const Aside&) {
  RowSet left = rows;
  std::vector<RecordFailure> refused;
  for (;;) {
    const auto written = write(batch, left);
    if (written) return refused;
    const Failure& failure = written.failure();
    if (failure.cls != FailureClass::invalid || !failure.record) return failure;
    const std::size_t before = left.order.size();
    std::erase_if(left.order, [&](std::uint32_t r) { return left.record[r] == *failure.record; });
    if (left.order.size() == before) return failure;
    refused.push_back({*failure.record, 0, failure});
  }
}

}  // namespace flow
