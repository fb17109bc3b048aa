"""The work of a Dask worker: the only function that Dask's tasks call, and its answer.

A request is JSON text. The run is executed in a separate process (:mod:`aqmlab.sweeps.process`), so that a
crash, an endless run or excessive use of memory ends that process and not Dask's worker.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aqmlab.errors import HostError
from aqmlab.sweeps.parcel import packed
from aqmlab.sweeps.process import Hear, Keeper
from aqmlab.sweeps.store import Store
from aqmlab.system.machine import SHARE_OF_MEMORY, memory_cap

FORMAT = 1
"""The format version of requests and answers."""
REFUSED = "refused"
"""The status of a run that this worker refuses to execute."""
NEWS = "aqmlab"
"""The topic of Dask's events on which workers report the progress of runs."""

_IDLE_S = 60.0
"""Time for which a process waits for the next request."""
_SECONDS_BETWEEN_NEWS = 2.0
"""Interval between reports on one run; long because the scheduler passes on all workers' events."""
_here = threading.local()
"""Per thread, ``keeper`` is a pair: the directory of a store, and the thread's process for it."""


def parts() -> Mapping[str, int]:
    """The versions of the installed parts of the program."""
    from aqmlab import _core

    return _core.PARTS


def release() -> str:
    """The version of the installed program."""
    from aqmlab import _core

    return _core.__version__


def attempt(request: str, files: Mapping[str, bytes] | None = None) -> dict[str, Any]:
    """Execute a run.

    Parameters
    ----------
    request
        JSON: ``format``, ``release``, ``task``, ``place``, ``token``, ``bring``, ``replace``, ``silence_s``.
    files
        The contents of the files that the scenario names, keyed by these names.

    Returns
    -------
    dict
        ``answer``, as the process gave it; ``worker``, the address of this worker; ``files``, the files of
        the recording by name, if the place cannot be reached from here; ``parts``, the versions installed
        here, if the run needs others.
    """
    from distributed import get_worker

    worker = get_worker()
    asked = json.loads(request)
    if asked["format"] != FORMAT:
        found = f"it has aqmlab {release()}; install {asked['release']}, the version that made the request"
        return _refused(found, worker.address)
    found = _differences(asked["task"]["parts"], asked["release"])
    if found:
        return {**_refused(found, worker.address), "parts": dict(parts())}
    scratch = Path(worker.local_directory) / "aqmlab"
    try:
        scratch.mkdir(exist_ok=True)
        task = _with_files(asked["task"], files or {}, scratch)
        shared = _is_shared(Path(asked["place"]), asked["token"])
        place = Path(asked["place"]) if shared else _own_store(scratch)
        if not shared:
            task["name"] = task["digest"]
        answer = _keeper(place, asked["silence_s"]).answer(
            {"task": task, "replace": asked["replace"], "memory_cap": _memory_cap(worker)}, _news(worker)
        )
        return {
            "answer": answer,
            "worker": worker.address,
            "files": None if shared else _taken(place, task["digest"], asked["bring"]),
        }
    except HostError as error:
        return _unable(str(error), worker.address)
    except OSError as error:
        return _unable(f"cannot write `{scratch}`: {error.strerror or error}", worker.address)


def _unable(reason: str, address: str) -> dict[str, Any]:
    return {"answer": {"status": "machine", "cause": "machine", "reason": reason}, "worker": address}


def _refused(reason: str, address: str) -> dict[str, Any]:
    return {"answer": {"status": REFUSED, "cause": REFUSED, "reason": reason}, "worker": address}


def _differences(needed: Mapping[str, int], wanted: str) -> str:
    """Return how this worker differs from what a run needs; empty if it does not."""
    own = parts()
    other = [name for name in needed if own.get(name) != needed[name]]
    if not other:
        return ""
    has = ", ".join(f"{name} {own.get(name, 'unknown')}" for name in other)
    right = ", ".join(f"{name} {needed[name]}" for name in other)
    return f"it has {has} (aqmlab {release()}); install what is needed: {right} (aqmlab {wanted})"


def _news(worker: Any) -> Hear:  # noqa: ANN401 (of Dask)
    """A callback that periodically reports the progress of this thread's run to the client."""
    key, told_s = worker.get_current_task(), time.monotonic()

    def hear(now: Mapping[str, Any]) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= _SECONDS_BETWEEN_NEWS:
            told_s = time.monotonic()
            worker.log_event(NEWS, {"key": key, "now": now})

    return hear


def _is_shared(place: Path, token: Mapping[str, str]) -> bool:
    """Whether the place's path refers to the same place on this machine, as a file in it proves."""
    with suppress(OSError):
        return (place / token["file"]).read_text(encoding="ascii") == token["content"]
    return False


def _own_store(scratch: Path) -> Path:
    """Return a store of this worker, in which recordings stay until they are sent back."""
    store = scratch / "store"
    return store if (store / "store.json").exists() else Store.made(store).path


def _with_files(task: dict[str, Any], files: Mapping[str, bytes], scratch: Path) -> dict[str, Any]:
    """Write the task's files into a folder; return the task with the path of its scenario in that folder."""
    if not files:
        return task
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    folder = scratch / f"files-{digest.hexdigest()[:16]}"
    if not folder.exists():
        half = folder.with_name(f"{folder.name}-{os.getpid()}-{threading.get_ident()}")
        for name, content in files.items():
            (half / name).parent.mkdir(parents=True, exist_ok=True)
            (half / name).write_bytes(content)
        try:
            half.rename(folder)
        except OSError:
            # Another thread was first.
            shutil.rmtree(half)
    return {**task, "file_name": str(folder / Path(task["file_name"]).name)}


def _keeper(store: Path, silence_s: float) -> Keeper:
    """Return this thread's process for this store."""
    known: tuple[Path, Keeper] | None = getattr(_here, "keeper", None)
    if known is not None and known[0] == store:
        return known[1]
    if known is not None:
        known[1].close()
    keeper = Keeper(store, idle_s=_IDLE_S, silence_s=silence_s)
    _here.keeper = (store, keeper)
    return keeper


def _taken(store: Path, digest: str, bring: Any) -> dict[str, bytes] | None:  # noqa: ANN401 (of JSON)
    """Return the files of a recording, and delete it here; ``None`` if there is none."""
    recording = Store(store).path_of(digest)
    if not recording.exists():
        return None
    try:
        return packed(recording, bring)
    finally:
        shutil.rmtree(recording, ignore_errors=True)


def _memory_cap(worker: Any) -> int:  # noqa: ANN401 (of Dask)
    """Return how many bytes a run may take, so that a run per thread leaves a fifth of the memory free."""
    limit = worker.memory_manager.memory_limit
    threads: int = worker.state.nthreads
    return int(limit * SHARE_OF_MEMORY / threads) if limit else memory_cap(threads)
