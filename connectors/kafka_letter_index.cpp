#include "connectors/kafka_letter_index.h"

#include <algorithm>

#include "connectors/kafka_letter_writer.h"

namespace flow::kafka {
namespace {

constexpr Millis silence_max{30'000};

}  // namespace

std::string origin_text(const DeadLetter& letter) {
  return letter.pipeline + "\n" + letter.target + "\n" + letter.origin.text() + "\n" +
         std::to_string(letter.offset.value);
}

Result<void> LetterIndex::connect() {
  if (client_) return {};
  Settings settings = probe_settings(spec_->brokers, spec_->properties);
  settings.emplace_back("group.id", "flow.dead-letters");  // never joined, never committed to
  settings.emplace_back("isolation.level", "read_committed");
  settings.emplace_back("enable.partition.eof", "true");
  settings.emplace_back("queued.max.messages.kbytes", "16384");
  auto shared = std::make_shared<Shared>();
  shared->log = log_;
  auto client = Client::make(RD_KAFKA_CONSUMER, settings, shared, letters_where(*spec_));
  if (!client) return std::move(client).failure();
  client_ = std::move(*client);
  return {};
}

Result<void> LetterIndex::refresh() {
  if (auto r = connect(); !r) return r;
  auto topics = list_topics(*client_);
  if (!topics) return std::move(topics).failure();
  const auto ours = std::find_if(topics->begin(), topics->end(),
                                 [&](const TopicInfo& t) { return t.name == spec_->topic; });
  if (ours == topics->end())
    return absent_topic(*client_, spec_->topic, *topics, "dead_letter_topic");
  const auto partitions = partitions_of({*ours});
  auto starts = edge_offsets(*client_, partitions, Edge::start);
  if (!starts) return std::move(starts).failure();
  auto ends = edge_offsets(*client_, partitions, Edge::end);
  if (!ends) return std::move(ends).failure();
  Ranges ranges;
  for (const PartitionId& id : partitions) {
    const Range range{std::max(next_[id], (*starts)[id]), (*ends)[id]};
    if (range.from < range.end) ranges[id] = range;
  }
  if (auto r = read(ranges, [&](const rd_kafka_message_t& m) { add(m); }); !r) {
    client_.reset();
    return r;
  }
  for (const auto& [id, range] : ranges) next_[id] = range.end;
  // What retention has removed is no letter any more.
  std::size_t kept = 0;
  by_origin_.clear();
  for (IndexedLetter& entry : letters_) {
    if (letter_offset(entry.through) < (*starts)[letter_partition(spec_->topic, entry.through)])
      continue;
    by_origin_[origin_text(entry.letter)] = kept;
    if (&letters_[kept] != &entry) letters_[kept] = std::move(entry);
    ++kept;
  }
  letters_.resize(kept);
  return {};
}

void LetterIndex::add(const rd_kafka_message_t& message) {
  auto letter = letter_of(message);
  if (!letter) return;
  letter->value.reset();
  letter->headers.clear();
  const auto [found, fresh] = by_origin_.try_emplace(origin_text(*letter), letters_.size());
  if (fresh) {
    const std::int64_t at = letter->id;
    letters_.push_back({std::move(*letter), at, at});
    return;
  }
  IndexedLetter& known = letters_[found->second];
  if (letter->id <= known.through && letter->id >= known.at) return;  // read again after a failure
  known.through = letter->id;
  letter->attempts = std::max(letter->attempts, known.letter.attempts);
  letter->first_failed_ms = std::min(letter->first_failed_ms, known.letter.first_failed_ms);
  letter->id = known.letter.id;
  known.letter = std::move(*letter);
}

Result<std::vector<DeadLetter>> LetterIndex::fetch(
    const std::vector<const IndexedLetter*>& wanted) {
  if (auto r = connect(); !r) return std::move(r).failure();
  Ranges ranges;
  std::unordered_map<std::int64_t, std::size_t> place_of;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::int64_t at = wanted[i]->through;
    place_of[at] = i;
    const std::int64_t offset = letter_offset(at);
    Range& range =
        ranges.try_emplace(letter_partition(spec_->topic, at), Range{offset, offset}).first->second;
    range.from = std::min(range.from, offset);
    range.end = std::max(range.end, offset + 1);
  }
  std::vector<std::optional<DeadLetter>> found(wanted.size());
  auto r = read(ranges, [&](const rd_kafka_message_t& message) {
    const auto place = place_of.find(letter_id(message.partition, message.offset));
    if (place == place_of.end()) return;
    auto whole = letter_of(message);
    if (!whole) return;
    DeadLetter letter = wanted[place->second]->letter;
    letter.value = std::move(whole->value);
    letter.headers = std::move(whole->headers);
    found[place->second] = std::move(letter);
  });
  if (!r) {
    client_.reset();
    return std::move(r).failure();
  }
  std::vector<DeadLetter> letters;
  for (auto& letter : found) {
    if (letter) letters.push_back(std::move(*letter));
  }
  return letters;
}

// Every message of the ranges, each partition in its order.
Result<void> LetterIndex::read(Ranges left, const Take& take) {
  if (left.empty()) return {};
  const List list(rd_kafka_topic_partition_list_new(static_cast<int>(left.size())));
  for (const auto& [id, range] : left) {
    rd_kafka_topic_partition_list_add(list.get(), id.topic.c_str(), id.partition)->offset =
        range.from;
  }
  const auto code = rd_kafka_assign(client_->raw(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return client_->failure(code);
  auto heard = Monotonic::now();
  Result<void> done;
  while (!left.empty() && done) {
    auto some = poll(left, take);
    if (!some) done = std::move(some).failure();
    if (some && *some) heard = Monotonic::now();
    if (done && Monotonic::now() - heard > silence_max)
      done = client_->failure(RD_KAFKA_RESP_ERR__TIMED_OUT);
  }
  rd_kafka_assign(client_->raw(), nullptr);
  return done;
}

// One message or event. False: nothing came.
Result<bool> LetterIndex::poll(Ranges& left, const Take& take) {
  const Message message(rd_kafka_consumer_poll(client_->raw(), 100));
  if (!message) return false;
  const auto at = message->rkt == nullptr
                      ? left.end()
                      : left.find({rd_kafka_topic_name(message->rkt), message->partition});
  if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    // Behind the last record there may be transaction markers, which are never given.
    if (at != left.end() && message->offset >= at->second.end) left.erase(at);
    return true;
  }
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    Failure failure = client_->failure(message->err);
    if (failure.retryable()) return false;
    return failure;
  }
  if (at == left.end()) return true;
  const bool inside = message->offset < at->second.end;
  if (inside) take(*message);
  if (message->offset + 1 >= at->second.end) left.erase(at);
  return true;
}

}  // namespace flow::kafka
