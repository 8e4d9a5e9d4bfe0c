#!/usr/bin/env python3
"""Every example pipeline passes `flow check`, says at its head what it does and what it guarantees, and what it says
is what `flow explain` derives: examples_test.py FLOW
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

FLOW = sys.argv.pop(1) if len(sys.argv) > 1 else None
EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "man" / "examples").glob("*.yaml"))
VARIABLES = {"KAFKA_BROKERS": "localhost:9092", "WAREHOUSE_URL": "postgres://flow:secret@localhost/warehouse"}


def flow(*words, variables):
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", **variables}
    return subprocess.run([FLOW, *words], env=environment, capture_output=True, text=True, timeout=60)


class Examples(unittest.TestCase):
    def test_each_kind_of_example_is_there(self):
        names = {path.stem for path in EXAMPLES}
        self.assertEqual(names, {"files-to-sqlite", "kafka-to-postgres", "kafka-to-postgres-merge",
                                 "kafka-to-kafka-sql", "csv-to-postgres", "fanout"})

    def test_each_passes_the_check(self):
        for path in EXAMPLES:
            with self.subTest(example=path.name):
                done = flow("check", path, variables=VARIABLES)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_each_says_which_variables_it_needs(self):
        for path in EXAMPLES:
            needed = set(re.findall(r"\$\{([A-Z_]+)\}", path.read_text()))
            head = "".join(re.findall(r"(?m)^#.*\n", path.read_text()))
            with self.subTest(example=path.name):
                self.assertEqual({name for name in VARIABLES if f"{name}=" in head}, needed)
                done = flow("check", path, variables={})
                self.assertEqual(done.returncode, 78 if needed else 0)
                for name in needed:
                    self.assertIn(name, done.stderr)

    def test_each_head_states_the_guarantee_that_is_derived(self):
        for path in EXAMPLES:
            head = path.read_text().split("\nname:", 1)[0]
            with self.subTest(example=path.name):
                done = flow("explain", "--output", "json", path, variables=VARIABLES)
                self.assertEqual(done.returncode, 0, done.stderr)
                contract = json.loads(done.stdout)
                self.assertIn("# Guarantee: at least once", head)
                self.assertEqual(contract["delivery"], "at_least_once")
                self.assertNotIn("secret", done.stdout)
                if "at least once, and idempotent" in head:
                    self.assertEqual({target["mode"] for target in contract["targets"]}, {"merge"})


if __name__ == "__main__":
    if FLOW is None:
        sys.exit("usage: examples_test.py FLOW [TEST...]")
    unittest.main()
