"""Executors: where tasks are done. Here: processes of this machine.

A task is plain data and its result is a directory in the store, so an executor needs to carry nothing but a
:class:`~aqmlab.sweeps.cases.Task` there and an :class:`Outcome` back; one that uses other machines is a
second implementation of :class:`Executor`.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from aqmlab.sweeps.cases import Task

ATTEMPTS = 2
"""How often a run is begun whose worker dies under it."""

_LAST_WORDS = 2000
"""Bytes of a dead worker's stderr that are told."""
_PATIENCE_S = 5.0
"""What an idle worker gets to end by itself."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Attributes
    ----------
    task
        Which one.
    status
        ``finished``; ``present``, if somebody else has done it meanwhile; ``failed``; ``machine``, if this
        machine cannot, and the next run would find the same.
    cause, reason
        Of a failure: a word to count by, and a sentence.
    wall_s, cpu_s
        Of the run itself, its recording included.
    events
        That the simulator processed.
    """

    task: Task
    status: str
    cause: str = ""
    reason: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    events: int = 0


class Executor(Protocol):
    """Does tasks, in whatever order."""

    workers: int
    """Tasks that are done side by side."""

    def submit(self, task: Task) -> None:
        """Take a task; it need not be begun at once."""

    def outcome(self, timeout_s: float) -> Outcome | None:
        """The next outcome; ``None`` if there is none within the time."""

    def close(self, *, now: bool) -> None:
        """End, at once or when all tasks are done; wait until nothing is left of it."""


class LocalExecutor:
    """Worker processes of this machine that live as long as there are tasks.

    A worker that dies costs its run one attempt and is replaced.

    Parameters
    ----------
    store
        Where results go.
    workers
        How many processes.
    memory_cap
        Bytes that a run may take; 0 for no cap.
    replace
        Whether runs that are there are done again.
    """

    def __init__(self, store: Path, workers: int, *, memory_cap: int = 0, replace: bool = False) -> None:
        self.workers = workers
        self._store = store
        self._request = {"memory_cap": memory_cap, "replace": replace}
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._processes: set[_Worker] = set()
        self._closed = False
        # The kernel ends a worker with the thread that started it: these end after their workers.
        self._threads = [threading.Thread(target=self._keep, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, task: Task) -> None:
        """Queue a task."""
        self._tasks.put(task)

    def outcome(self, timeout_s: float) -> Outcome | None:
        """The next outcome; ``None`` if there is none within the time."""
        try:
            return self._outcomes.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self, *, now: bool) -> None:
        """End all workers and wait until they have gone: with ``now`` also those in the middle of a run."""
        if now:
            with self._lock:
                self._closed = True
                for worker in self._processes:
                    worker.kill()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def pids(self) -> list[int]:
        """The process ids of the workers that live."""
        with self._lock:
            return [worker.pid for worker in self._processes]

    def _keep(self) -> None:
        """What a thread does: keep one worker, and replace it where it dies."""
        worker: _Worker | None = None
        while (task := self._tasks.get()) is not None and not self._closed:
            deaths: list[str] = []
            answer: dict[str, Any] | None = None
            while answer is None and len(deaths) < ATTEMPTS and not self._closed:
                worker = worker or self._start()
                answer = worker.ask({"task": task.to_json(), **self._request})
                if answer is None:
                    deaths.append(worker.died())
                    self._forget(worker)
                    worker = None
            if answer is None:
                answer = {
                    "status": "failed",
                    "cause": "crash",
                    "reason": "; then ".join(dict.fromkeys(deaths)),
                }
            if not self._closed:
                self._outcomes.put(Outcome(task, **answer))
        if worker is not None:
            worker.end()
            self._forget(worker)

    def _start(self) -> _Worker:
        with self._lock:
            worker = _Worker(self._store)
            self._processes.add(worker)
            if self._closed:
                worker.kill()
            return worker

    def _forget(self, worker: _Worker) -> None:
        with self._lock:
            self._processes.discard(worker)


class _Worker:
    """One worker process and the pipes to it."""

    def __init__(self, store: Path) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            # -P: no file of the directory that we are in is to be taken for a module.
            [sys.executable, "-P", "-m", "aqmlab.sweeps.worker", str(store), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self.pid = self._process.pid

    def ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Have a request answered; ``None`` if the process has died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        """End the process wherever it is."""
        self._process.kill()

    def died(self) -> str:
        """How the process ended, in words."""
        self._process.kill() if self._process.poll() is None else None
        code = self._process.wait()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(self._stderr.tell() - _LAST_WORDS, 0))
        words = self._stderr.read().decode(errors="replace").strip().splitlines()
        self._close()
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with {code}"
        return f"the worker {how}{f': {words[-1]}' if words else ''}"

    def end(self) -> None:
        """Let the process end, for it has nothing to do."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close()

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


__all__ = ["ATTEMPTS", "Executor", "LocalExecutor", "Outcome"]
