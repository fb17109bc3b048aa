"""The outcomes so far of the runs of a request; they may be read while more arrive."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from aqmlab.sweeps.cases import PlannedCell
from aqmlab.sweeps.executor import SKIPPED, Outcome
from aqmlab.sweeps.progress import Progress, UnderWay, Widest
from aqmlab.system.stopping import HEARD_S


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended.

    Attributes
    ----------
    labels
        The swept values, in the order of the axes.
    arm, seed, digest
        The identity of the run.
    status
        ``finished``, ``present`` (another process has executed it in the meantime) or ``failed``.
    cause, reason
        For a failure: a word under which failures are counted, and a sentence.
    wall_s, cpu_s, events
        As measured for the run itself.
    """

    labels: tuple[str, ...]
    arm: str
    seed: int
    digest: str
    status: str
    cause: str
    reason: str
    wall_s: float
    cpu_s: float
    events: int


class Tally:
    """Runs that have ended, and the estimated time for the others.

    Parameters
    ----------
    cells
        The cell and the seed of each requested run, keyed by the run's name.
    todo
        The names of the runs to execute.
    """

    def __init__(self, cells: Mapping[str, tuple[PlannedCell, int]], todo: Set[str]) -> None:
        self.cells = cells
        self.todo = todo
        self.failed: dict[str, str] = {}
        self.causes: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}
        self.cpu_s = 0.0
        self.under_way: Mapping[str, UnderWay] = {}
        self.widest: Widest | None = None
        self.note = ""
        self._ended: list[EndedRun] = []
        self._there: set[str] = set()
        self._events = 0
        self._weight = 0.0
        self._weight_of_all = sum(cells[digest][0].weight for digest in todo)
        self._begun = time.monotonic()
        self._elapsed_s: float | None = None
        self._changed = threading.Condition()

    def add(self, outcome: Outcome) -> None:
        """Record the outcome of a run."""
        name = outcome.task.name
        cell, seed = self.cells[name]
        ended = EndedRun(
            labels=cell.labels,
            arm=cell.arm,
            seed=seed,
            digest=outcome.task.digest,
            status=outcome.status,
            cause=outcome.cause,
            reason=outcome.reason,
            wall_s=outcome.wall_s,
            cpu_s=outcome.cpu_s,
            events=outcome.events,
        )
        with self._changed:
            self._ended.append(ended)
            self._there |= set() if outcome.status == "failed" else {name}
            if outcome.status == "failed":
                self.failed[name] = outcome.reason
                self.causes[outcome.cause] += 1
                if outcome.cause == SKIPPED:
                    self.skipped.setdefault(cell.arm, outcome.reason)
            self.cpu_s += outcome.cpu_s
            self._events += outcome.events
            self._weight += cell.weight
            self._changed.notify_all()

    def close(self) -> None:
        """Record that no more runs will follow."""
        with self._changed:
            self._elapsed_s = time.monotonic() - self._begun
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether no more runs will follow."""
        return self._elapsed_s is not None

    def __len__(self) -> int:
        return len(self._ended)

    def __iter__(self) -> Iterator[EndedRun]:
        """Yields each run as it ends, starting with the first, until no more will follow."""
        seen = 0
        while True:
            with self._changed:
                while not self.closed and len(self._ended) == seen:
                    self._changed.wait(HEARD_S)
                fresh = self._ended[seen:]
            if not fresh:
                return
            yield from fresh
            seen += len(fresh)

    def there(self) -> Set[str]:
        """The names of the runs that exist: those found at the start, and those executed since."""
        with self._changed:
            return (self.cells.keys() - self.todo) | self._there

    def progress(self) -> Progress:
        """The progress."""
        with self._changed:
            elapsed = time.monotonic() - self._begun if self._elapsed_s is None else self._elapsed_s
            under_way = {name: run for name, run in self.under_way.items() if name not in self._there}
            done = self._weight + sum(
                self.cells[name][0].weight * run.share for name, run in under_way.items()
            )
            rest = max(self._weight_of_all - done, 0.0)
            return Progress(
                runs_total=len(self.cells),
                runs_present=len(self.cells) - len(self.todo),
                runs_done=len(self._ended),
                failures=dict(self.causes),
                elapsed_s=elapsed,
                to_go_s=elapsed * rest / done if done > 0 else None,
                cpu_s=self.cpu_s,
                events=self._events + sum(run.events for run in under_way.values()),
                under_way=tuple(under_way.values()),
                widest=self.widest,
                note=self.note,
            )
