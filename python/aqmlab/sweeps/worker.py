"""A worker process: it reads tasks, one JSON line each, executes them, and answers each with a line.

Started by :mod:`aqmlab.sweeps.process` as ``python -m aqmlab.sweeps.worker PARENT PLACE IDLE_S``. It ends
when its standard input or its parent ends (whatever the cause), and after IDLE_S seconds without a request,
unless IDLE_S is 0. During a run, it also writes progress messages as lines. Ctrl-C is handled by the parent.
"""

from __future__ import annotations

import json
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from aqmlab.errors import AqmlabError, HostError, MemoryCapError, RunError
from aqmlab.recordings.integrity import read_json
from aqmlab.sweeps.experiment_directory import ExperimentDirectory
from aqmlab.sweeps.place import Place
from aqmlab.sweeps.process import ALIVE
from aqmlab.sweeps.store import Store
from aqmlab.sweeps.task import Task
from aqmlab.system.files import EXPERIMENT_FILE
from aqmlab.system.parent import Parent

_SECONDS_BETWEEN_SIGNS = 0.3
"""Interval between progress messages."""


def main() -> None:
    """Serve requests until the client is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Parent() as parent:
        serve(_requests(sys.stdin, float(sys.argv[3])), place_at(Path(sys.argv[2])), parent)


def _requests(lines: TextIO, idle_s: float) -> Iterator[str]:
    """Yield requests as they arrive, each after the answer to the previous one."""
    while not idle_s or select.select([lines], [], [], idle_s)[0]:
        line = lines.readline()
        if not line:
            return
        yield line


def place_at(path: Path) -> Place:
    """The place in a directory: an experiment or a store.

    Raises
    ------
    RecordingError
        If the directory is neither.
    """
    return ExperimentDirectory(path) if (path / EXPERIMENT_FILE).is_file() else Store(path)


def serve(requests: Iterable[str], place: Place, parent: Parent) -> None:
    """Execute the requests, line by line, until there are no more lines.

    Between two requests, the worker has no files in the place, because on a cluster it outlives its clients.
    """
    for line in requests:
        request = json.loads(line)
        task = Task.from_json(request["task"])
        parent.tell(_attempt(place, task, request, _signs(parent)))


def _signs(parent: Parent) -> Callable[[Mapping[str, float]], None]:
    """Return a callback that writes progress messages; a run calls it ten times per second."""
    seen, told_s = 0.0, time.monotonic()

    def look(now: Mapping[str, float]) -> None:
        nonlocal seen, told_s
        parent.check()
        if now["events"] > seen and time.monotonic() - told_s >= _SECONDS_BETWEEN_SIGNS:
            seen, told_s = now["events"], time.monotonic()
            parent.tell({ALIVE: now})

    return look


def _attempt(
    place: Place, task: Task, request: Mapping[str, Any], progress: Callable[[Mapping[str, float]], None]
) -> dict[str, Any]:
    try:
        with place.staging() as staging:
            return _do(place, staging, task, request, progress)
    except MemoryCapError as error:
        return {"status": "failed", "cause": "memory", "reason": str(error)}
    except HostError as error:
        # The next run would meet the same obstacle, such as no space or no permission.
        return {"status": "machine", "cause": type(error).__name__, "reason": str(error)}
    except AqmlabError as error:
        # The reader of the answer already knows the run.
        reason = str(error).removeprefix(f"arm `{task.arm}`, seed {task.seed}: ")
        return {"status": "failed", "cause": type(error).__name__, "reason": reason}


def _do(
    place: Place,
    staging: Path,
    task: Task,
    request: Mapping[str, Any],
    progress: Callable[[Mapping[str, float]], None],
) -> dict[str, Any]:
    from aqmlab import _core

    replace = task.replace or bool(request["replace"])
    if not replace and place.has(task.name):
        return {"status": "present"}
    staged = staging / task.digest
    took = _core.run_one(
        task.toml,
        task.file_name,
        task.arm,
        task.seed,
        staged,
        memory_cap=request["memory_cap"],
        progress=progress,
        pcap=task.pcap,
        pcap_bytes=task.pcap_bytes,
    )
    made = read_json(staged / "manifest.json")
    if _core.run_digest(made["plan_digest"], task.seed, made["parts"]) != task.digest:
        shutil.rmtree(staged)
        raise RunError(
            "this machine's plan of the scenario, or a version of its parts, does not match the digest"
            f" `{task.digest}`"
        )
    place.put(staged, task.name, replace=replace)
    return {"status": "finished", **json.loads(took)}


if __name__ == "__main__":
    main()
