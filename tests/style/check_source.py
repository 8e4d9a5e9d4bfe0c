#!/usr/bin/env python3
"""What the source must look like, beyond what the compiler says: check_source.py [ROOT] prints each fault as
file:line: what is wrong, and ends with 1 when there is one.

Folders include in one direction, cli -> connectors, state -> core; the headers of a vendor stay in the folder (in
connectors: in the files of the system) that talks to it; files and functions stay short; nothing is left undone.
"""
import pathlib
import re
import sys

VENDORS = {
    "librdkafka": r"librdkafka/|rdkafka\.h",
    "libpq": r"libpq-fe\.h|postgresql/|libpq/|pg_config|pqxx/",
    "sqlite": r"SQLiteCpp/|sqlite3\.h",
    "yaml-cpp": r"yaml-cpp/",
    "spdlog": r"spdlog/",
    "fmt": r"fmt/",
    "simdjson": r"simdjson",
    "nlohmann": r"nlohmann/",
    "CLI11": r"CLI/",
    "zlib": r"zlib\.h",
    "zstd": r"zstd\.h",
}
# Who may include the headers of which vendors. In connectors/ a system is the first word of a file's name.
MAY_USE = {
    "core": set(),
    "state": {"sqlite", "libpq"},
    "cli": {"CLI11", "fmt", "spdlog", "yaml-cpp", "nlohmann",
            "librdkafka", "libpq", "sqlite"},  # their versions, for `flow --version`
    "connectors": set(),
    "connectors/kafka": {"librdkafka"},
    "connectors/postgres": {"libpq"},
    "connectors/sqlite": {"sqlite"},
    "connectors/file": {"zlib", "zstd"},
    "connectors/format": {"simdjson"},
}
MAY_INCLUDE = {
    "core": ("core/",),
    "state": ("core/", "state/"),
    "connectors": ("core/", "connectors/"),
    "cli": ("core/", "connectors/", "state/", "cli/"),
}
FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 80
UNDONE = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented|doctest::skip|DISABLED_", re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def system_of(path):
    """kafka for connectors/kafka_source.cpp; an empty text for what belongs to no system (the registry)."""
    word = path.name.split("_")[0]
    return word if f"connectors/{word}" in MAY_USE else ""


def include_faults(path, lines):
    folder = path.parts[0]
    if folder not in MAY_INCLUDE:
        return
    system = system_of(path) if folder == "connectors" else ""
    allowed_vendors = MAY_USE[f"{folder}/{system}" if system else folder]
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, name = found.groups()
        for vendor, pattern in VENDORS.items():
            if re.match(pattern, name) and vendor not in allowed_vendors:
                yield number, f"{folder}/{system or ''} must not include {vendor} ({name})"
        if quote == '"':
            if not name.startswith(MAY_INCLUDE[folder]):
                yield number, f"{folder}/ must not include {name}"
            elif system and name.startswith("connectors/") and name != "connectors/registry.h":
                if system_of(pathlib.Path(name)) != system:
                    yield number, f"the {system} connector must not include {name}"


def length_faults(lines):
    if len(lines) > FILE_LINES_MAX:
        yield len(lines), f"the file has {len(lines)} lines, more than {FILE_LINES_MAX}: split it by role"
    start = None
    for number, line in enumerate(lines, 1):
        if re.match(r"[A-Za-z_\[~]", line) and not re.match(r"(namespace|extern)\b", line):
            start = start or number
        if line == "}" and start:
            if number - start + 1 > FUNCTION_LINES_MAX:
                yield start, f"the function has {number - start + 1} lines, more than {FUNCTION_LINES_MAX}"
            start = None
        elif line.startswith(("};", "}  // namespace")) or re.match(r"\S.*;$", line):
            start = None


def word_faults(path, lines):
    for number, line in enumerate(lines, 1):
        if UNDONE.search(line):
            yield number, f"left undone: {line.strip()[:60]}"
    if path.suffix == ".h" and "#pragma once" not in lines:
        yield 1, "a header without #pragma once"


def faults_of(path, text):
    """(line, what) for a file with its path from the root."""
    lines = text.splitlines()
    yield from include_faults(path, lines)
    yield from length_faults(lines)
    yield from word_faults(path, lines)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = [file for folder in (*MAY_INCLUDE, "tests") for file in sorted((root / folder).rglob("*"))
             if file.suffix in (".h", ".cpp")]
    if len(files) < 20:
        sys.exit(f"only {len(files)} source files below {root}: is it the root of the project?")
    bad = 0
    for file in files:
        for line, what in faults_of(file.relative_to(root), file.read_text()):
            print(f"{file.relative_to(root)}:{line}: {what}")
            bad += 1
    print(f"{len(files)} files, {bad} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
