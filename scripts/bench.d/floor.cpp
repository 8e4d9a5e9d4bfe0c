// The least that Kafka itself costs, without any of flow: bare loops over librdkafka.
//   floor create BROKER TOPIC PARTITIONS     floor drop BROKER TOPIC
//   floor produce BROKER TOPIC FILE          each line a message, its key the first number in it
//   floor consume BROKER TOPIC ROWS          reads and forgets
//   floor copy BROKER FROM TO ROWS           reads and writes on unchanged
//   floor check BROKER TOPIC                 counts and sums what a committed reader sees, as JSON
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <librdkafka/rdkafka.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "floor: %s\n", what.c_str());
  std::exit(1);
}

rd_kafka_t* client(rd_kafka_type_t type,
                   std::initializer_list<std::pair<const char*, const char*>> properties,
                   void (*delivered)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr) {
  char why[256];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) fail(why);
  }
  if (delivered != nullptr) rd_kafka_conf_set_dr_msg_cb(conf, delivered);
  rd_kafka_t* made = rd_kafka_new(type, conf, why, sizeof why);
  if (made == nullptr) fail(why);
  return made;
}

class Producer {
 public:
  Producer(const char* broker, const char* topic)
      : client_(client(RD_KAFKA_PRODUCER,
                       {{"bootstrap.servers", broker},
                        {"log_level", "3"},
                        {"acks", "all"},
                        {"enable.idempotence", "true"},
                        {"linger.ms", "5"},
                        {"partitioner", "murmur2_random"},
                        {"queue.buffering.max.messages", "500000"}},
                       [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
                         if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                           fail(rd_kafka_err2str(message->err));
                       })),
        topic_(rd_kafka_topic_new(client_, topic, nullptr)) {}
  ~Producer() {
    rd_kafka_topic_destroy(topic_);
    rd_kafka_destroy(client_);
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void add(const void* key, std::size_t key_size, const void* value, std::size_t size) {
    while (rd_kafka_produce(topic_, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                            const_cast<void*>(value), size, key, key_size, nullptr) != 0) {
      if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        fail(rd_kafka_err2str(rd_kafka_last_error()));
      rd_kafka_poll(client_, 10);
    }
    rd_kafka_poll(client_, 0);
  }
  void finish() {
    if (rd_kafka_flush(client_, 120'000) != RD_KAFKA_RESP_ERR_NO_ERROR) fail("the flush timed out");
  }

 private:
  rd_kafka_t* client_;
  rd_kafka_topic_t* topic_;
};

// Calls use(message) for each message from the start of the topic, until `rows` or the end of every
// partition.
void consume(const char* broker, const char* topic, std::uint64_t rows,
             const std::function<void(const rd_kafka_message_t&)>& use) {
  rd_kafka_t* reader = client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", broker},
                                                  {"log_level", "3"},
                                                  {"group.id", "floor"},
                                                  {"enable.auto.commit", "false"},
                                                  {"enable.partition.eof", "true"},
                                                  {"queued.min.messages", "10000000"},
                                                  {"queued.max.messages.kbytes", "1048576"},
                                                  {"fetch.message.max.bytes", "10485760"}});
  const rd_kafka_metadata_t* metadata = nullptr;
  rd_kafka_topic_t* handle = rd_kafka_topic_new(reader, topic, nullptr);
  if (rd_kafka_metadata(reader, 0, handle, &metadata, 10'000) != RD_KAFKA_RESP_ERR_NO_ERROR)
    fail("no metadata");
  int open = metadata->topics[0].partition_cnt;
  if (open == 0) fail(std::string("no topic ") + topic);
  rd_kafka_topic_partition_list_t* all = rd_kafka_topic_partition_list_new(open);
  for (int partition = 0; partition < open; ++partition) {
    rd_kafka_topic_partition_list_add(all, topic, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
  }
  rd_kafka_assign(reader, all);
  while (rows > 0 && open > 0) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(reader, 30'000);
    if (message == nullptr) fail("nothing came for 30 s");
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      --open;
    } else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      fail(rd_kafka_message_errstr(message));
    } else {
      use(*message);
      --rows;
    }
    rd_kafka_message_destroy(message);
  }
  rd_kafka_topic_partition_list_destroy(all);
  rd_kafka_metadata_destroy(metadata);
  rd_kafka_topic_destroy(handle);
  rd_kafka_consumer_close(reader);
  rd_kafka_destroy(reader);
}

void produce(const char* broker, const char* topic, const char* path) {
  Producer producer(broker, topic);
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find_first_of("0123456789");
    const std::size_t end = line.find_first_not_of("0123456789", begin);
    producer.add(line.data() + begin, end - begin, line.data(), line.size());
  }
  producer.finish();
}

void copy(const char* broker, const char* from, const char* to, std::uint64_t rows) {
  Producer producer(broker, to);
  consume(broker, from, rows, [&](const rd_kafka_message_t& message) {
    producer.add(message.key, message.key_len, message.payload, message.len);
  });
  producer.finish();
}

// The raw text after "name": up to the comma or brace; a quoted value without its quotes.
std::string_view field(std::string_view json, std::string_view name) {
  const std::string quoted = "\"" + std::string(name) + "\":";
  std::size_t at = json.find(quoted);
  if (at == std::string_view::npos) fail("no " + std::string(name) + " in " + std::string(json));
  at += quoted.size();
  while (json[at] == ' ') ++at;
  if (json[at] == '"') return json.substr(at + 1, json.find('"', at + 1) - at - 1);
  return json.substr(at, json.find_first_of(",}", at) - at);
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c != '.') value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

void check(const char* broker, const char* topic) {
  std::uint64_t rows = 0, ids = 0, ops = 0, cents = 0, text = 0, lower = 0;
  std::vector<bool> seen;
  consume(broker, topic, UINT64_MAX, [&](const rd_kafka_message_t& message) {
    const std::string_view json(static_cast<const char*>(message.payload), message.len);
    const std::uint64_t id = number(field(json, "order_id"));
    if (id >= seen.size()) seen.resize(id * 2 + 1024);
    ids += seen[id] ? 0 : 1;
    seen[id] = true;
    ++rows;
    ops += number(field(json, "op"));
    cents += number(field(json, "amount"));
    for (const char* name : {"status", "note"}) {
      for (const char c : field(json, name)) text += (c & 0xC0) == 0x80 ? 0 : 1;
    }
    for (const char c : field(json, "status"))
      lower += std::islower(static_cast<unsigned char>(c)) ? 1 : 0;
  });
  std::printf(
      "{\"rows\": %lu, \"ids\": %lu, \"ops\": %lu, \"cents\": %lu, \"text\": %lu, \"lower\": "
      "%lu}\n",
      rows, ids, ops, cents, text, lower);
}

void administrate(const char* broker, const char* topic, int partitions) {
  char why[256];
  rd_kafka_t* admin = client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", broker}});
  rd_kafka_queue_t* queue = rd_kafka_queue_new(admin);
  if (partitions > 0) {
    rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic, partitions, 1, why, sizeof why);
    rd_kafka_CreateTopics(admin, &wanted, 1, nullptr, queue);
    rd_kafka_NewTopic_destroy(wanted);
  } else {
    rd_kafka_DeleteTopic_t* unwanted = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_DeleteTopics(admin, &unwanted, 1, nullptr, queue);
    rd_kafka_DeleteTopic_destroy(unwanted);
  }
  rd_kafka_event_t* answer = rd_kafka_queue_poll(queue, 30'000);
  if (answer == nullptr || rd_kafka_event_error(answer) != RD_KAFKA_RESP_ERR_NO_ERROR)
    fail("no answer");
  if (partitions > 0) {
    std::size_t count = 0;
    const auto** results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(answer), &count);
    if (rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      fail(rd_kafka_topic_result_error_string(results[0]));
    }
  }
  rd_kafka_event_destroy(answer);
  rd_kafka_queue_destroy(queue);
  rd_kafka_destroy(admin);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "create" && argc == 5)
    administrate(argv[2], argv[3], std::atoi(argv[4]));
  else if (what == "drop" && argc == 4)
    administrate(argv[2], argv[3], 0);
  else if (what == "produce" && argc == 5)
    produce(argv[2], argv[3], argv[4]);
  else if (what == "consume" && argc == 5)
    consume(argv[2], argv[3], std::strtoull(argv[4], nullptr, 10), [](const auto&) {});
  else if (what == "copy" && argc == 6)
    copy(argv[2], argv[3], argv[4], std::strtoull(argv[5], nullptr, 10));
  else if (what == "check" && argc == 4)
    check(argv[2], argv[3]);
  else
    fail("see the head of floor.cpp for the ways to call it");
  return 0;
}
