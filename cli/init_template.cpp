#include "cli/init_template.h"

#include <array>
#include <string_view>

namespace flow {
namespace {

struct Part {
  std::string_view kind;
  std::string_view text;
};

constexpr std::string_view head =
    R"yaml(# A pipeline of flow. Every setting is described in flow-pipeline(5).
#   flow check FILE            what is wrong with it, with line and column
#   flow explain FILE          what can repeat and what cannot be lost
#   flow run FILE

# Names the pipeline in its history and its state.
name: orders

)yaml";

constexpr std::array<Part, 2> sources{{{"kafka", R"yaml(source:
  kind: kafka
  # ${NAME} takes a variable of the environment, ${NAME:-text} has a default.
  brokers: ${KAFKA_BROKERS:-localhost:9092}
  topics: [orders]
  # The consumer group; its committed offsets are the position.
  group: flow.orders
  # Where the group has no position yet: earliest, latest or error.
  start: earliest
  # properties:
  #   security.protocol: SASL_SSL
  #   sasl.mechanism: PLAIN
  #   sasl.username: orders
  #   sasl.password: ${file:/run/secrets/kafka}

)yaml"},
                                       {"file", R"yaml(source:
  kind: file
  # Globs are read in the order of their names; relative to this file. - is standard input.
  path: orders-*.jsonl

)yaml"}}};

constexpr std::string_view format_part = R"yaml(# What a record holds: json, csv or raw.
format: json

)yaml";

constexpr std::string_view columns_part =
    R"yaml(# The columns to make, and from what. The types are what a new table is created with.
columns:
  order_id: {from: $.order_id, type: bigint, required: true}
  status: {from: $.status, type: text}
  amount: {from: $.amount, type: "numeric(12,2)"
}
  updated_at: {from: $.updated_at, type: timestamptz}

)yaml";

constexpr std::string_view on_error_part =
    R"yaml(# A record that cannot be read or stored: fail stops just before it, drop counts it and goes on,
# dlq sets it aside with the reason, to be looked at and replayed with flow dlq.
transform_on_error: fail

)yaml";

constexpr std::array<Part, 5> targets{{{"postgres", R"yaml(targets:
  - kind: postgres
    # In a URL, what ${...} gives is encoded: a password may hold any sign.
    url: postgres://${PGUSER:-flow}:${PGPASSWORD:-}@${PGHOST:-localhost}:5432/warehouse
    table: public.orders
    # One row for each key, the last record wins; append would add each record.
    mode: merge
    key: [order_id]
    create_table: true
)yaml"},
                                       {"sqlite", R"yaml(targets:
  - kind: sqlite
    url: sqlite:warehouse.db
    table: orders
    # One row for each key, the last record wins; append would add each record.
    mode: merge
    key: [order_id]
    create_table: true
)yaml"},
                                       {"kafka", R"yaml(targets:
  - kind: kafka
    brokers: ${KAFKA_BROKERS:-localhost:9092}
    topic: orders.clean
    # Messages with the same key keep their order.
    message_key: $.order_id
)yaml"},
                                       {"file", R"yaml(targets:
  - kind: file
    path: clean.jsonl
    format: jsonl
)yaml"},
                                       {"stdout", R"yaml(targets:
  - kind: stdout
    format: jsonl
)yaml"}}};

template <std::size_t N>
std::string_view part_of(const std::array<Part, N>& parts, std::string_view kind) {
  for (const Part& part : parts) {
    if (part.kind == kind) return part.text;
  }
  return "";
}

}  // namespace

std::string init_template(const std::string& from_kind, const std::string& to_kind) {
  const std::string_view source = part_of(sources, from_kind);
  const std::string_view target = part_of(targets, to_kind);
  if (source.empty() || target.empty()) return "";
  const bool table = to_kind == "postgres" || to_kind == "sqlite";
  std::string out(head);
  out.append(source).append(format_part);
  if (table) out.append(columns_part);
  return out.append(on_error_part).append(target);
}

}  // namespace flow
