"""The cases of scripts/bench about dead letters: how fast bad records are set aside, listed and replayed.

A pipeline whose column amount is read from a field that no record has makes a letter of each record; the same pipeline
with the field's right name is what they are replayed through.
"""
import json
import shutil
import sqlite3
import sys

from cases import PG_TABLE, PG_TARGET

COLUMNS = """columns:
  order_id: {{type: bigint, required: true}}
  op: {{type: bigint}}
  customer_id: {{type: bigint}}
  status: {{type: text}}
  amount: {{from: {amount}, type: "numeric(12,2)", required: true}}
  currency: {{type: text}}
  created_at: {{type: timestamptz}}
  note: {{type: text}}
"""
PIPELINE = """name: bench
source: {{kind: file, path: "{jsonl}"}}
format: json
transform_on_error: dlq
dlq_limit: {{of_batch: 0%, in_a_row: 0, per_run: 0}}
""" + COLUMNS
END = "state: sqlite:flow.db\n"
TARGETS = {
    "sqlite": """targets: [{{kind: sqlite, url: "sqlite:out.db", table: orders, create_table: true}}]
""",
    "postgres": PG_TARGET,
}


class DlqCase:
    """bad: every how-many-th record cannot become a row (0: none). refused: because the table's CHECK is broken,
    otherwise because its amount is no number. step: run, list or replay, what is timed."""

    def __init__(self, title, step, target, bad=1, refused=False):
        self.title, self.step, self.target, self.bad, self.refused = title, step, target, bad, refused
        self.floors = {}


def spoiled(bench, rows, case):
    """The orders with one in `bad` spoiled; the file, and how many are bad."""
    orders = bench.orders(rows, False)["jsonl"]
    if case.bad == 0:
        return orders, 0
    path = bench.work / f"orders-{rows}-{case.bad}-{'refused' if case.refused else 'cast'}.jsonl"
    count = 0
    if path.exists():
        return path, rows // case.bad
    with open(orders, encoding="utf-8") as good, open(path, "w", encoding="utf-8") as out:
        for number, line in enumerate(good, 1):
            if number % case.bad == 0:
                order = json.loads(line)
                order["amount"] = -1 if case.refused else "n/a"
                line = json.dumps(order, ensure_ascii=False) + "\n"
                count += 1
            out.write(line)
    return path, count


def write_pipeline(directory, name, case, at, amount):
    mode = {"mode": "append", "key": ""}
    text = (PIPELINE + TARGETS[case.target] + END).format(**at, **mode, amount=amount)
    (directory / name).write_text(text)


def letters(directory, state):
    with sqlite3.connect(directory / "flow.db") as database:
        return database.execute("SELECT count(*) FROM dead_letters WHERE state = ?", (state,)).fetchone()[0]


def rows_written(bench, case, directory):
    if case.target == "postgres":
        return int(bench.sql("SELECT count(*) FROM orders"))
    with sqlite3.connect(directory / "out.db") as database:
        return database.execute("SELECT count(*) FROM orders").fetchone()[0]


def expect(what, got, want):
    if got != want:
        sys.exit(f"WRONG RESULT: {what}: want {want:,}, got {got:,}")


def prepare_table(bench, case):
    if case.target == "postgres":
        table = PG_TABLE.format(key="").replace("amount numeric(12,2) NOT NULL",
                                                "amount numeric(12,2) NOT NULL CHECK (amount >= 0)")
        bench.sql("DROP TABLE IF EXISTS orders", table, "CHECKPOINT")


def run_dlq(bench, case, rows):
    """One run, checked; what the timed step took."""
    bench.count += 1
    directory = bench.work / f"run-{bench.count}"
    directory.mkdir()
    flow = str(bench.given.flow)
    prepare_table(bench, case)
    whole = case.step != "run"  # every record a letter first
    jsonl, bad = (bench.orders(rows, False)["jsonl"], rows) if whole else spoiled(bench, rows, case)
    at = {"jsonl": jsonl, "postgres": bench.postgres}
    write_pipeline(directory, "pipeline.yaml", case, at, "$.amuont" if whole else "$.amount")
    took = bench.measure([flow, "run", "-q", "--until-end", "pipeline.yaml"], directory)
    expect("pending letters", letters(directory, "pending"), bad)
    if case.step == "list":
        took = bench.measure([flow, "dlq", "list", "--state", "sqlite:flow.db"], directory)
    if case.step == "replay":
        write_pipeline(directory, "pipeline.yaml", case, at, "$.amount")
        took = bench.measure([flow, "dlq", "replay", "pipeline.yaml", "--yes"], directory)
        expect("replayed letters", letters(directory, "replayed"), rows)
    want = {"run": rows - bad, "list": 0, "replay": rows}[case.step]
    expect("rows", rows_written(bench, case, directory), want)
    took.update(rows=rows, rate=round(rows / took["seconds"]), right=True)
    shutil.rmtree(directory)
    return took


DLQ_CASES = {
    "dlq-0": DlqCase("JSONL file to SQLite, no bad record", "run", "sqlite", 0),
    "dlq-0.1": DlqCase("JSONL file to SQLite, 0.1 % bad", "run", "sqlite", 1000),
    "dlq-10": DlqCase("JSONL file to SQLite, 10 % bad", "run", "sqlite", 10),
    "dlq-100": DlqCase("JSONL file to SQLite, all bad", "run", "sqlite", 1),
    "dlq-pg-0": DlqCase("JSONL file to Postgres, no bad record", "run", "postgres", 0),
    "dlq-pg-0.1": DlqCase("JSONL file to Postgres, 0.1 % refused", "run", "postgres", 1000, True),
    "dlq-pg-10": DlqCase("JSONL file to Postgres, 10 % refused", "run", "postgres", 10, True),
    "dlq-list": DlqCase("flow dlq list, a letter each row", "list", "sqlite"),
    "dlq-replay": DlqCase("replay, SQLite to SQLite", "replay", "sqlite"),
    "dlq-replay-pg": DlqCase("replay, SQLite to Postgres", "replay", "postgres"),
}
