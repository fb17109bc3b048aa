"""How the queue under study fares over time: its backlog and throughput, mean over the seeds of a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqmlab.plan import seconds
from aqmlab.recording import Experiment

if TYPE_CHECKING:
    from aqmlab.recording import Run
    from aqmlab.results import Cell, Results

POINTS = 500
"""Steps at most in which a run is looked at: MSER-5 finds the end of its beginning to a hundredth of it."""


@dataclass(frozen=True)
class Course:
    """A series of a queue, mean over the seeds of a cell.

    Attributes
    ----------
    what
        As a sentence says it.
    metric
        The metric that is the mean of the series over the measured interval.
    values
        In the unit of the metric.
    step_s
        Time from one value to the next; the first one is over the first step.
    trifle
        What moves the mean by less is not worth a word.
    """

    what: str
    metric: str
    values: Sequence[float]
    step_s: float
    trifle: float = 0.0


def courses(results: Results, cell: Cell) -> tuple[Course, ...]:
    """Backlog and throughput of the queue of a cell; nothing if it has no runs, or they were not sampled."""
    runs = results.runs(cell)
    step = _step_ns(runs[0]) if runs else 0
    if not step:
        return ()
    end = max(run.t1_ns for run in runs)
    width = step * max(1, math.ceil(end / step / POINTS))
    experiment = Experiment(results.path, results.title, results.question, results.arms, results.seeds, runs)
    queue = results.queue_of(cell).replace("'", "''")
    # A sample tells what happened up to its time, so the one at the end of a bin belongs to it.
    rows = experiment.rows(
        "queues",
        f"(t_ns - 1) // {width} AS bin, avg(backlog_packets), avg(departures_bytes)",
        f"WHERE queue = '{queue}' AND t_ns > 0 GROUP BY bin ORDER BY bin",
    )
    backlog, departures = [float(row[1]) for row in rows], [8e9 / step * float(row[2]) for row in rows]
    return (
        Course("the backlog", "backlog_mean_packets", backlog, width / 1e9, trifle=1.0),
        Course("throughput", "throughput_bps", departures, width / 1e9),
    )


def _step_ns(run: Run) -> int:
    """The sampling interval of queues; 0 if they are not sampled."""
    return round(seconds(str(run.plan["record"]["queues"])) * 1e9)
