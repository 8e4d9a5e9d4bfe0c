"""One PostgreSQL in a directory. Its programs refuse to be root, so root hands it to the user postgres."""
import glob
import os
import pathlib
import pwd
import re
import signal
import subprocess

from common import LOOPBACK, ServiceError, die_with_parent, free_ports, kill_hard, stop_gently, wait_until

SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{sockets}'
max_connections = 200
fsync = on
synchronous_commit = on
password_encryption = 'scram-sha-256'
shared_buffers = 256MB
max_wal_size = 4GB
"""

# `guarded` must show a password over TCP; everybody else is trusted, which is for tests on this machine alone.
RULES = """
local all all trust
host all guarded 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""

ROLES = """
CREATE ROLE guarded LOGIN PASSWORD 'guarded-secret';
CREATE ROLE limited LOGIN;
CREATE DATABASE flow;
REVOKE ALL ON DATABASE flow FROM public;
GRANT CONNECT ON DATABASE flow TO guarded, limited;
"""


def programs():
    """The newest server's bin directory."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    if not found:
        raise ServiceError("PostgreSQL's server is missing: apt-get install postgresql")
    return pathlib.Path(max(found, key=lambda path: int(re.search(r"/(\d+)/bin/", path)[1]))).parent


class Postgres:
    name = "postgres"

    def __init__(self, directory):
        self.directory = pathlib.Path(directory) / "postgres"
        self.data = self.directory / "data"
        self.log = self.directory / "server.log"
        self.process = None
        self.port = 0

    def prepare(self):
        self.directory.mkdir(mode=0o755)
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.directory, owner.pw_uid, owner.pw_gid)
        (self.port,) = free_ports(1)
        done = subprocess.run(
            [programs() / "initdb", "-D", self.data, "-U", "flow", "-A", "trust", "-E", "UTF8", "--locale=C",
             "--no-sync"], capture_output=True, text=True, cwd="/", **self.as_owner())
        if done.returncode != 0:
            raise ServiceError(f"initdb failed in {self.data}:\n{done.stdout}{done.stderr}")
        with open(self.data / "postgresql.conf", "a") as settings:
            settings.write(SETTINGS.format(port=self.port, sockets=self.directory))
        (self.data / "pg_hba.conf").write_text(RULES)
        self.start()
        self.query("postgres", *[line for line in ROLES.splitlines() if line])

    def as_owner(self):
        return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}

    def start(self):
        if self.process and self.process.poll() is None:
            return
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [programs() / "postgres", "-D", self.data], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd="/", start_new_session=True, preexec_fn=die_with_parent(signal.SIGQUIT), **self.as_owner())
        wait_until(self.answers, 60, "PostgreSQL", self.process, self.log)

    def answers(self):
        done = subprocess.run([programs() / "pg_isready", "-q", "-U", "flow", "-h", LOOPBACK, "-p", str(self.port)])
        return done.returncode == 0

    def query(self, database, *statements):
        command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", LOOPBACK, "-p", str(self.port), "-U", "flow"]
        for statement in statements:
            command += ["-c", statement]
        done = subprocess.run([programs() / command[0], *command[1:], database], capture_output=True, text=True)
        if done.returncode != 0:
            raise ServiceError(f"psql failed: {done.stderr}")

    def stop(self):
        if self.process:
            stop_gently(self.process, signal.SIGINT, 20)

    def kill(self):
        if self.process:
            kill_hard(self.process)

    def environment(self):
        at = f"{LOOPBACK}:{self.port}/flow"
        return {
            "FLOW_TEST_POSTGRES": f"postgres://flow@{at}",
            "FLOW_TEST_POSTGRES_SOCKET": f"postgres:///flow?host={self.directory}&port={self.port}&user=flow",
            "FLOW_TEST_POSTGRES_GUARDED": f"postgres://guarded:guarded-secret@{at}",
            "FLOW_TEST_POSTGRES_LIMITED": f"postgres://limited@{at}",
        }

    def facts(self):
        return f"postgres://flow@{LOOPBACK}:{self.port}/flow"
