"""What killed programs may leave behind on a machine: processes, namespaces, interfaces, mounts."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from living import interfaces


def links(folder):
    """The targets of the links in a folder of /proc; empty if its process has ended."""
    try:
        return {str(entry.readlink()) for entry in folder.iterdir()}
    except OSError:
        return set()


def namespaces_of(pid):
    """The namespaces of a process's threads, and those that the process holds through a descriptor."""
    process = Path(f"/proc/{pid}")
    found = links(process / "ns") | links(process / "fd")
    try:
        tasks = list((process / "task").iterdir())
    except OSError:
        tasks = []
    for task in tasks:
        found |= links(task / "ns")
    return {name for name in found if name.startswith(("net:", "user:", "mnt:"))}


def everybody():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def all_namespaces():
    return set().union(*map(namespaces_of, everybody()))


def began(pid):
    """The start time of a process, which together with its id identifies it; ``None`` if it has ended."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    # The process that adopts orphans may take some time to reap them.
    return None if state in "ZX" else int(rest[18])


def family(pid):
    """A process and all its descendants, with their start times."""
    found, todo = {}, [pid]
    while todo:
        one = todo.pop()
        at = began(one)
        if at is None:
            continue
        found[one] = at
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                todo += map(int, (task / "children").read_text(encoding="ascii").split())
        except OSError:
            pass
    return found


def wait_until(condition, seconds=10.0):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def marked(mark):
    """Processes with ``mark`` (``NAME=VALUE``) in their environment, even if their parent has ended."""
    found = []
    for pid in everybody():
        with suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if mark.encode() in variables and began(pid) is not None and pid != os.getpid():
                found.append(pid)
    return found


BENCH = "aqmlab-test-"
"""The beginning of the names of namespaces that tests make, perhaps while others run."""


class Machine(NamedTuple):
    """The state of this machine that a program might leave changed."""

    interfaces: tuple[str, ...]
    mounts: tuple[str, ...]
    named_namespaces: tuple[str, ...]

    @staticmethod
    def now():
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        named = Path("/run/netns")
        names = [entry.name for entry in named.iterdir()] if named.is_dir() else []
        names = sorted(name for name in names if not name.startswith(BENCH))
        return Machine(tuple(interfaces()), tuple(sorted(mounts)), tuple(names))
