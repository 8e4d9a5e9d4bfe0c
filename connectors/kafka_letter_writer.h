#pragma once
// Writes dead letters to their topic: an idempotent producer, every delivery report waited for.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "connectors/kafka_client.h"
#include "connectors/kafka_letter_message.h"

namespace flow::kafka {

struct LetterShared;

// Durable: send() returns ok when all in-sync replicas have every letter but those in `oversize`.
// Errors: a failed send may have written some of them; sending again makes copies, which readers
// take for one letter. Threads: one at a time.
class LetterWriter {
 public:
  // message_bytes_max: the topic's own limit, where it is known.
  LetterWriter(const DlqSpec& spec, std::optional<std::string> message_bytes_max, Log& log);
  ~LetterWriter();

  // oversize: places in `letters` of those that the topic refuses for their size.
  Result<void> send(std::span<const DeadLetter> letters, LetterBody body,
                    std::vector<std::size_t>& oversize);

 private:
  Result<void> connect();
  Result<void> produce(const DeadLetter& letter, std::size_t place, LetterBody body);
  Result<void> settle();
  Failure undelivered();
  void drop();

  const DlqSpec* spec_;
  std::optional<std::string> message_bytes_max_;
  Log* log_;
  std::string where_;
  std::shared_ptr<LetterShared> shared_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<rd_kafka_topic_t, Free<rd_kafka_topic_destroy>> topic_;
};

std::string letters_where(const DlqSpec& spec);

}  // namespace flow::kafka
