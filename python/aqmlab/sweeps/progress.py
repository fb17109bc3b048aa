"""The progress of the runs of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.stats import estimate

WATCHED = ("goodput_bps", "queueing_delay_mean_s", "queueing_delay_p95_s")
"""Metrics whose intervals are examined while a sweep grows.

They are well above zero if anything is sent. The width of an interval relative to a value near zero would be
meaningless.
"""


@dataclass(frozen=True)
class Widest:
    """The interval that is widest relative to its mean.

    Attributes
    ----------
    metric, cell
        The metric and the cell of the interval.
    relative
        Half the width of the interval, divided by the mean.
    """

    metric: str
    cell: Cell
    relative: float


@dataclass(frozen=True)
class UnderWay:
    """The progress of a run that is being executed.

    Attributes
    ----------
    arm, seed
        Arm and seed of the run.
    done_s, total_s
        The finished and the total time: simulated, or real for live runs.
    events
        Events that the simulator has processed.
    phase
        The current phase of a live run; empty for a simulated run.
    lateness_max_s
        The largest lateness of a packet of a live run.
    """

    arm: str
    seed: int
    done_s: float = 0.0
    total_s: float = 0.0
    events: int = 0
    phase: str = ""
    lateness_max_s: float = 0.0

    @property
    def share(self) -> float:
        """The completed share."""
        return self.done_s / self.total_s if self.total_s > 0 else 0.0


@dataclass(frozen=True)
class Progress:
    """The progress of the runs of a request.

    Attributes
    ----------
    runs_total
        Number of requested runs in this shard.
    runs_present
        Number of runs that were in the store already.
    runs_done
        Number of runs that have ended since the start, including failed ones.
    failures
        Number of failed runs, by cause.
    elapsed_s
        Time since the start, in seconds.
    to_go_s
        The estimated remaining time.
    cpu_s
        Processor time of the runs since the start.
    events
        Events that the simulator has processed since the start, in finished runs and in those in progress.
    under_way
        The runs in progress, as far as their workers report them.
    widest
        The widest interval of any cell that has at least two runs.
    note
        The current problems with the machines; empty if there are none.
    """

    runs_total: int
    runs_present: int = 0
    runs_done: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    elapsed_s: float = 0.0
    to_go_s: float | None = None
    cpu_s: float = 0.0
    events: int = 0
    under_way: tuple[UnderWay, ...] = ()
    widest: Widest | None = None
    note: str = ""

    @property
    def runs_per_s(self) -> float:
        """Runs per second since the first one began."""
        return self.runs_done / self.elapsed_s if self.elapsed_s > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the progress as plain data, as printed by ``--json``."""
        return {
            "runs_total": self.runs_total,
            "runs_present": self.runs_present,
            "runs_done": self.runs_done,
            "failures": dict(self.failures),
            "elapsed_s": round(self.elapsed_s, 3),
            "runs_per_s": round(self.runs_per_s, 3),
            "to_go_s": None if self.to_go_s is None else round(self.to_go_s, 1),
            "cpu_s": round(self.cpu_s, 6),
            "note": self.note,
            "widest": self.widest
            and {
                "metric": self.widest.metric,
                "arm": self.widest.cell.arm,
                "settings": dict(self.widest.cell.settings),
                "relative": self.widest.relative,
            },
        }


class Intervals:
    """The intervals of a growing sweep; a cell is evaluated again when it has more runs."""

    def __init__(self) -> None:
        self._seen: dict[Cell, tuple[int, Widest | None]] = {}

    def look(self, results: Results) -> Widest | None:
        """Return the widest interval, over all cells and the metrics in :data:`WATCHED`."""
        for cell in results.cells:
            count = len(results.runs_of(cell))
            if count > 1 and self._seen.get(cell, (0, None))[0] != count:
                self._seen[cell] = (count, _widest(results, cell))
        found = [widest for _, widest in self._seen.values() if widest is not None]
        return max(found, key=lambda widest: widest.relative, default=None)


def _widest(results: Results, cell: Cell) -> Widest | None:
    found = []
    for metric in WATCHED:
        est = estimate(results.values(metric, cell).values())
        if est is not None and est.half_width and est.mean:
            found.append(Widest(metric, cell, est.half_width / abs(est.mean)))
    return max(found, key=lambda widest: widest.relative, default=None)
