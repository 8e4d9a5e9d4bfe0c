#include <array>

#include "core/settings.h"
#include "core/settings_dlq.h"

// The rows, in the order of the manual. Choices stand in the order of the enum that they fill.

namespace flow {
namespace {

using T = SettingType;
using Scope = const SettingScope&;
using Value = const SettingValue&;

constexpr std::string_view sql_kinds = "postgres|sqlite";
constexpr std::int64_t day_ms = 86'400'000;
constexpr std::int64_t gib = std::int64_t{1} << 30;

KafkaSourceSpec& kafka(Scope s) { return s.pipeline->source.kafka; }
std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) out += (out.empty() ? "" : ",") + part;
  }
  return out;
}

const std::array before_dead_letters{
    Setting{.path = "name",
            .type = T::text,
            .need = Need::required,
            .doc = "Names the pipeline in the run history, in its state and in its consumer group. "
                   "Letters, "
                   "digits, dot, dash and underscore.",
            .set = [](Scope s, Value v) { s.pipeline->name = v.text; }},
    Setting{.path = "source",
            .type = T::section,
            .need = Need::required,
            .doc = "Where the records come from."},
    Setting{.path = "source.kind",
            .type = T::choice,
            .need = Need::required,
            .choices = "kafka|file",
            .refused = "outbox=an outbox table cannot be read in this version",
            .doc = "The system that is read.",
            .set = [](Scope s, Value v) { s.pipeline->source.kind = v.text; }},
    Setting{.path = "source.brokers",
            .type = T::text_or_list,
            .kinds = "kafka",
            .need = Need::required,
            .doc = "The brokers to ask first, as host:port, commas between them.",
            .set = [](Scope s, Value v) { kafka(s).brokers = joined(v.list); }},
    Setting{.path = "source.topics",
            .type = T::text_list,
            .kinds = "kafka",
            .doc = "The topics to read. A name that begins with ^ is a regular expression. Either "
                   "topics or "
                   "topic is needed.",
            .set = [](Scope s, Value v) { kafka(s).topics = v.list; }},
    Setting{.path = "source.topic",
            .type = T::text,
            .kinds = "kafka",
            .doc = "Short for topics with one name.",
            .set = [](Scope s, Value v) { kafka(s).topics = {v.text}; }},
    Setting{.path = "source.group",
            .type = T::text,
            .kinds = "kafka",
            .dynamic_default = "flow.NAME, with the name of the pipeline",
            .doc = "The consumer group, whose committed offsets are the position.",
            .set = [](Scope s, Value v) { kafka(s).group = v.text; }},
    Setting{
        .path = "source.start",
        .type = T::choice,
        .kinds = "kafka",
        .fallback = "earliest",
        .choices = "earliest|latest|error",
        .doc =
            "Where to begin in a partition for which the group has no position; error: not at all.",
        .set = [](Scope s, Value v) { kafka(s).start = static_cast<StartAt>(v.number); }},
    Setting{.path = "source.on_gap",
            .type = T::choice,
            .kinds = "kafka",
            .fallback = "stop",
            .choices = "stop|earliest|latest",
            .doc = "What to do when the position is gone from the topic: stop and name the gap, or "
                   "go on from "
                   "the first or the next record.",
            .set = [](Scope s, Value v) { kafka(s).on_gap = static_cast<OnGap>(v.number); }},
    Setting{
        .path = "source.on_missing",
        .type = T::choice,
        .kinds = "kafka",
        .fallback = "fail",
        .choices = "fail|wait",
        .doc = "What to do when a topic does not exist, or a pattern matches none.",
        .set = [](Scope s, Value v) { kafka(s).on_missing = static_cast<OnMissing>(v.number); }},
    Setting{.path = "source.rebalance",
            .type = T::choice,
            .kinds = "kafka",
            .fallback = "cooperative",
            .choices = "cooperative|eager",
            .doc = "How partitions move between members of the group; the same for all members.",
            .set = [](Scope s, Value v) { kafka(s).cooperative = v.number == 0; }},
    Setting{.path = "source.properties",
            .type = T::properties,
            .kinds = "kafka",
            .doc = "Any librdkafka property, such as security.protocol or sasl.password. Those "
                   "that flow sets "
                   "itself are refused.",
            .set = [](Scope s, Value v) { kafka(s).properties = v.properties; }},
    Setting{
        .path = "source.path",
        .type = T::text_or_list,
        .kinds = "file",
        .need = Need::required,
        .doc = "Files to read, in the order of their names: paths, globs, or - for standard input.",
        .set = [](Scope s, Value v) { s.pipeline->source.file.paths = v.list; }},
    Setting{.path = "source.compression",
            .type = T::choice,
            .kinds = "file",
            .fallback = "auto",
            .choices = "auto|none|gzip|zstd",
            .doc = "How the files are compressed; auto: as their first bytes say.",
            .set =
                [](Scope s, Value v) {
                  s.pipeline->source.file.compression = static_cast<Compression>(v.number);
                }},
    Setting{
        .path = "source.batch",
        .type = T::section,
        .doc =
            "How much is read, written and committed together: until the first limit is reached."},
    Setting{.path = "source.batch.records",
            .type = T::integer,
            .fallback = "50000",
            .min = 1,
            .max = 10'000'000,
            .doc = "Records in a batch, at most.",
            .set =
                [](Scope s, Value v) {
                  s.pipeline->source.batch.records = static_cast<std::size_t>(v.number);
                }},
    Setting{.path = "source.batch.bytes",
            .type = T::size,
            .fallback = "8MiB",
            .min = 1024,
            .max = gib,
            .doc = "Bytes of payload in a batch, at most (the record that goes over is its last). "
                   "Also bounds "
                   "what the Kafka client reads ahead.",
            .set =
                [](Scope s, Value v) {
                  s.pipeline->source.batch.bytes = static_cast<std::size_t>(v.number);
                }},
    Setting{.path = "source.batch.wait",
            .type = T::duration,
            .fallback = "500ms",
            .min = 1,
            .max = day_ms,
            .doc = "How long a record waits at most for its batch to fill.",
            .set = [](Scope s, Value v) { s.pipeline->source.batch.wait = Millis(v.number); }},
    Setting{
        .path = "format",
        .type = T::choice,
        .fallback = "json",
        .choices = "json|csv|raw",
        .refused = "avro=Avro cannot be read in this version",
        .doc = "What a record's value is: one JSON object, one CSV line, or bytes that are not "
               "looked into.",
        .set = [](Scope s, Value v) { s.pipeline->format = static_cast<FormatKind>(v.number); }},
    Setting{.path = "csv",
            .type = T::section,
            .kinds = "csv",
            .doc = "How CSV lines are read (RFC 4180)."},
    Setting{.path = "csv.delimiter",
            .type = T::character,
            .kinds = "csv",
            .fallback = ",",
            .doc = "The character between fields, or the word tab.",
            .set = [](Scope s, Value v) { s.pipeline->csv.delimiter = v.text.front(); }},
    Setting{.path = "csv.header",
            .type = T::boolean,
            .kinds = "csv",
            .fallback = "true",
            .doc = "Whether the first line of a file names the columns.",
            .set = [](Scope s, Value v) { s.pipeline->csv.header = v.number != 0; }},
    Setting{.path = "csv.columns",
            .type = T::text_list,
            .kinds = "csv",
            .doc = "The names of the columns, in order, where there is no header.",
            .set = [](Scope s, Value v) { s.pipeline->csv.columns = v.list; }},
    Setting{.path = "columns",
            .type = T::named,
            .dynamic_default = "each column of the table from the field of its name",
            .doc = "The columns to make from a record, and from what: a map from each name to a "
                   "field, or to "
                   "the settings below."},
    Setting{.path = "columns.*", .type = T::section, .doc = "One column."},
    Setting{.path = "columns.*.from",
            .type = T::field,
            .dynamic_default = "$.NAME, with the name of the column",
            .doc = "The field: $.path.in.value[0], $ for the whole value, @key, @topic, "
                   "@partition, @offset, "
                   "@timestamp, @headers.NAME, or a constant: a number, true, false or 'text'.",
            .set = [](Scope s, Value v) { s.column->from = *v.field; }},
    Setting{.path = "columns.*.type",
            .type = T::column_type,
            .dynamic_default = "the type of the table's column",
            .doc = "The type, such as bigint, numeric(10,2), text or timestamptz. Needed for "
                   "create_table.",
            .set =
                [](Scope s, Value v) {
                  s.column->type = v.type;
                  s.column->limits = v.limits;
                }},
    Setting{
        .path = "columns.*.required",
        .type = T::boolean,
        .fallback = "false",
        .doc =
            "Whether a record without the field is a bad record rather than one with a null there.",
        .set = [](Scope s, Value v) { s.column->required = v.number != 0; }},
    Setting{
        .path = "columns.*.default",
        .type = T::default_value,
        .doc =
            "What stands in for a field that is missing (not for one that is null): a constant, or "
            "another field.",
        .set = [](Scope s, Value v) { s.column->fallback = v.field; }},
    Setting{.path = "columns.*.unit",
            .type = T::choice,
            .choices = "s|ms|us|ns",
            .doc = "The unit of a number in a time column; without it such a number is refused.",
            .set = [](Scope s, Value v) { s.column->unit = static_cast<TimeUnit>(v.number + 1); }},
    Setting{.path = "columns.*.zone",
            .type = T::text,
            .doc = "The zone of times that name none: UTC, +05:30 or Europe/Paris; without it such "
                   "a time is "
                   "refused where an instant is needed.",
            .set = [](Scope s, Value v) { s.column->zone = v.text; }},
    Setting{.path = "transform", .type = T::list, .doc = "Steps that rows go through, in order."},
    Setting{.path = "transform[]", .type = T::section, .doc = "One step."},
    Setting{.path = "transform[].sql",
            .type = T::sql,
            .need = Need::required,
            .doc = "SELECT ... FROM source [WHERE ...]: computes columns and filters rows.",
            .set = [](Scope s, Value v) { s.transform->sql = v.text; }},
    Setting{.path = "transform_on_error",
            .type = T::choice,
            .fallback = "fail",
            .choices = "fail|drop|dlq",
            .doc = "What a record that cannot be decoded, transformed, cast or stored gets: fail "
                   "stops just before it, drop counts it and goes on, dlq sets it aside as a dead "
                   "letter (flow-dlq(1)) and goes on.",
            .set = [](Scope s, Value v) { s.pipeline->on_error = static_cast<OnError>(v.number); }},
};

