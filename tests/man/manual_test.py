#!/usr/bin/env python3
"""The manual speaks of the program that there is: manual_test.py FLOW

Every command has a page, every option of its --help is on it, every setting is in flow-pipeline(5), and every command
line that the pages, the README and the examples show uses commands and options that exist.
"""
import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

FLOW = sys.argv.pop(1) if len(sys.argv) > 1 else None
ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "man"
LONG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
SHORT = re.compile(r"(?m)^\s+(-[a-z]),")


@functools.cache
def help_of(*words):
    done = subprocess.run([FLOW, *words, "--help"], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@functools.cache
def subcommands_of(*words):
    """The names in the part of the help that lists commands."""
    part = re.search(r"(?m)^Subcommands:\n((?:\s+.*\n?)+)", help_of(*words))
    return re.findall(r"(?m)^  ([a-z][a-z-]*)", part[1]) if part else []


def commands(*words):
    """Every command that does something, as its words."""
    below = subcommands_of(*words)
    if not below:
        return [words]
    return [command for name in below for command in commands(*words, name)]


def options_of(words):
    text = help_of(*words).split("Usage:", 1)[-1]  # not the example
    return set(LONG.findall(text)) | set(SHORT.findall(text))


def plain(source):
    """The text of a page, near enough to look for words in it."""
    return re.sub(r"\\f.", "", source.replace("\\-", "-").replace("\\e", "\\")).replace('"', " ")


def page_of(words):
    return MAN / f"flow-{words[0]}.1"


def shown_commands():
    """(where, command line) for each line that shows flow being run."""
    for page in sorted(MAN.glob("*.[157]")):
        for block in re.findall(r"(?ms)^\.EX\n(.*?)^\.EE", page.read_text()):
            yield from ((page.name, line) for line in plain(block).splitlines())
    for file in (ROOT / "README.md", *sorted((MAN / "examples").glob("*.yaml"))):
        text = re.sub(r"\\\n#?", " ", file.read_text())
        yield from ((file.name, line.lstrip("# ")) for line in text.splitlines())


class Manual(unittest.TestCase):
    def test_every_command_is_found(self):
        names = {" ".join(words) for words in commands()}
        self.assertLessEqual({"run", "check", "explain", "offsets inspect", "history", "init", "schema", "completion"},
                             names)

    def test_every_command_has_a_page_and_flow_1_names_it(self):
        overview = plain((MAN / "flow.1").read_text())
        for words in commands():
            with self.subTest(command=words):
                self.assertTrue(page_of(words).exists())
                self.assertIn(f"flow-{words[0]} (1)", overview)

    def test_every_option_is_on_the_page_of_its_command(self):
        for words in commands():
            page = plain(page_of(words).read_text())
            for option in sorted(options_of(words)):
                with self.subTest(command=words, option=option):
                    self.assertRegex(page, rf"(?<![\w-]){option}(?![\w-])")

    def test_no_page_describes_an_option_that_does_not_exist(self):
        for page in sorted({page_of(words) for words in commands()}):
            there = set().union(*(options_of(words) for words in commands() if page_of(words) == page))
            described = re.findall(r"(?m)^\.TP\n\.B[IR]? (.*)$", plain(page.read_text()))
            for option in LONG.findall("\n".join(described)):
                with self.subTest(page=page.name, option=option):
                    self.assertIn(option, there)

    def test_every_page_is_installed_and_every_reference_leads_to_a_page(self):
        installed = set(re.findall(r"flow[a-z-]*\.\d", (MAN / "CMakeLists.txt").read_text()))
        pages = {page.name for page in MAN.glob("flow*.[157]")}
        self.assertEqual(installed, pages)
        for page in sorted(pages):
            for name, section in re.findall(r"(?m)^\.BR (flow\S*) \((\d)\)", plain((MAN / page).read_text())):
                with self.subTest(page=page):
                    self.assertIn(f"{name}.{section}", pages)

    def test_every_setting_is_in_the_reference(self):
        page = plain((MAN / "flow-pipeline.5").read_text())
        schema = json.loads(subprocess.run([FLOW, "schema"], capture_output=True, text=True, check=True).stdout)
        settings = set()

        def walk(node, path):
            """Collects the settings that hold a value, not others."""
            parts = (*node.get("anyOf", []), *node.get("oneOf", []), node)
            below = [(f"{path}.{name}" if path else name, schema)
                     for part in parts for name, schema in part.get("properties", {}).items()]
            for part in parts:
                if part is not node:
                    below += [(path, part)] if maps_below(part) else []
                below += [(f"{path}[]", part["items"])] if maps_below(part.get("items")) else []
                extra = part.get("additionalProperties")
                below += [(f"{path}.*", extra)] if maps_below(extra) else []
            if path and not below:
                settings.add(path)
            for inner, schema in below:
                walk(schema, inner)

        def maps_below(schema):
            return isinstance(schema, dict) and "properties" in json.dumps(schema).replace("additionalProperties", "")

        walk(schema, "")
        self.assertLessEqual({"name", "source.batch.records", "targets[].key", "columns.*.from", "retry.for"}, settings)
        for setting in sorted(settings):
            with self.subTest(setting=setting):
                self.assertRegex(page, rf"(?m)^\.(B|SS) {re.escape(setting)}$")

    def test_every_shown_command_line_could_be_typed(self):
        known = {words: options_of(words) for words in commands()}
        seen = 0
        for where, line in shown_commands():
            found = re.match(r"(?:[A-Z_]+=\S+ |\$ |source <\()*flow ((?:[a-z][a-z-]* ?)+)(.*)", line.strip())
            if not found:
                continue
            words = tuple(found[1].split())
            command = next((words[:n] for n in range(len(words), 0, -1) if words[:n] in known), None)
            with self.subTest(where=where, line=line):
                self.assertIsNotNone(command, "no such command")
                shlex.split(found[2].rstrip(")"))
                self.assertLessEqual(set(LONG.findall(found[2].split("&&")[0].split("|")[0])), known[command])
            seen += 1
        self.assertGreater(seen, 25)

    def test_readme_names_files_and_pages_that_exist(self):
        text = (ROOT / "README.md").read_text()
        paths = re.findall(r"`((?:core|connectors|state|cli|man|scripts|tests)/[\w./-]*)`", text)
        self.assertGreater(len(paths), 10)
        for path in paths:
            with self.subTest(path=path):
                self.assertTrue((ROOT / path).exists())

    def test_readme_names_functions_that_exist(self):
        text = (ROOT / "README.md").read_text()
        hops = re.findall(r"(?m)^\d\. .*?`(?:(\w+)::)?(\w+)\(\)` in `([\w./]+)`", text)
        self.assertEqual(len(hops), 8)
        for owner, function, file in hops:
            with self.subTest(function=function, file=file):
                name = rf"{owner}::{function}\(" if owner else rf"\b{function}\("
                self.assertRegex((ROOT / file).read_text(), name)


if __name__ == "__main__":
    if FLOW is None:
        sys.exit("usage: manual_test.py FLOW [TEST...]")
    unittest.main()
