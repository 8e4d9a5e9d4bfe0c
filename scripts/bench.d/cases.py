"""The cases of scripts/bench: the pipeline that flow runs, and the floors beside it."""
COLUMNS = ["order_id", "op", "customer_id", "status", "amount", "currency", "created_at", "note"]

PG_TABLE = """CREATE TABLE orders (order_id bigint{key}, op bigint NOT NULL, customer_id bigint NOT NULL, status text NOT NULL,
  amount numeric(12,2) NOT NULL, currency text NOT NULL, created_at timestamptz NOT NULL, note text)"""
UPDATES = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])

KAFKA_SOURCE = """source: {{kind: kafka, brokers: "{broker}", topics: [{topic}], group: {group}, start: earliest}}
format: json
"""
FILE_SOURCE = """source: {{kind: file, path: "{jsonl}"}}
format: json
"""
PG_TARGET = """targets: [{{kind: postgres, url: "{postgres}", table: public.orders, mode: {mode}{key}}}]
"""
SQLITE_TARGET = """columns:
  order_id: {{type: bigint, required: true}}
  op: {{type: bigint}}
  customer_id: {{type: bigint}}
  status: {{type: text}}
  amount: {{type: "numeric(12,2)"}}
  currency: {{type: text}}
  created_at: {{type: timestamptz}}
  note: {{type: text}}
targets: [{{kind: sqlite, url: "sqlite:out.db", table: orders, mode: merge, key: [order_id], create_table: true}}]
"""
KAFKA_TARGET = """transform:
  - sql: SELECT order_id, op, customer_id, upper(status) AS status, amount, currency, created_at, note FROM source
targets: [{{kind: kafka, brokers: "{broker}", topic: {out}}}]
"""
END = """state: sqlite:flow.db
"""

SQLITE_MERGE = """PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, op INTEGER, customer_id INTEGER, status TEXT, amount NUMERIC,
  currency TEXT, created_at TEXT, note TEXT);
CREATE TEMP TABLE line (text TEXT);
.mode ascii
.separator "\\037" "\\n"
.import "{jsonl}" line
INSERT INTO orders SELECT text->>'order_id', text->>'op', text->>'customer_id', text->>'status', text->>'amount',
  text->>'currency', text->>'created_at', text->>'note' FROM line WHERE true ORDER BY rowid
  ON CONFLICT (order_id) DO UPDATE SET """ + UPDATES + ";\n"

PG_MERGE = ["CREATE TEMP TABLE page (LIKE orders)", "\\copy page FROM '{csv}' CSV",
            "INSERT INTO orders SELECT DISTINCT ON (order_id) * FROM page ORDER BY order_id, op DESC "
            "ON CONFLICT (order_id) DO UPDATE SET " + UPDATES]


class Case:
    """truth: append or merge. result: postgres, sqlite or kafka, where to look afterwards."""

    def __init__(self, title, pipeline, truth, result, floors, source):
        self.title, self.pipeline, self.truth, self.result = title, pipeline, truth, result
        self.floors, self.source = floors, source


def psql_append(at):
    return ["psql", "-X", "-q", at["postgres"], "-c", "\\copy orders FROM '{csv}' CSV".format(**at)]


def psql_merge(at):
    command = ["psql", "-X", "-q", at["postgres"]]
    for statement in PG_MERGE:
        command += ["-c", statement.format(**at)]
    return command


def sqlite_shell(at):
    script = at["dir"] / "merge.sql"
    script.write_text(SQLITE_MERGE.format(**at))
    return ["sqlite3", "-batch", "-init", str(script), str(at["dir"] / "out.db"), ""]


def consume(at):
    return [at["floor"], "consume", at["broker"], at["topic"], str(at["rows"])]


def copy(at):
    return [at["floor"], "copy", at["broker"], at["topic"], at["out"], str(at["rows"])]


# Of the floors the first is the one that the ratio is taken to; one whose result is not the case's is marked None.
CASES = {
    "W1": Case("Kafka to Postgres, append", KAFKA_SOURCE + PG_TARGET + END, "append", "postgres",
               {"psql \\copy of a CSV": (psql_append, "postgres"), "librdkafka, consume": (consume, None)}, "kafka"),
    "W2": Case("Kafka to Postgres, merge", KAFKA_SOURCE + PG_TARGET + END, "merge", "postgres",
               {"psql \\copy and upsert": (psql_merge, "postgres"), "librdkafka, consume": (consume, None)}, "kafka"),
    "W3": Case("Kafka to Kafka, status in capitals", KAFKA_SOURCE + KAFKA_TARGET + END, "append", "kafka",
               {"librdkafka, consume and produce": (copy, "kafka unchanged")}, "kafka"),
    "W4": Case("JSONL file to SQLite, merge", FILE_SOURCE + SQLITE_TARGET + END, "merge", "sqlite",
               {"sqlite3 shell": (sqlite_shell, "sqlite")}, "file"),
    "W5": Case("JSONL file to Postgres, append", FILE_SOURCE + PG_TARGET + END, "append", "postgres",
               {"psql \\copy of a CSV": (psql_append, "postgres")}, "file"),
    "W6": Case("Kafka to SQLite, merge", KAFKA_SOURCE + SQLITE_TARGET + END, "merge", "sqlite",
               {"sqlite3 shell, from the file": (sqlite_shell, "sqlite"), "librdkafka, consume": (consume, None)}, "kafka"),
}