const std::array after_dead_letters{
    Setting{.path = "targets",
            .type = T::list,
            .need = Need::required,
            .doc = "Where the rows go. All targets are durable before the position moves."},
    Setting{.path = "targets[]", .type = T::section, .doc = "One target."},
    Setting{.path = "targets[].kind",
            .type = T::choice,
            .need = Need::required,
            .choices = "postgres|sqlite|kafka|file|stdout",
            .refused = "http=an HTTP API cannot be a target in this version",
            .doc = "The system that is written.",
            .set = [](Scope s, Value v) { s.target->kind = v.text; }},
    Setting{.path = "targets[].label",
            .type = T::text,
            .dynamic_default = "the kind, and the table, topic or path",
            .doc = "Names the target in messages and counts; no two alike.",
            .set = [](Scope s, Value v) { s.target->label = v.text; }},
    Setting{.path = "targets[].url",
            .type = T::text,
            .kinds = sql_kinds,
            .need = Need::required,
            .secrecy = Secrecy::url,
            .doc =
                "The database: postgres://user:password@host:port/database?sslmode=verify-full (or "
                "libpq's key=value text), or sqlite:PATH.",
            .set = [](Scope s, Value v) { s.target->url = v.text; }},
    Setting{.path = "targets[].table",
            .type = T::text,
            .kinds = sql_kinds,
            .need = Need::required,
            .doc = "The table, with its schema where it needs one: public.orders, "
                   "\"Mixed\".\"Order Items\".",
            .set = [](Scope s, Value v) { s.target->table = v.text; }},
    Setting{.path = "targets[].mode",
            .type = T::choice,
            .kinds = sql_kinds,
            .fallback = "append",
            .choices = "append|merge",
            .refused = "scd2=history tables are not in this version",
            .doc = "append adds each record as a row; merge keeps one row for each key, the last "
                   "record wins.",
            .set = [](Scope s, Value v) { s.target->mode = static_cast<Mode>(v.number); }},
    Setting{.path = "targets[].key",
            .type = T::text_list,
            .kinds = sql_kinds,
            .doc = "The columns that tell rows apart, for merge. The table needs a unique "
                   "constraint on them.",
            .set = [](Scope s, Value v) { s.target->key = v.list; }},
    Setting{
        .path = "targets[].on_tombstone",
        .type = T::choice,
        .kinds = sql_kinds,
        .fallback = "fail",
        .choices = "delete|ignore|fail",
        .doc =
            "What a record without a value does in a merge: delete the row of its key, nothing, or "
            "count as a bad record.",
        .set = [](Scope s,
                  Value v) { s.target->on_tombstone = static_cast<OnTombstone>(v.number); }},
    Setting{.path = "targets[].create_table",
            .type = T::boolean,
            .kinds = sql_kinds,
            .fallback = "false",
            .doc = "Whether to create the table when it does not exist, with the types of columns.",
            .set = [](Scope s, Value v) { s.target->create_table = v.number != 0; }},
    Setting{.path = "targets[].brokers",
            .type = T::text_or_list,
            .kinds = "kafka",
            .need = Need::required,
            .doc = "The brokers to ask first, as host:port, commas between them.",
            .set = [](Scope s, Value v) { s.target->brokers = joined(v.list); }},
    Setting{.path = "targets[].topic",
            .type = T::text,
            .kinds = "kafka",
            .need = Need::required,
            .doc = "The topic to write to.",
            .set = [](Scope s, Value v) { s.target->topic = v.text; }},
    Setting{.path = "targets[].message_key",
            .type = T::field,
            .kinds = "kafka",
            .dynamic_default = "the key of the record that was read",
            .doc = "The key of the message: a field, as in columns.",
            .set = [](Scope s, Value v) { s.target->message_key = v.field; }},
    Setting{.path = "targets[].properties",
            .type = T::properties,
            .kinds = "kafka",
            .doc = "Any librdkafka property, such as compression.type or sasl.password. Those that "
                   "flow sets "
                   "itself are refused.",
            .set = [](Scope s, Value v) { s.target->properties = v.properties; }},
    Setting{.path = "targets[].path",
            .type = T::text,
            .kinds = "file",
            .need = Need::required,
            .doc = "The file to write.",
            .set = [](Scope s, Value v) { s.target->path = v.text; }},
    Setting{
        .path = "targets[].format",
        .type = T::choice,
        .kinds = "file|stdout",
        .fallback = "jsonl",
        .choices = "jsonl|csv",
        .doc = "How a row is written: one JSON object a line, or CSV.",
        .set = [](Scope s, Value v) { s.target->format = static_cast<OutputFormat>(v.number); }},
    Setting{
        .path = "delivery",
        .type = T::choice,
        .fallback = "at_least_once",
        .choices = "at_least_once|exactly_once|auto",
        .doc = "The guarantee to hold: auto takes the strongest that source and targets allow; "
               "exactly_once where it cannot be had is refused before the first read.",
        .set = [](Scope s, Value v) { s.pipeline->delivery = static_cast<Delivery>(v.number); }},
    Setting{
        .path = "retry",
        .type = T::section,
        .doc = "How transient failures are tried again: after a random part of a time that grows."},
    Setting{.path = "retry.initial",
            .type = T::duration,
            .fallback = "200ms",
            .min = 1,
            .max = day_ms,
            .doc = "The longest wait before the first retry.",
            .set = [](Scope s, Value v) { s.pipeline->retry.initial = Millis(v.number); }},
    Setting{.path = "retry.max",
            .type = T::duration,
            .fallback = "30s",
            .min = 1,
            .max = day_ms,
            .doc = "The longest wait before any retry.",
            .set = [](Scope s, Value v) { s.pipeline->retry.max = Millis(v.number); }},
    Setting{.path = "retry.multiplier",
            .type = T::real,
            .fallback = "2",
            .min = 1,
            .max = 100,
            .doc = "What the wait grows by from one retry to the next.",
            .set = [](Scope s, Value v) { s.pipeline->retry.multiplier = v.real; }},
    Setting{.path = "retry.for",
            .type = T::duration,
            .dynamic_default = "for ever",
            .min = 1,
            .max = 366 * day_ms,
            .doc = "How long to go on before the run ends with exit code 69.",
            .set = [](Scope s, Value v) { s.pipeline->retry.for_ = Millis(v.number); }},
    Setting{.path = "drain_timeout",
            .type = T::duration,
            .fallback = "30s",
            .min = 1,
            .max = day_ms,
            .doc = "How long the batch in hand may take to finish after a signal to stop.",
            .set = [](Scope s, Value v) { s.pipeline->drain_timeout = Millis(v.number); }},
    Setting{.path = "state",
            .type = T::text,
            .dynamic_default = "sqlite:$XDG_STATE_HOME/flow/flow.db",
            .secrecy = Secrecy::url,
            .doc = "Where run history, file positions and locks are kept: sqlite:PATH or "
                   "postgres://... The "
                   "flag --state and the variable FLOW_STATE come before it.",
            .set = [](Scope s, Value v) { s.pipeline->state = v.text; }},
};

}  // namespace

std::span<const Setting> settings() {
  static const std::vector<Setting> table = [] {
    std::vector<Setting> all(before_dead_letters.begin(), before_dead_letters.end());
    const auto dlq = dead_letter_settings();
    all.insert(all.end(), dlq.begin(), dlq.end());
    all.insert(all.end(), after_dead_letters.begin(), after_dead_letters.end());
    return all;
  }();
  return table;
}

}  // namespace flow
