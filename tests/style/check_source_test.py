"""check_source finds what it is there to find: each fault planted here is one that it names."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
from check_source import faults_of


def found(path, text):
    return [what for _, what in faults_of(pathlib.Path(path), text)]


class Planted(unittest.TestCase):
    def test_core_includes_nothing_of_the_other_folders(self):
        for other in ("connectors/registry.h", "state/state.h", "cli/app.h", "tests/support/services.h"):
            self.assertEqual(found("core/a.cpp", f'#include "{other}"\n'), [f"core/ must not include {other}"])
        self.assertEqual(found("core/a.cpp", '#include "core/types.h"\n#include <string>\n'), [])

    def test_core_includes_no_vendor(self):
        for header in ("librdkafka/rdkafka.h", "pqxx/pqxx", "libpq-fe.h", "sqlite3.h", "SQLiteCpp/Database.h",
                       "yaml-cpp/yaml.h", "spdlog/logger.h", "fmt/format.h", "simdjson.h", "nlohmann/json.hpp",
                       "CLI/CLI.hpp", "zlib.h", "zstd.h"):
            self.assertEqual(len(found("core/a.cpp", f"#include <{header}>\n")), 1, header)

    def test_state_and_connectors_do_not_know_each_other(self):
        self.assertEqual(len(found("state/a.cpp", '#include "connectors/registry.h"\n')), 1)
        self.assertEqual(len(found("connectors/kafka_a.cpp", '#include "state/state.h"\n')), 1)

    def test_a_connector_knows_its_own_system_alone(self):
        self.assertEqual(len(found("connectors/kafka_a.cpp", '#include "connectors/postgres_b.h"\n')), 1)
        self.assertEqual(len(found("connectors/kafka_a.cpp", "#include <libpq-fe.h>\n")), 1)
        self.assertEqual(len(found("connectors/registry.cpp", "#include <librdkafka/rdkafka.h>\n")), 1)
        self.assertEqual(found("connectors/kafka_a.cpp", '#include "connectors/kafka_b.h"\n'
                               "#include <librdkafka/rdkafka.h>\n"), [])

    def test_long_files_and_functions(self):
        self.assertEqual(len(found("core/a.cpp", "int a;\n" * 500)), 1)
        body = "int f() {\n" + "  g();\n" * 90 + "}\n"
        self.assertEqual(found("core/a.cpp", body), ["the function has 92 lines, more than 80"])
        table = "const int table[] = {\n" + "    1,\n" * 90 + "};\n"
        self.assertEqual(found("core/a.cpp", table), [])

    def test_what_is_left_undone(self):
        planted = "TO" + "DO"
        self.assertEqual(len(found("core/a.cpp", f"// {planted}: later\n")), 1)
        self.assertEqual(found("core/a.h", "int a;\n"), ["a header without #pragma once"])


if __name__ == "__main__":
    unittest.main()
