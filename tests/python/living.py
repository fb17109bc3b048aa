"""Live runs in separate processes, for root and for an ordinary user, where this machine permits them."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import aqmlab

NOBODY = 65534
SCENARIO = {
    "title": "Smoke",
    "duration": "3s",
    "warmup": "500ms",
    "topology": {
        "kind": "dumbbell",
        "rate": "10Mbit",
        "delay": "2ms",
        "queue": {
            "kind": "red",
            "limit": "60p",
            "min_th": "4p",
            "max_th": "12p",
            "gentle": True,
            "ecn": True,
        },
    },
    "traffic": [
        {
            "name": "ftp",
            "kind": "bulk",
            "count": 3,
            "rtt": "20ms",
            "tcp": {"profile": "linux", "ecn": True},
        },
        {"name": "cbr", "kind": "cbr", "rate": "500kbit", "size": "500B"},
    ],
    "record": {"queues": "50ms", "flows": "100ms"},
}
FAITHFUL, HOST_LIMIT, NOT_FAITHFUL = 0, 3, 5


def as_user(user):
    """The words that make a command run as an ordinary user; empty if the user is root or we are not."""
    if user == "root" or os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]


def may_read(path):
    """Whether every user may read the file."""
    real = Path(path).resolve()
    return all(part.stat().st_mode & 0o001 for part in (real, *real.parents))


def interpreter(user):
    """An interpreter that the user may execute, and the path of aqmlab for it; ``None`` if there is none."""
    ours = [str(Path(aqmlab.__file__).parent.parent), *site.getsitepackages()]
    if not as_user(user) or may_read(sys.executable):
        return sys.executable, ours[:1]
    # The user may not read our interpreter, for example if pyenv has installed it in its owner's home; the
    # distribution's interpreter of the same version suffices.
    other = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    return (other, ours) if Path(other).exists() and all(map(may_read, ours)) else None


def begin_aqmlab(user, *words, cwd, within=()):
    program, path = interpreter(user)
    environment = {**os.environ, "HOME": str(cwd), "PYTHONPATH": os.pathsep.join(path)}
    command = [*as_user(user), *within, program, "-m", "aqmlab", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=cwd, env=environment, **pipes)


def run_aqmlab(user, *words, cwd, within=()):
    process = begin_aqmlab(user, *words, cwd=cwd, within=within)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@cache
def why_not(user):
    """The reason, from `aqmlab doctor`, why live runs do not work here for a user; empty if they do."""
    if not sys.platform.startswith("linux"):
        return "live runs need Linux"
    if user == "root" and os.geteuid() != 0:
        return "we are not root"
    if as_user(user) and shutil.which("setpriv") is None:
        return "there is no setpriv, which is needed to become an ordinary user"
    if interpreter(user) is None:
        return "there is no interpreter that an ordinary user may execute"
    looked = run_aqmlab(user, "doctor", "--json", cwd="/")
    if not looked.stdout:
        return f"`aqmlab doctor` gave no answer: {looked.stderr.strip()[-300:]}"
    failed = [f for f in json.loads(looked.stdout)["findings"] if f["severity"] == "fail"]
    assert looked.returncode == (3 if failed else 0)
    return "; ".join(f"{f['name']}: {f['finding']}" for f in failed)


def interfaces():
    return sorted(line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:])


def settings():
    """The settings of this machine that live hosts change, and its routes."""
    folder = Path("/proc/sys/net")
    files = [*folder.glob("ipv4/tcp_*"), *folder.glob("ipv6/conf/*/disable_ipv6"), Path("/proc/net/route")]
    files += [folder / "ipv4/ip_local_port_range", folder / "core/somaxconn"]
    return {str(file): file.read_bytes() for file in files if os.access(file, os.R_OK)}


def children_of(pid):
    """Yield the ids of a process's children, whichever of its threads started them."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # the thread has ended
            yield from (thread / "children").read_text(encoding="ascii").split()


def the_router_of(pid):
    """The process of the run, once the router and the traffic have started their threads."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.05)
        for child in children_of(pid):
            if len(list(Path(f"/proc/{child}/task").iterdir())) >= 3:
                return int(child)
    raise AssertionError("no run has begun")
