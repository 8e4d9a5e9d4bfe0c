#pragma once
// What a dead-letter topic holds, read without taking anything out of it.
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "connectors/kafka_client.h"
#include "connectors/kafka_letter_message.h"

namespace flow::kafka {

// A letter of the topic. letter: without value and headers, which are fetched when asked for. at:
// where its first copy lies, whatever id the state gave it; through: its newest copy.
struct IndexedLetter {
  DeadLetter letter;
  std::int64_t at = 0;
  std::int64_t through = 0;
};

// Shape: letters in the order of their first copies, copies of one origin taken together. Grows
// with each refresh(); memory grows with the number of letters, not with their size. Read
// committed. Threads: one at a time.
class LetterIndex {
 public:
  LetterIndex(const DlqSpec& spec, Log& log) : spec_(&spec), log_(&log) {}

  // Reads what has come since the last time, up to the end as it was when called.
  Result<void> refresh();
  std::vector<IndexedLetter>& letters() { return letters_; }
  // Whole letters for entries of the index, in their order; one whose record the topic no longer
  // holds is left out.
  Result<std::vector<DeadLetter>> fetch(const std::vector<const IndexedLetter*>& wanted);

 private:
  struct Range {
    std::int64_t from = 0;
    std::int64_t end = 0;
  };
  using Ranges = std::map<PartitionId, Range>;
  using Take = std::function<void(const rd_kafka_message_t&)>;

  Result<void> connect();
  Result<void> read(Ranges ranges, const Take& take);
  Result<bool> poll(Ranges& left, const Take& take);
  void add(const rd_kafka_message_t& message);

  const DlqSpec* spec_;
  Log* log_;
  std::unique_ptr<Client> client_;
  std::vector<IndexedLetter> letters_;
  std::unordered_map<std::string, std::size_t> by_origin_;
  std::map<PartitionId, std::int64_t> next_;  // where to read on
};

// What makes a letter the same letter, as text.
std::string origin_text(const DeadLetter& letter);

}  // namespace flow::kafka
