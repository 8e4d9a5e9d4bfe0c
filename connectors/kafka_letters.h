#pragma once
// Dead letters in a topic. The topic holds the letters, the state what became of them.
#include <memory>

#include "core/registry.h"

namespace flow {

// Shape: letters of the topic have ids from 2^40 on (connectors/kafka_letter_message.h). Those that
// the state's own table holds, because they were too large for the topic or from before there was
// one, are given beside them. Nothing is taken out of the topic: its retention does that, and
// purge() takes from the table alone. Errors: setup when the topic does not exist or is compacted.
Result<std::unique_ptr<DeadLetterStore>> make_kafka_letters(const Context& context,
                                                            StateStore& state);
// What make_kafka_letters() would refuse, without a state.
Result<void> check_letter_topic(const Context& context);

}  // namespace flow
