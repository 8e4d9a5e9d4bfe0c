"""What the parts of scripts/services share."""
import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import time

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
LOOPBACK = "127.0.0.1"


class ServiceError(Exception):
    """A message for the person, with what to do next."""


def free_ports(count):
    """Ports nobody listens on; all are held open until the last is known, so they differ."""
    held = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def die_with_parent(how):
    """For preexec_fn: the kernel sends `how` to the child when the thread that started it ends."""
    set_pdeathsig = ctypes.CDLL(None, use_errno=True).prctl

    def before_exec():
        set_pdeathsig(1, how, 0, 0, 0)

    return before_exec


def wait_until(ready, deadline_s, what, process, log):
    """Polls ready() until true; fails with the end of the log when the process ends or time is up."""
    deadline = time.monotonic() + deadline_s
    while not ready():
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            why = f"ended with {process.returncode}" if ended else f"did not answer in {deadline_s} s"
            raise ServiceError(f"{what} {why}; the end of {log}:\n{tail(log)}")
        time.sleep(0.05)


def tail(path, lines=25):
    try:
        return "\n".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def state_and_parent(pid):
    """From /proc: the state letter and the parent's id; None when there is no such process."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def children_of(pid):
    known = ((int(entry), state_and_parent(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return [child for child, found in known if found and found[1] == pid]


def is_alive(pid):
    found = state_and_parent(pid)
    return found is not None and found[0] != "Z"


def kill_hard(process):
    """SIGKILL to a process and its children, and waits until none of them is left."""
    family = [process.pid, *children_of(process.pid)]
    for pid in family:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    deadline = time.monotonic() + 10
    while any(is_alive(pid) for pid in family[1:]) and time.monotonic() < deadline:
        time.sleep(0.01)


def stop_gently(process, how, deadline_s):
    """A signal, time to go, and SIGKILL for what stays."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            kill_hard(process)
