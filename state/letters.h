#pragma once
// Dead letters in the state's own database, and the progress of those that a topic keeps.
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "state/letter_ledger.h"

namespace flow {

// The state's parts that letters use. Owner: the state, which outlives whoever has this.
struct LetterHome {
  Session* session = nullptr;
  Locks* locks = nullptr;
  std::mutex* mutex = nullptr;  // one call at a time
  std::string location;
};

std::unique_ptr<DeadLetterStore> make_letter_table(LetterHome home);
std::unique_ptr<LetterProgressStore> make_letter_progress(LetterHome home,
                                                          const std::string& topic);

// Reads in one transaction; a state from before there were dead letters leaves `work` out.
Result<void> read_letters(Session& session, const Session::Work& work);

}  // namespace flow
