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
        name = re.fullmatch(r"flow\.([a-z.-]+)/1", document["schema"])
        self.assertIsNotNone(name, document["schema"])
        try:
            jsonschema.validate(document, schema_of(name[1]), cls=jsonschema.Draft202012Validator)
        except jsonschema.ValidationError as fault:
            self.fail(f"flow {' '.join(words)}: {fault.json_path}: {fault.message}\n{done.stdout}")
        self.assertIn(name[1].split(".")[0], (words[0], "error"))
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
        self.flow("explain", "--errors")
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

    def letters(self):
        """A pipeline with one good record and two dead letters."""
        self.orders('{"order_id": 1}', '{"order_id": "two"}', "no JSON")
        text = PIPELINE.split("targets:")[0] + """targets:
  - {kind: sqlite, label: warehouse, url: "sqlite:warehouse.db", table: orders, mode: append, create_table: true}
transform_on_error: dlq
dlq_limit: {of_batch: 100%}
state: sqlite:flow.db
"""
        self.file("dlq.yaml", text)
        run = self.flow("run", "dlq.yaml")
        self.assertEqual(run["dead_letters"], {"invalid": 2})
        return [letter["id"] for letter in self.flow("dlq", "list", "dlq.yaml", "--each")["letters"]]

    def test_dead_letters_in_groups_one_by_one_and_whole(self):
        ids = self.letters()
        groups = self.flow("dlq", "list", "dlq.yaml")
        self.assertEqual((groups["count"], [group["count"] for group in groups["groups"]]), (2, [1, 1]))
        show = self.flow("dlq", "show", str(ids[1]), "dlq.yaml")
        self.assertEqual((show["letter"]["value"], show["story"]), ("no JSON", []))
        self.assertEqual(self.flow("dlq", "list", "--state", "sqlite:none.db")["groups"], [])

    def test_each_exported_line_is_a_letter(self):
        self.letters()
        schema = schema_of("dlq.list")
        one = {**schema["$defs"]["letter"], "$defs": schema["$defs"]}
        exported = self.start("dlq", "export", "dlq.yaml").stdout
        for line in exported.splitlines():
            jsonschema.validate(json.loads(line), one, cls=jsonschema.Draft202012Validator)
        self.file("letters.jsonl", exported)
        imported = self.flow("dlq", "import", "letters.jsonl", "--state", "sqlite:other.db")
        self.assertEqual(imported["imported"], 2)

    def test_a_replay_its_dry_run_and_the_story_of_a_letter(self):
        ids = self.letters()
        plan = self.flow("dlq", "replay", "dlq.yaml", "--dry-run")
        self.assertEqual((plan["count"], [letter["id"] for letter in plan["first"]]), (2, ids))
        done = self.flow("dlq", "replay", "dlq.yaml", "--snapshot", plan["snapshot"], status=65)
        self.assertEqual((done["replayed"], done["failed"], done["error"]), (0, 2, None))
        story = self.flow("dlq", "show", str(ids[0]), "dlq.yaml")["story"]
        self.assertEqual([entry["replay"] for entry in story], [done["replay"]])
        stopped = self.flow("dlq", "replay", "dlq.yaml", "--on-poison", "stop", status=65)
        self.assertEqual(stopped["error"]["class"], "invalid")

    def test_changes_of_letters_by_hand(self):
        ids = self.letters()
        self.assertEqual(self.flow("dlq", "discard", "dlq.yaml", "--id", str(ids[0]))["changed"], 1)
        self.assertEqual(self.flow("dlq", "retry-parked", "dlq.yaml")["changed"], 0)
        self.assertEqual(self.flow("dlq", "purge", "dlq.yaml", "--older-than", "0s", "--yes")["removed"], 2)

    def test_a_command_that_fails_before_it_has_a_result(self):
        self.file("warehouse.db", "")
        self.assertEqual(self.flow("dlq", "list", "--class", "bad", status=64)["error"]["exit_code"], 64)
        self.assertEqual(self.flow("dlq", "list", "nowhere.yaml", status=78)["error"]["class"], "setup")
        self.assertEqual(self.flow("history", "--state", "nowhere", status=64)["error"]["exit_code"], 64)

    def test_every_template_is_a_good_pipeline(self):
        for source in ("kafka", "file"):
            for target in ("postgres", "sqlite", "kafka", "file", "stdout"):
                with self.subTest(source=source, target=target):
                    text = self.flow("init", "--from", source, "--to", target)["text"]
                    check = self.flow("check", self.file("new.yaml", text))
                    self.assertTrue(check["files"][0]["ok"])

    def test_every_schema_is_used_and_is_a_schema(self):
        names = {path.name for path in SCHEMAS.glob("*.json")}
        commands = ("run", "check", "explain", "explain.errors", "history", "offsets.inspect", "init", "error",
                    *(f"dlq.{name}" for name in ("list", "show", "import", "discard", "retry-parked", "purge", "replay")))
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
