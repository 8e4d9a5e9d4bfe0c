#pragma once
// Changes to letters before they are replayed: --patch and --edit.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/dead_letter.h"
#include "core/result.h"

namespace flow {

// patches: '$.path = JSON value', applied in order; numbers and texts that are not touched keep
// their exact digits and signs. edits: a file of JSON lines {"id": 17, "value": ...}, value as flow
// dlq export writes it. Gives a function that changes one letter and says what it did (empty:
// nothing); null when there is nothing to change.
using LetterEdit = std::function<Result<std::string>(DeadLetter&)>;
Result<LetterEdit> make_letter_edit(const std::vector<std::string>& patches,
                                    const std::string& edits);

}  // namespace flow
