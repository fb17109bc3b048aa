"""Time series of a run, thinned to what a figure can show.

Samples are averaged (levels) or summed (counts) over bins of equal length, so that nothing is skipped: a
figure of 600 bins shows each drop, however long the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from aqmlab.recording import Experiment, Run

Floats = npt.NDArray[np.float64]
MOST_BINS = 600
MOST_FLOWS = 10


@dataclass(frozen=True)
class Series:
    """Values by time.

    Attributes
    ----------
    t_s
        Ends of the bins, in seconds since the start of the run.
    values
        By name: ``backlog_packets``, ``arrivals_bps``, ``avg``, ``p``, ...
    """

    t_s: Floats
    values: Mapping[str, Floats]


@dataclass(frozen=True)
class RunSeries:
    """What figures show of one run and one queue."""

    run: Run
    queue: Series
    law: Mapping[str, tuple[Floats, Floats]]
    """By name (``avg``, ``p``): times in s, values in the law's own unit."""
    cwnd: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """By flow ("ftp 3") and ``mean``: times in s, congestion windows in segments."""


def run_series(
    experiment: Experiment, runs: Sequence[Run], queue: str, bins: int = MOST_BINS
) -> list[RunSeries]:
    """Series of several runs at one queue.

    Parameters
    ----------
    experiment
        What the runs belong to.
    runs
        Which ones.
    queue
        The queue's name.
    bins
        At most so many points in each line.
    """
    if not runs:
        return []
    end_ns = max(run.t1_ns for run in runs)
    queues = _queue_series(experiment, runs, queue, end_ns, bins)
    laws = _law_series(experiment, runs, queue, end_ns, bins)
    windows = _window_series(experiment, runs, end_ns, bins)
    return [RunSeries(run, queues[i], laws[i], windows[i]) for i, run in enumerate(runs)]


def _width(experiment: Experiment, runs: Sequence[Run], table: str, end_ns: int, bins: int) -> int:
    """Length of a bin in ns: a multiple of the table's sampling interval."""
    step = _step(experiment, runs, table)
    samples = -(-end_ns // step)
    return step * max(-(-samples // bins), 1)


def _step(experiment: Experiment, runs: Sequence[Run], table: str) -> int:
    """The table's sampling interval in ns; 1 where there are not two samples."""
    times = [row[0] for row in experiment.rows(table, "DISTINCT t_ns", "ORDER BY t_ns LIMIT 2", runs[:1])]
    return int(times[1] - times[0]) if len(times) == 2 else 1


_LEVELS = ("backlog_packets",)
_COUNTS = (
    "arrivals_bytes",
    "departures_bytes",
    "dropped_early_packets",
    "dropped_overflow_packets",
    "marked_packets",
)


def _queue_series(
    experiment: Experiment, runs: Sequence[Run], queue: str, end_ns: int, bins: int
) -> list[Series]:
    width = _width(experiment, runs, "queues", end_ns, bins)
    step = _step(experiment, runs, "queues")
    means = ", ".join(f"avg({name}) AS {name}" for name in _LEVELS)
    sums = ", ".join(f"sum({name})::DOUBLE AS {name}" for name in _COUNTS)
    # A sample tells what happened up to its time, so the one at the end of a bin belongs to it.
    columns = experiment.arrays(
        "queues",
        f"run, (t_ns - 1) // {width} AS bin, count(*) AS samples, {means}, {sums}",
        f"WHERE queue = {_text(queue)} AND t_ns > 0 GROUP BY run, bin ORDER BY run, bin",
        runs,
    )
    result = []
    for part in _by_run(columns, len(runs)):
        t_s = (part["bin"] + 1) * (width / 1e9)
        values = {name: part[name] for name in _LEVELS}
        # The last bin may be cut short by the end of the run.
        per_s = 1e9 / (part["samples"] * step)
        values["arrivals_bps"] = part["arrivals_bytes"] * 8 * per_s
        values["departures_bps"] = part["departures_bytes"] * 8 * per_s
        for name in _COUNTS[2:]:
            values[name.replace("_packets", "_per_s")] = part[name] * per_s
        result.append(Series(t_s, values))
    return result


def _law_series(
    experiment: Experiment, runs: Sequence[Run], queue: str, end_ns: int, bins: int
) -> list[dict[str, tuple[Floats, Floats]]]:
    width = _width(experiment, runs, "law", end_ns, bins)
    columns = experiment.arrays(
        "law",
        f"run, name, t_ns // {width} AS bin, avg(t_ns) / 1e9 AS t_s, avg(value) AS value",
        f"WHERE queue = {_text(queue)} GROUP BY run, name, bin ORDER BY run, name, bin",
        runs,
    )
    return [_lines(part, "name") for part in _by_run(columns, len(runs), keep=("name",))]


def _window_series(
    experiment: Experiment, runs: Sequence[Run], end_ns: int, bins: int
) -> list[dict[str, tuple[Floats, Floats]]]:
    width = _width(experiment, runs, "flow_series", end_ns, bins)
    flows = experiment.rows("flows", "run, flow, class, index", "ORDER BY run, flow", runs)
    names: list[dict[int, str]] = [{} for _ in runs]
    for run, flow, class_name, index in flows:
        names[run][flow] = f"{class_name} {index}"
    columns = experiment.arrays(
        "flow_series",
        f"run, flow, t_ns // {width} AS bin, avg(t_ns) / 1e9 AS t_s, avg(cwnd_segments) AS value",
        "WHERE cwnd_segments > 0 GROUP BY run, flow, bin ORDER BY run, flow, bin",
        runs,
    )
    result = []
    for i, part in enumerate(_by_run(columns, len(runs), keep=("flow",))):
        lines = {}
        for flow in np.unique(part["flow"])[:MOST_FLOWS]:
            chosen = part["flow"] == flow
            lines[names[i].get(int(flow), str(flow))] = _line(part, chosen)
        if lines:
            inverse = np.unique(part["bin"], return_inverse=True)[1]
            of_bin = np.bincount(inverse)
            t_s, mean = (np.bincount(inverse, weights=part[name]) / of_bin for name in ("t_s", "value"))
            lines["mean"] = (t_s, mean)
        result.append(lines)
    return result


def _lines(part: Mapping[str, Any], key: str) -> dict[str, tuple[Floats, Floats]]:
    return {str(name): _line(part, part[key] == name) for name in sorted(set(part[key]))}


def _line(part: Mapping[str, Any], chosen: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """A point a bin, at the mean time of its samples."""
    return part["t_s"][chosen], part["value"][chosen]


def _by_run(columns: Mapping[str, Any], runs: int, keep: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Cut columns into one set a run; all but ``keep`` become floats."""
    cuts = np.searchsorted(np.asarray(columns["run"]), np.arange(runs + 1))
    result = []
    for begin, end in pairwise(cuts):
        part = {}
        for name, column in columns.items():
            piece = column[begin:end]
            part[name] = np.asarray(piece) if name in keep else np.asarray(piece, dtype=np.float64)
        result.append(part)
    return result


def _text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"
