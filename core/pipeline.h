#pragma once
// A pipeline as the file says it, checked and with every default filled in. Built by
// cli/pipeline_file.cpp from the settings table (core/settings.h); read by contract, loop and
// connectors. Owns all its text.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/column.h"

namespace flow {

using Millis = std::chrono::milliseconds;

enum class StartAt : std::uint8_t { earliest, latest, error };
enum class OnGap : std::uint8_t { stop, earliest, latest };
enum class OnMissing : std::uint8_t { fail, wait };

// Units: records, payload bytes, time that a record waits at most while the source goes on
// delivering.
struct BatchLimits {
  std::size_t records = 50'000;
  std::size_t bytes = std::size_t{8} << 20;
  Millis wait{500};
};

struct KafkaSourceSpec {
  std::string brokers;
  std::vector<std::string> topics;  // names; a name that starts with ^ is a regex
  std::string group;                // default flow.<name>
  StartAt start = StartAt::earliest;
  OnGap on_gap = OnGap::stop;
  OnMissing on_missing = OnMissing::fail;
  bool cooperative = true;  // rebalance: cooperative | eager
  std::map<std::string, std::string> properties;
};

enum class Compression : std::uint8_t {
  automatic,
  none,
  gzip,
  zstd
};  // automatic: by the first bytes

struct FileSourceSpec {
  std::vector<std::string> paths;  // absolute; globs; "-" is stdin
  Compression compression = Compression::automatic;
};

enum class FormatKind : std::uint8_t { json, csv, raw };

struct CsvSpec {
  char delimiter = ',';
  bool header = true;                // first line names the columns
  std::vector<std::string> columns;  // names when there is no header
};

struct SourceSpec {
  std::string kind;  // "kafka" | "file"
  KafkaSourceSpec kafka;
  FileSourceSpec file;
  BatchLimits batch;
};

enum class TimeUnit : std::uint8_t { none, s, ms, us, ns };  // of a number in a time column

// Where a column's value comes from. path: steps below the record's value ("$.a.b[2]" -> a, b,
// [2]).
struct FieldSource {
  enum class From : std::uint8_t {
    path,
    value,
    key,
    topic,
    partition,
    offset,
    timestamp,
    header,
    constant
  };
  From from = From::path;
  std::vector<std::string> path;  // steps; an array index is "[2]"
  std::string name;               // header name, or the text of a constant
  Type constant_type =
      Type::text;    // type of a constant as written: text, int64, float64/decimal, boolean
  std::string text;  // as written in the file: "$.a.b", "@headers.x"
};

struct ColumnSpec {
  std::string name;
  FieldSource from;
  std::optional<Type> type;             // needed by create_table; else the table's type counts
  Limits limits;                        // from "numeric(10,2)", "varchar(20)"
  bool required = false;                // on_missing: fail
  std::optional<FieldSource> fallback;  // default: constant when the field is missing
  TimeUnit unit = TimeUnit::none;       // a number in a time column is refused without it
  std::string zone;  // for times without zone: "UTC", "+05:30"; IANA names; empty: refused
};

struct TransformSpec {
  std::string sql;  // SELECT ... FROM source [WHERE ...]
};

enum class Mode : std::uint8_t { append, merge };
enum class OnTombstone : std::uint8_t {
  erase,
  ignore,
  fail
};  // file words: delete | ignore | fail
enum class OutputFormat : std::uint8_t { jsonl, csv };

struct TargetSpec {
  std::string kind;   // postgres | sqlite | kafka | file | stdout
  std::string label;  // default: kind and table/topic/path, unique in the pipeline
  // postgres, sqlite
  std::string url;    // secret: may hold a password
  std::string table;  // "public.orders", quoted parts allowed: "\"Mixed\".\"Order Items\""
  Mode mode = Mode::append;
  std::vector<std::string> key;
  OnTombstone on_tombstone = OnTombstone::fail;
  bool create_table = false;
  // kafka
  std::string brokers;
  std::string topic;
  std::optional<FieldSource> message_key;  // key: expression; absent: the record's own key
  std::map<std::string, std::string> properties;
  // file, stdout
  std::string path;  // absolute
  OutputFormat format = OutputFormat::jsonl;
};

enum class Delivery : std::uint8_t { at_least_once, exactly_once, automatic };
enum class OnError : std::uint8_t { fail, drop, dlq };

// Where dead letters go and when they are too many. store: automatic is the table.
struct DlqSpec {
  enum class Store : std::uint8_t { automatic, table, topic };
  enum class Headers : std::uint8_t { flow, kafka_connect };
  enum class Oversize : std::uint8_t { fail, truncate_to_table };
  Store store = Store::automatic;
  std::string topic;    // dead_letter_topic
  std::string brokers;  // of it; default: the source's, else the Kafka target's
  std::map<std::string, std::string> properties;
  Headers headers = Headers::flow;
  Oversize oversize = Oversize::fail;
  int max_attempts = 3;  // dlq_max_attempts; the original emission is attempt 1
  int of_batch_percent =
      50;  // dlq_limit: past one of these the run stops with exit 65, 0: no limit
  std::uint64_t in_a_row = 1000;
  std::uint64_t per_run = 0;
  int crash_loop_limit = 0;  // runs that died at the same position; 0: off

  bool in_topic() const {
    return store == Store::topic || (store == Store::automatic && !topic.empty());
  }
};

// Retry of transient failures. for_: zero means for ever.
struct RetrySpec {
  Millis initial{200};
  Millis max{30'000};
  double multiplier = 2.0;
  Millis for_{0};
};

struct Pipeline {
  std::string name;
  std::string file;    // the pipeline file's path, as given
  std::string digest;  // of the file's content without secrets: the pipeline's version
  SourceSpec source;
  FormatKind format = FormatKind::json;
  CsvSpec csv;
  std::vector<ColumnSpec> columns;  // empty: by name from the table
  std::vector<TransformSpec> transform;
  std::vector<TargetSpec> targets;
  Delivery delivery = Delivery::at_least_once;
  OnError on_error = OnError::fail;
  DlqSpec dlq;
  RetrySpec retry;
  Millis drain_timeout{30'000};
  std::string state;  // "sqlite:/abs/flow.db" or "postgres://..."; resolved, secret
};

}  // namespace flow
