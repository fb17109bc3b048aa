"""A worker: reads tasks, a JSON line each, does them, and answers each with a line.

Started by :mod:`aqmlab.sweeps.executor` as ``python -m aqmlab.sweeps.worker STORE PARENT``. It ends with its
standard input, and with its parent, however that ended. Ctrl-C is the parent's business.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from aqmlab.errors import AqmlabError, HostError, MemoryCapError
from aqmlab.sweeps.cases import Task
from aqmlab.sweeps.store import Store

_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of prctl(2)."""


def main() -> None:
    """Serve until there is nobody to serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store, parent = Store(sys.argv[1]), int(sys.argv[2])
    _die_with(parent)
    # Whatever prints, a panic or a library, is not to be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.stdin, answers, store, parent)
    except BrokenPipeError:
        # Nobody is there any more to be told that.
        os._exit(0)


def serve(requests: TextIO, answers: TextIO, store: Store, parent: int) -> None:
    """Do what is asked, line by line, until there are no more lines."""
    try:
        with store.staging() as staging:
            for line in requests:
                request = json.loads(line)
                task = Task.from_json(request["task"])
                _tell(answers, _attempt(store, staging, task, request, parent))
    except HostError as error:
        for _ in requests:
            _tell(answers, _refusal(error))


def _tell(answers: TextIO, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _attempt(
    store: Store, staging: Path, task: Task, request: Mapping[str, Any], parent: int
) -> dict[str, Any]:
    try:
        return _do(store, staging, task, request, parent)
    except MemoryCapError as error:
        return {"status": "failed", "cause": "memory", "reason": str(error)}
    except HostError as error:
        return _refusal(error)
    except AqmlabError as error:
        # Who reads it knows of which run.
        reason = str(error).removeprefix(f"arm `{task.arm}`, seed {task.seed}: ")
        return {"status": "failed", "cause": type(error).__name__, "reason": reason}


def _refusal(error: HostError) -> dict[str, Any]:
    """The next run would find the same: no space, no permission."""
    return {"status": "machine", "cause": "machine", "reason": str(error)}


def _do(store: Store, staging: Path, task: Task, request: Mapping[str, Any], parent: int) -> dict[str, Any]:
    from aqmlab import _core

    replace = task.replace or bool(request["replace"])
    if not replace and store.has(task.digest):
        return {"status": "present"}
    staged = staging / task.digest
    took = _core.run_one(
        task.toml,
        task.file_name,
        task.arm,
        task.seed,
        staged,
        memory_cap=request["memory_cap"],
        progress=lambda _: _end_without(parent),
    )
    store.put(staged, task.digest, replace=replace)
    return {"status": "finished", **json.loads(took)}


def _die_with(parent: int) -> None:
    """Have the kernel end this process with its parent; where it cannot, the progress of a run looks."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    _end_without(parent)


def _end_without(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    main()
