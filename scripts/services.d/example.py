"""A filled topic, an empty table and a pipeline between them, for trying things by hand."""
import json
import random
import tempfile

import kafka

ORDERS = 300
TABLE = """CREATE TABLE orders (order_id bigint PRIMARY KEY, customer text NOT NULL, status text NOT NULL,
  amount numeric(12, 2) NOT NULL, placed_at timestamptz NOT NULL, note text)"""
PIPELINE = """# Orders from the topic `orders` into the table `orders`: the last version of each order wins.
name: try-kafka-to-postgres
source:
  kind: kafka
  brokers: {brokers}
  topics: [orders]
  start: earliest
format: json
targets:
  - kind: postgres
    url: {url}
    table: public.orders
    mode: merge
    key: [order_id]
state: sqlite:try.db
"""


def orders():
    """Every order is placed; every third one is also shipped later, under the same key."""
    chance = random.Random(1)
    first = [{"order_id": number, "customer": chance.choice(["Ada", "Grace", "Łukasz", "美咲"]), "status": "placed",
              "amount": f"{chance.randrange(100, 99999) / 100:.2f}",
              "placed_at": f"2024-05-{1 + number % 28:02}T{number % 24:02}:00:00Z",
              "note": None if number % 5 else "leave at the door"} for number in range(1, ORDERS + 1)]
    return first + [{**order, "status": "shipped"} for order in first[::3]]


def create(directory, broker, database):
    """Needs both services up; the pipeline file is the last thing written."""
    at = broker.environment()["FLOW_TEST_KAFKA"]
    kafka.run_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", at, "--create", "--if-not-exists",
                   "--topic", "orders", "--partitions", "4")
    lines = "".join(f"{order['order_id']}\t{json.dumps(order, ensure_ascii=False)}\n" for order in orders())
    kafka.run_tool("org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", at, "--topic", "orders",
                   "--reader-property", "parse.key=true", stdin=lines)
    database.query("flow", TABLE)
    file = directory / "try-kafka-to-postgres.yaml"
    with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as part:
        part.write(PIPELINE.format(brokers=at, url=database.environment()["FLOW_TEST_POSTGRES"]))
    (directory / part.name).rename(file)
    return file
