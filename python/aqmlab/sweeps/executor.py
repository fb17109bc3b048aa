"""Executors, which run tasks; the one in this module uses processes on this machine.

A task is plain data, and its result is a directory in a place, so an executor only has to pass on a
:class:`~aqmlab.sweeps.task.Task` and to bring back an :class:`Outcome`; an executor that uses other machines
is another implementation of :class:`Executor`.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from aqmlab.sweeps.process import SILENCE_S, Keeper
from aqmlab.sweeps.progress import UnderWay
from aqmlab.sweeps.task import Task

SKIPPED = "skipped"
"""The cause recorded for runs that this machine cannot execute although it can execute others of the same
scenario."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task.

    Attributes
    ----------
    task
        The task.
    status
        ``finished``; ``present``, if another process has executed it in the meantime; ``failed``;
        ``machine``, if this machine cannot execute it, and the next run would fail for the same reason.
    cause, reason
        For a failure: the word under which it is counted, and a sentence that explains it. The word is
        :data:`SKIPPED` if the run cannot be executed on this machine although others can. For an error that
        ends all runs, ``cause`` is the error's name.
    wall_s, cpu_s
        Time of the run itself, including its recording.
    events
        Number of events that the simulator processed.
    """

    task: Task
    status: str
    cause: str = ""
    reason: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    events: int = 0


class Executor(Protocol):
    """Executes tasks, in any order."""

    workers: int
    """Number of tasks executed in parallel."""

    @property
    def note(self) -> str:
        """Return the current problems of the machines; empty if there are none."""

    @property
    def remarks(self) -> Sequence[str]:
        """Return remarks to show at the end, in addition to the outcomes."""

    def submit(self, task: Task) -> None:
        """Accept a task, which need not start immediately."""

    def outcome(self, timeout_s: float) -> Outcome | None:
        """The next outcome; ``None`` if there is none within the given time."""

    def under_way(self) -> Mapping[str, UnderWay]:
        """Return, by name, the progress of those current runs for which it is known."""

    def close(self, *, now: bool) -> None:
        """End immediately (``now``) or when all tasks are done, and wait until nothing is left running."""


class QueueExecutor:
    """A base class for executors whose threads take tasks from one queue and put outcomes into another.

    Parameters
    ----------
    workers
        Number of tasks executed in parallel.
    """

    note = ""
    remarks: Sequence[str] = ()

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._under_way: dict[str, UnderWay] = {}

    def submit(self, task: Task) -> None:
        """Queue a task."""
        self._tasks.put(task)

    def outcome(self, timeout_s: float) -> Outcome | None:
        """The next outcome; ``None`` if there is none within the given time."""
        try:
            return self._outcomes.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def under_way(self) -> Mapping[str, UnderWay]:
        """Return the progress of current runs, by name."""
        # Copied in one step because other threads modify it.
        return dict(self._under_way)


class LocalExecutor(QueueExecutor):
    """Worker processes on this machine that live as long as there are tasks.

    If a worker dies, or makes no progress for a long time, it is replaced, and its run is tried once more.

    Parameters
    ----------
    place
        The directory of the place that receives the results.
    workers
        Number of processes.
    memory_cap
        Bytes of memory that a run may take; 0 for no cap.
    replace
        Whether existing runs are repeated.
    silence_s
        Longest time that a run may go without progress.
    """

    def __init__(
        self,
        place: Path,
        workers: int,
        *,
        memory_cap: int = 0,
        replace: bool = False,
        silence_s: float = SILENCE_S,
    ) -> None:
        super().__init__(workers)
        self._request = {"memory_cap": memory_cap, "replace": replace}
        self._closed = False
        self._keepers = [Keeper(place, silence_s=silence_s) for _ in range(workers)]
        # The kernel kills a worker when the thread that started it exits, so these threads must outlive their
        # workers.
        self._threads = [
            threading.Thread(target=self._serve, args=(keeper,), daemon=True) for keeper in self._keepers
        ]
        for thread in self._threads:
            thread.start()

    def close(self, *, now: bool) -> None:
        """End all workers and wait until they have exited; with ``now``, even during a run."""
        if now:
            self._closed = True
            for keeper in self._keepers:
                keeper.kill()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def pids(self) -> list[int]:
        """The process ids of the living workers."""
        return [keeper.pid for keeper in self._keepers if keeper.pid is not None]

    def _serve(self, keeper: Keeper) -> None:
        """Execute one task after another in a thread."""
        while (task := self._tasks.get()) is not None and not self._closed:
            answer = keeper.answer({"task": task.to_json(), **self._request}, partial(self._hear, task))
            self._under_way.pop(task.name, None)
            if answer is not None and not self._closed:
                self._outcomes.put(Outcome(task, **answer))
        keeper.close()

    def _hear(self, task: Task, now: Mapping[str, Any]) -> None:
        self._under_way[task.name] = UnderWay(task.arm, task.seed, **now)
