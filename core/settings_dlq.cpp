#include "core/settings_dlq.h"

#include <array>

// Choices stand in the order of the enum that they fill.

namespace flow {
namespace {

using T = SettingType;
using Scope = const SettingScope&;
using Value = const SettingValue&;

const std::array table{
    Setting{.path = "dlq_store",
            .type = T::choice,
            .fallback = "auto",
            .choices = "auto|table|topic",
            .doc = "Where dead letters are kept: table is a table of the state, topic is "
                   "dead_letter_topic; auto is the topic when one is named, else the table.",
            .set = [](Scope s,
                      Value v) { s.pipeline->dlq.store = static_cast<DlqSpec::Store>(v.number); }},
    Setting{.path = "dead_letter_topic",
            .type = T::text,
            .doc = "The topic for dead letters, on the brokers of the source, else of the first "
                   "Kafka target. It must exist.",
            .set = [](Scope s, Value v) { s.pipeline->dlq.topic = v.text; }},
    Setting{
        .path = "dlq_headers",
        .type = T::choice,
        .fallback = "flow",
        .choices = "flow|kafka-connect",
        .doc = "The headers that say where a letter in the topic comes from and why: flow.dlq.*, "
               "or with kafka-connect also the __connect.errors.* that other tools read.",
        .set = [](Scope s,
                  Value v) { s.pipeline->dlq.headers = static_cast<DlqSpec::Headers>(v.number); }},
    Setting{.path = "dlq_oversize",
            .type = T::choice,
            .fallback = "fail",
            .choices = "fail|truncate_to_table",
            .doc =
                "What a letter that is too large for the topic gets: fail stops the run, "
                "truncate_to_table keeps it whole in the table of the state and puts it into the "
                "topic without its value.",
            .set =
                [](Scope s, Value v) {
                  s.pipeline->dlq.oversize = static_cast<DlqSpec::Oversize>(v.number);
                }},
    Setting{
        .path = "dlq_max_attempts",
        .type = T::integer,
        .fallback = "3",
        .min = 1,
        .max = 1000,
        .doc = "How often a record is tried before it is a dead letter, where trying again can "
               "help; the first time counts. Restarts do not begin anew.",
        .set = [](Scope s, Value v) { s.pipeline->dlq.max_attempts = static_cast<int>(v.number); }},
    Setting{.path = "dlq_limit",
            .type = T::section,
            .doc = "When dead letters are too many to be bad records: past one of these the run "
                   "stops with exit code 65, before the batch."},
    Setting{.path = "dlq_limit.of_batch",
            .type = T::percent,
            .fallback = "50%",
            .min = 0,
            .max = 100,
            .doc = "The part of a batch; 0%: no limit.",
            .set = [](Scope s,
                      Value v) { s.pipeline->dlq.of_batch_percent = static_cast<int>(v.number); }},
    Setting{
        .path = "dlq_limit.in_a_row",
        .type = T::integer,
        .fallback = "1000",
        .min = 0,
        .max = 1'000'000'000,
        .doc = "Records one after the other, across batches; 0: no limit.",
        .set = [](Scope s,
                  Value v) { s.pipeline->dlq.in_a_row = static_cast<std::uint64_t>(v.number); }},
    Setting{.path = "dlq_limit.per_run",
            .type = T::integer,
            .fallback = "0",
            .min = 0,
            .max = 1'000'000'000'000,
            .doc = "Dead letters of one run; 0: no limit.",
            .set = [](Scope s,
                      Value v) { s.pipeline->dlq.per_run = static_cast<std::uint64_t>(v.number); }},
    Setting{.path = "crash_loop_limit",
            .type = T::integer,
            .fallback = "0",
            .min = 0,
            .max = 1000,
            .doc = "After so many runs in a row that died at the same record, it is set aside as a "
                   "dead letter; 0: never.",
            .set = [](Scope s,
                      Value v) { s.pipeline->dlq.crash_loop_limit = static_cast<int>(v.number); }},
};

}  // namespace

std::span<const Setting> dead_letter_settings() { return table; }

}  // namespace flow
