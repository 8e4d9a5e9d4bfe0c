#include "core/ports.h"

#include <algorithm>

namespace flow {

Result<std::vector<RecordFailure>> Target::write_around(const Batch& batch, const RowSet& rows,
                                                        const Aside& aside) {
  std::optional<RowSet> left;  // copied when a row is refused, which is seldom
  std::vector<RecordFailure> refused;
  for (;;) {
    const auto written = write(batch, left ? *left : rows);
    if (written) return refused;
    const Failure& failure = written.failure();
    if (!failure.of_record() || !failure.record) return failure;
    if (!left) left = rows;
    const std::size_t before = left->order.size();
    std::erase_if(left->order, [&](std::uint32_t r) { return left->record[r] == *failure.record; });
    if (left->order.size() == before) return failure;
    refused.push_back({*failure.record, 0, failure});
    if (!aside.refused) continue;
    if (auto letter = aside.refused(refused.back()); !letter) return letter.failure();
  }
}

}  // namespace flow
