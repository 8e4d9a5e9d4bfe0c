"""One Apache Kafka broker (KRaft) in a directory."""
import base64
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import uuid

from common import LOOPBACK, SCRIPTS, ServiceError, die_with_parent, free_ports, kill_hard, stop_gently, wait_until

VERSION = "4.3.1"
POM = SCRIPTS / "kafka" / "pom.xml"
JVM = os.environ.get("FLOW_KAFKA_JVM", "-Xms512m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1").split()


def jars():
    """The directory with the broker's jars, resolved by Maven once per user."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "flow"
    wanted = cache / f"kafka-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "kafka.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.is_dir():
            if not shutil.which("mvn") or not shutil.which("java"):
                raise ServiceError("Kafka needs Java and Maven: apt-get install openjdk-17-jre-headless maven")
            part = tempfile.mkdtemp(prefix="kafka-", dir=cache)
            command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies",
                       "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode != 0:
                shutil.rmtree(part)
                raise ServiceError(f"Maven could not fetch Kafka {VERSION}:\n{done.stdout}{done.stderr}")
            os.rename(part, wanted)
    return wanted


def java(main_class, *arguments, jvm=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")):
    return ["java", *jvm, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true", "-cp", f"{jars()}/*", main_class, *arguments]


def run_tool(main_class, *arguments, stdin=None):
    done = subprocess.run(java(main_class, *arguments), input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise ServiceError(f"{main_class} {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Kafka:
    name = "kafka"

    def __init__(self, directory):
        self.directory = pathlib.Path(directory) / "kafka"
        self.log = self.directory / "server.log"
        self.process = None
        self.port = self.sasl_port = self.controller_port = 0

    def prepare(self):
        """Ports, settings and a formatted data directory."""
        self.directory.mkdir(mode=0o700)
        self.port, self.sasl_port, self.controller_port = free_ports(3)
        settings = (SCRIPTS / "kafka" / "server.properties").read_text()
        filled = {"port": self.port, "sasl_port": self.sasl_port, "controller_port": self.controller_port,
                  "data": self.directory / "data"}
        for name, value in filled.items():
            settings = settings.replace("{" + name + "}", str(value))
        self.settings.write_text(settings)
        cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        run_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self.settings))

    @property
    def settings(self):
        return self.directory / "server.properties"

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                java("kafka.Kafka", str(self.settings), jvm=JVM), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=self.directory, start_new_session=True, preexec_fn=die_with_parent(signal.SIGKILL))
        wait_until(self.answers, 90, "Kafka", self.process, self.log)

    def answers(self):
        """Asks for the metadata of no topic (version 0 answers with all): ready when a broker is listed."""
        request = struct.pack(">hhih", 3, 0, 1, -1) + struct.pack(">i", 0)
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=2) as connection:
                connection.sendall(struct.pack(">i", len(request)) + request)
                header = connection.recv(12, socket.MSG_WAITALL)
        except OSError:
            return False
        return len(header) == 12 and struct.unpack(">iii", header)[2] > 0

    def stop(self):
        if self.process:
            stop_gently(self.process, signal.SIGTERM, 20)

    def kill(self):
        if self.process:
            kill_hard(self.process)

    def environment(self):
        return {"FLOW_TEST_KAFKA": f"{LOOPBACK}:{self.port}", "FLOW_TEST_KAFKA_SASL": f"{LOOPBACK}:{self.sasl_port}"}

    def facts(self):
        return f"{LOOPBACK}:{self.port} (SASL {self.sasl_port})"
