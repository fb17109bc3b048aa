"""The history of the queue under study: its backlog and throughput, averaged over the seeds of a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqmlab.recordings.recording import Run, Tables
from aqmlab.results.reader import RUNS_READ_TOGETHER

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

POINTS = 500
"""Largest number of steps per run: MSER-5 then finds the transient's end to within 1 % of the run."""


@dataclass(frozen=True)
class QueueHistory:
    """A series of values at a queue, averaged over the seeds of a cell.

    Attributes
    ----------
    what
        The name of the series, as used in sentences.
    metric
        The metric that is the mean of the series over the measured interval.
    values
        Values in the unit of the metric.
    step_s
        Time from one value to the next; the first value covers the first step.
    trifle
        Changes in the mean that are smaller than this are not reported.
    """

    what: str
    metric: str
    values: Sequence[float]
    step_s: float
    trifle: float = 0.0


def queue_histories(results: Results) -> dict[Cell, tuple[QueueHistory, ...]]:
    """Backlog and throughput of the queue of each cell; cells without runs or samples are left out."""
    sampled = [cell for cell in results.cells if results.runs_of(cell) and _step_ns(results.runs_of(cell)[0])]
    # Two settings with the same plan share their runs, so each run is read once.
    distinct = list({_paths(results, cell): cell for cell in sampled}.values())
    together = max(1, RUNS_READ_TOGETHER // max(1, len(results.seeds)))
    found: dict[tuple[Path, ...], tuple[QueueHistory, ...]] = {}
    for i in range(0, len(distinct), together):
        found |= _read(results, distinct[i : i + together])
    return {cell: found[_paths(results, cell)] for cell in sampled}


def _paths(results: Results, cell: Cell) -> tuple[Path, ...]:
    return tuple(run.path for run in results.runs_of(cell))


def _read(results: Results, cells: Sequence[Cell]) -> dict[tuple[Path, ...], tuple[QueueHistory, ...]]:
    """Return the histories of the given cells, keyed by the paths of their runs; one query reads them."""
    runs = [run for cell in cells for run in results.runs_of(cell)]
    of_run = [i for i, cell in enumerate(cells) for _ in results.runs_of(cell)]
    steps = [_step_ns(results.runs_of(cell)[0]) for cell in cells]
    ends = [max(run.t1_ns for run in results.runs_of(cell)) for cell in cells]
    widths = [step * max(1, math.ceil(end / step / POINTS)) for step, end in zip(steps, ends, strict=True)]
    queues = ["'" + results.queue_of(cell).replace("'", "''") + "'" for cell in cells]

    def by_run(of_cells: Sequence[object]) -> str:
        """Return the SQL that selects the value of the cell to which a row's run belongs."""
        return f"[{', '.join(str(of_cells[i]) for i in of_run)}][run + 1]"

    # A sample covers the time before it, so a sample at the end of a bin belongs to that bin.
    rows = Tables(runs, results.reader.remedy).rows(
        "queues",
        f"{by_run(range(len(cells)))} AS cell, (t_ns - 1) // {by_run(widths)} AS bin,"
        " avg(backlog_packets), avg(departures_bytes)",
        f"WHERE queue = {by_run(queues)} AND t_ns > 0 GROUP BY cell, bin ORDER BY cell, bin",
    )
    by_cell: list[list[tuple[float, float]]] = [[] for _ in cells]
    for i, _, backlog, departures in rows:
        by_cell[i].append((float(backlog), float(departures)))
    return {
        _paths(results, cell): _courses(of_cell, step, width)
        for cell, of_cell, step, width in zip(cells, by_cell, steps, widths, strict=True)
    }


def _courses(rows: Sequence[tuple[float, float]], step_ns: int, width_ns: int) -> tuple[QueueHistory, ...]:
    width_s = width_ns / 1e9
    throughput = [8e9 / step_ns * departures for _, departures in rows]
    return (
        QueueHistory(
            "the backlog", "backlog_mean_packets", [waiting for waiting, _ in rows], width_s, trifle=1.0
        ),
        QueueHistory("throughput", "throughput_bps", throughput, width_s),
    )


def _step_ns(run: Run) -> int:
    """The sampling interval of queues; 0 if they are not sampled."""
    return run.plan.queues_every_ns
