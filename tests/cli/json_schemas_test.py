#!/usr/bin/env python3
"""What every command prints with --output json is what its published schema says: json_schemas_test.py FLOW

Files and SQLite only. The schemas are read strictly here: a member that a schema does not name is a fault.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

FLOW = pathlib.Path(sys.argv.pop(1)).absolute() if len(sys.argv) > 1 else None
SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "man" / "schemas"
PIPELINE = """
name: orders
source: {kind: file, path: "orders-*.jsonl"}
format: json
columns:
  order_id: {type: bigint, required: true}
  status: {type: text}
targets:
  - {kind: sqlite, label: warehouse, url: "sqlite:warehouse.db", table: orders, mode: merge, key: [order_id],
     create_table: true}
  - {kind: file, label: archive, path: archive.jsonl}
state: sqlite:flow.db
"""


def strict(schema):
    """The schema, with members that it does not name forbidden."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {name: strict(part) for name, part in schema.items()}
    if "properties" in out and "additionalProperties" not in out:
        out["additionalProperties"] = False
    return out


def schema_of(name):
    schema = json.loads((SCHEMAS / f"flow.{name}.1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return strict(schema)


class JsonSchemas(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="flow-schemas-")
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name)
        self.pipeline = self.file("orders.yaml", PIPELINE)

    def file(self, name, text):
        (self.dir / name).write_text(text)
        return name

    def orders(self, *lines):
        self.file("orders-1.jsonl", "".join(f"{line}\n" for line in lines))

    def start(self, *words):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.dir), "LANG": "C.UTF-8"}
        return subprocess.run([FLOW, *words], cwd=self.dir, env=environment, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60)

    def flow(self, *words, status=0):
        """The document that the command prints, after its exit status and its form are found right."""
        done = self.start(*words, "--output", "json")
        self.assertEqual(done.returncode, status, f"flow {' '.join(words)}: {done.stderr}")
        document = json.loads(done.stdout)
        name = re.fullmatch(r"flow\.([a-z.]+)/1", document["schema"])
        self.assertIsNotNone(name, document["schema"])
        try:
            jsonschema.validate(document, schema_of(name[1]), cls=jsonschema.Draft202012Validator)
        except jsonschema.ValidationError as fault:
            self.fail(f"flow {' '.join(words)}: {fault.json_path}: {fault.message}\n{done.stdout}")
        self.assertEqual(words[0], name[1].split(".")[0])
        return document

    def test_a_run_that_is_done(self):
        self.orders('{"order_id": 1, "status": "new"}', '{"order_id": 2, "status": "new"}')
        run = self.flow("run", self.pipeline)
        self.assertEqual((run["status"], run["read"], run["error"]), ("done", 2, None))
        self.assertEqual([target["target"] for target in run["targets"]], ["warehouse", "archive"])
        for target in run["targets"]:
            self.assertEqual((target["read"], target["written"], target["pending"]), (2, 2, 0))
        self.assertEqual([span["next"] for span in run["positions"]], [(self.dir / "orders-1.jsonl").stat().st_size])

    def test_a_run_with_nothing_to_read(self):
        self.orders('{"order_id": 1}')
        self.flow("run", self.pipeline)
        again = self.flow("run", self.pipeline)
        self.assertEqual((again["status"], again["read"]), ("done", 0))

    def test_a_run_that_fails_at_a_bad_record(self):
        self.orders('{"order_id": 1}', '{"order_id": "two"}', '{"order_id": 3}')
        run = self.flow("run", self.pipeline, status=65)
        self.assertEqual(run["status"], "failed")
        self.assertEqual((run["error"]["class"], run["error"]["exit_code"]), ("invalid", 65))
        self.assertEqual(run["targets"][0]["written"], 1)

    def test_a_run_that_fails_before_it_reads(self):
        self.orders('{"order_id": 1}')
        self.file("warehouse.db", "this is no database, whatever its name says\n" * 100)
        run = self.flow("run", self.pipeline, status=78)
        self.assertEqual((run["status"], run["read"], run["error"]["class"]), ("failed", 0, "setup"))

    def test_a_dry_run(self):
        self.orders('{"order_id": 1}')
        done = self.start("run", "--dry-run", self.pipeline)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["target"] for row in rows], ["warehouse", "archive"])
        self.assertFalse((self.dir / "flow.db").exists())

    def test_a_check_of_good_files_and_bad_ones(self):
        bad = self.file("bad.yaml", PIPELINE.replace("mode: merge", "mode: merg").replace("name:", "nam:"))
        check = self.flow("check", self.pipeline, bad, status=78)
        good, found = check["files"]
        self.assertEqual((good["ok"], good["faults"], good["exit_code"]), (True, [], 0))
        self.assertFalse(found["ok"])
        self.assertLess({"targets[0].mode"}, {fault["path"] for fault in found["faults"]})
        self.assertTrue(all(fault["line"] > 0 for fault in found["faults"] if fault["path"] == "targets[0].mode"))

    def test_a_check_of_a_file_that_does_not_exist(self):
        check = self.flow("check", "nowhere.yaml", status=78)
        self.assertEqual([fault["file"] for fault in check["files"][0]["faults"]], ["nowhere.yaml"])

    def test_a_check_of_a_delivery_that_cannot_be_had(self):
        check = self.flow("check", self.pipeline, "--set", "delivery=exactly_once", status=78)
        self.assertEqual([failure["class"] for failure in check["files"][0]["failures"]], ["setup"])

    def test_a_check_that_connects(self):
        self.orders('{"order_id": 1}')
        check = self.flow("check", "--connect", self.pipeline)
        self.assertTrue(check["files"][0]["notes"])

    def test_an_explanation(self):
        contract = self.flow("explain", self.pipeline)
        labels = [target["target"] for target in contract["targets"]]
        self.assertEqual(labels, ["warehouse", "archive"])
        for window in contract["crash_windows"]:
            self.assertEqual(list(window["effects"]), labels)

    def test_the_history_of_good_and_bad_runs(self):
        self.assertEqual(self.flow("history", "--state", "sqlite:flow.db")["runs"], [])
        self.orders('{"order_id": 1}')
        first = self.flow("run", self.pipeline)["run"]
        self.orders('{"order_id": 1}', "no JSON")
        second = self.flow("run", self.pipeline, status=65)["run"]
        runs = self.flow("history", "--state", "sqlite:flow.db")["runs"]
        self.assertEqual([(run["id"], run["status"]) for run in runs], [(second, "failed"), (first, "done")])
        self.assertIn("orders-1.jsonl", runs[0]["error"])

    def test_the_offsets_of_files_before_and_after_a_run(self):
        self.orders('{"order_id": 1}', '{"order_id": 2}')
        before = self.flow("offsets", "inspect", self.pipeline)
        self.assertEqual((before["source"], before["unit"]), ("file", "bytes"))
        self.flow("run", self.pipeline)
        after = self.flow("offsets", "inspect", self.pipeline)
        self.assertEqual([(row["lag"], row["verdict"]) for row in after["partitions"]], [(0, "caught_up")])

    def test_every_template_is_a_good_pipeline(self):
        for source in ("kafka", "file"):
            for target in ("postgres", "sqlite", "kafka", "file", "stdout"):
                with self.subTest(source=source, target=target):
                    text = self.flow("init", "--from", source, "--to", target)["text"]
                    check = self.flow("check", self.file("new.yaml", text))
                    self.assertTrue(check["files"][0]["ok"])

    def test_every_schema_is_used_and_is_a_schema(self):
        names = {path.name for path in SCHEMAS.glob("*.json")}
        commands = ("run", "check", "explain", "history", "offsets.inspect", "init")
        self.assertEqual(names, {f"flow.{command}.1.schema.json" for command in commands})
        for command in commands:
            schema_of(command)

    def test_the_schema_of_pipeline_files_takes_a_good_one_and_refuses_a_bad_one(self):
        schema = json.loads(self.start("schema").stdout)
        validator = jsonschema.validators.validator_for(schema)
        validator.check_schema(schema)
        good = {"name": "orders", "source": {"kind": "file", "path": "x.jsonl"},
                "targets": [{"kind": "stdout"}]}
        validator(schema).validate(good)
        with self.assertRaises(jsonschema.ValidationError):
            validator(schema).validate({**good, "tragets": []})


if __name__ == "__main__":
    if FLOW is None:
        sys.exit("usage: json_schemas_test.py FLOW [TEST...]")
    unittest.main()
