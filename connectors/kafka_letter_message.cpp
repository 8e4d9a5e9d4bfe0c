#include "connectors/kafka_letter_message.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace flow::kafka {
namespace {

constexpr std::string_view prefix = "flow.dlq.";
constexpr std::string_view first_context = "flow.dlq.pipeline";
constexpr std::string_view connect_prefix = "__connect.errors.";
constexpr int offset_bits = 40;

std::string text(std::int64_t number) { return std::to_string(number); }

std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What Kafka Connect's own dead letters say, as far as there is such a thing here.
void add_connect_headers(std::vector<LetterHeader>& headers, const DeadLetter& letter) {
  const auto add = [&](std::string_view name, std::string value) {
    headers.push_back({std::string(connect_prefix) + std::string(name), std::move(value)});
  };
  const std::string_view stage = letter.stage == "decode"      ? "VALUE_CONVERTER"
                                 : letter.stage == "transform" ? "TRANSFORMATION"
                                                               : "TASK_PUT";
  add("topic", letter.origin.topic);
  add("partition", text(letter.origin.partition));
  add("offset", text(letter.offset.value));
  add("connector.name", letter.pipeline);
  add("task.id", "0");
  add("stage", std::string(stage));
  add("class.name", letter.target);
  add("exception.class.name", std::string(name_of(letter.cls)) + "." + letter.code);
  add("exception.message", letter.error);
  add("exception.stacktrace", "");
}

std::string_view context(const std::vector<LetterHeader>& headers, std::string_view name) {
  for (const LetterHeader& header : headers) {
    if (std::string_view(header.name).substr(prefix.size()) == name && header.value)
      return *header.value;
  }
  return {};
}

std::vector<LetterHeader> headers_of(const rd_kafka_message_t& message) {
  std::vector<LetterHeader> headers;
  rd_kafka_headers_t* all = nullptr;
  if (rd_kafka_message_headers(&message, &all) != RD_KAFKA_RESP_ERR_NO_ERROR) return headers;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(all, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    LetterHeader& header = headers.emplace_back();
    header.name = name;
    if (value != nullptr) header.value.emplace(static_cast<const char*>(value), size);
  }
  return headers;
}

std::optional<std::string> bytes_of(const void* bytes, std::size_t size) {
  if (bytes == nullptr) return std::nullopt;
  return std::string(static_cast<const char*>(bytes), size);
}

}  // namespace

std::vector<LetterHeader> message_headers(const DeadLetter& letter, DlqSpec::Headers which,
                                          LetterBody body) {
  std::vector<LetterHeader> headers = letter.headers;
  const auto add = [&](std::string_view name, std::string value) {
    headers.push_back({std::string(prefix) + std::string(name), std::move(value)});
  };
  add("pipeline", letter.pipeline);
  add("version", letter.version);
  add("target", letter.target);
  add("topic", letter.origin.topic);
  add("partition", text(letter.origin.partition));
  add("offset", text(letter.offset.value));
  add("timestamp", text(letter.timestamp_ms));
  add("stage", letter.stage);
  add("class", std::string(name_of(letter.cls)));
  add("code", letter.code);
  add("error", letter.error);
  add("attempts", text(letter.attempts));
  add("first", text(letter.first_failed_ms));
  add("last", text(letter.last_failed_ms));
  add("run", letter.run_id);
  add("operation_id", letter.operation_id);
  if (body == LetterBody::notice) {
    add("note", "too large for this topic: kept whole in the table of the state");
  }
  if (which == DlqSpec::Headers::kafka_connect) add_connect_headers(headers, letter);
  return headers;
}

std::optional<DeadLetter> letter_of(const rd_kafka_message_t& message) {
  DeadLetter letter;
  letter.headers = headers_of(message);
  const auto last = std::find_if(letter.headers.rbegin(), letter.headers.rend(),
                                 [](const LetterHeader& h) { return h.name == first_context; });
  if (last == letter.headers.rend()) return std::nullopt;
  const auto split = last.base() - 1;
  std::vector<LetterHeader> said(std::make_move_iterator(split),
                                 std::make_move_iterator(letter.headers.end()));
  letter.headers.erase(split, letter.headers.end());
  std::erase_if(said, [](const LetterHeader& h) { return !h.name.starts_with(prefix); });
  if (!context(said, "note").empty()) return std::nullopt;
  const auto word = [&](std::string_view name) { return std::string(context(said, name)); };
  const auto number = [&](std::string_view name) { return number_of(context(said, name)); };
  letter.id = letter_id(message.partition, message.offset);
  letter.pipeline = word("pipeline");
  letter.version = word("version");
  letter.target = word("target");
  letter.origin = {word("topic"), static_cast<std::int32_t>(number("partition"))};
  letter.offset = {number("offset")};
  letter.timestamp_ms = number("timestamp");
  letter.stage = word("stage");
  letter.cls = failure_class_named(word("class")).value_or(FailureClass::invalid);
  letter.code = word("code");
  letter.error = word("error");
  letter.attempts = number("attempts");
  letter.first_failed_ms = number("first");
  letter.last_failed_ms = number("last");
  letter.run_id = word("run");
  letter.operation_id = word("operation_id");
  letter.key = bytes_of(message.key, message.key_len);
  letter.value = bytes_of(message.payload, message.len);
  return letter;
}

std::int64_t letter_id(std::int32_t partition, std::int64_t offset) {
  return ((std::int64_t{partition} + 1) << offset_bits) + offset;
}

PartitionId letter_partition(const std::string& topic, std::int64_t id) {
  return {topic, static_cast<std::int32_t>((id >> offset_bits) - 1)};
}

std::int64_t letter_offset(std::int64_t id) { return id & ((std::int64_t{1} << offset_bits) - 1); }

}  // namespace flow::kafka
