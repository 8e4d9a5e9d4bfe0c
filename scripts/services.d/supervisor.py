"""The process that owns the services of one directory: it starts them, answers on a socket, and when it ends so do they.

It ends on `stop`, on SIGTERM or SIGINT, when the process named as owner ends, and never leaves a service or a file.
A supervisor that is itself killed takes the services with it: the kernel signals them (see die_with_parent).
"""
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import tempfile

import example
from common import ServiceError, children_of
from kafka import Kafka
from postgres import Postgres

KINDS = {"postgres": Postgres, "kafka": Kafka}
LEFT_BEHIND = ["kafka", "postgres", "services.env", "try-kafka-to-postgres.yaml", "try.db", "try.db-wal", "try.db-shm",
               "control.sock", "supervisor.log"]


class Supervisor:
    def __init__(self, directory, only, bare, owner):
        self.directory = pathlib.Path(directory)
        self.services = {name: kind(directory) for name, kind in KINDS.items() if only in (None, name)}
        self.bare = bare or only is not None
        self.owner = os.pidfd_open(owner) if owner else None
        self.pipeline = None

    def run(self, report):
        """report(text) is called once: with an empty text when all is ready, else with the reason."""
        signal.signal(signal.SIGTERM, self.interrupted)
        signal.signal(signal.SIGINT, self.interrupted)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                self.start_all()
                listener.bind(str(self.directory / "control.sock"))
                listener.listen()
                report("")
                self.serve(listener)
        except (ServiceError, OSError, KeyError) as problem:
            report(str(problem))
        except KeyboardInterrupt:
            report("interrupted")
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for service in self.services.values():
                service.stop()
            remove_left_behind(self.directory)

    @staticmethod
    def interrupted(*_):
        raise KeyboardInterrupt

    def start_all(self):
        environment = {}
        for service in self.services.values():
            service.prepare()
            service.start()
            environment.update(service.environment())
        if not self.bare:
            self.pipeline = example.create(self.directory, self.services["kafka"], self.services["postgres"])
        environment["FLOW_TEST_SERVICES_DIR"] = str(self.directory)
        with tempfile.NamedTemporaryFile("w", dir=self.directory, delete=False) as part:
            part.write("".join(f"{name}={value}\n" for name, value in environment.items()))
        os.rename(part.name, self.directory / "services.env")

    def serve(self, listener):
        watched = [listener] + ([self.owner] if self.owner is not None else [])
        while True:
            for ready in select.select(watched, [], [])[0]:
                if ready != listener:
                    return
                connection, _ = listener.accept()
                with connection:
                    request = json.loads(connection.recv(4096))
                    try:
                        if request["do"] == "stop":
                            self.finish(connection)
                            return
                        answer = self.answer(request)
                    except ServiceError as problem:
                        answer = {"error": str(problem)}
                    connection.sendall(json.dumps(answer).encode())

    def finish(self, connection):
        """The one who asked for the stop is answered when nothing is left."""
        for service in self.services.values():
            service.stop()
        remove_left_behind(self.directory)
        connection.sendall(b"{}")

    def answer(self, request):
        if request["do"] == "status":
            return {"services": [self.describe(service) for service in self.services.values()],
                    "pipeline": str(self.pipeline or "")}
        service = self.services.get(request["service"])
        if service is None:
            raise ServiceError(f"{request['service']} was not started in {self.directory}")
        if request["do"] in ("kill", "halt", "restart"):
            {"kill": service.kill, "halt": service.stop, "restart": service.stop}[request["do"]]()
        if request["do"] == "restart":
            service.start()
        if request["do"] in ("freeze", "thaw"):
            self.freeze_or_thaw(service, signal.SIGSTOP if request["do"] == "freeze" else signal.SIGCONT)
        return {}

    @staticmethod
    def freeze_or_thaw(service, how):
        if service.process.poll() is not None:
            raise ServiceError(f"{service.name} is not running")
        for pid in [service.process.pid, *children_of(service.process.pid)]:
            os.kill(pid, how)

    @staticmethod
    def describe(service):
        running = service.process is not None and service.process.poll() is None
        return {"name": service.name, "state": "running" if running else "ended",
                "pid": service.process.pid if running else 0, "at": service.facts(), "log": str(service.log)}


def remove_left_behind(directory):
    for name in LEFT_BEHIND:
        path = directory / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
