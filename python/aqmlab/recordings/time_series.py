"""Time series of a run, reduced to the resolution of a figure.

Samples are averaged (levels) or summed (counts) over bins of equal length, so that nothing is skipped: a
figure of 600 bins shows each drop, however long the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab.recordings.faithfulness import faithfulness_of
from aqmlab.recordings.frames import REAL, Columns, Framed
from aqmlab.recordings.recording import Run, Tables
from aqmlab.text.numbers import counted

# A report draws a few thousand points: computing them takes less time than importing NumPy.
Floats = Sequence[float]
MOST_BINS = 600
MOST_FLOWS = 10


@dataclass(frozen=True, repr=False)
class Series(Framed):
    """Values by time. As a data frame, it has a row per bin.

    Attributes
    ----------
    t_s
        Ends of the bins, in seconds since the start of the run.
    values
        Values by name: ``backlog_packets``, ``arrivals_bps``, ``avg``, ``p``, ...
    """

    t_s: Floats
    values: Mapping[str, Floats]

    def __repr__(self) -> str:
        return f"<Series: {counted(len(self.t_s), 'bin')} of {', '.join(self.values)}>"

    def _frame_columns(self) -> Columns:
        return {name: (REAL, values) for name, values in {"t_s": self.t_s, **self.values}.items()}


@dataclass(frozen=True, repr=False)
class RunSeries:
    """The series of one run and one queue that figures show."""

    run: Run
    queue: Series
    law: Mapping[str, tuple[Floats, Floats]]
    """The law's values by name (``avg``, ``p``): times in s; values in the law's unit, ``avg`` in packets."""
    cwnd: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """Congestion windows by flow ("ftp 3"), and their ``mean``: times in s, and windows in segments."""
    stalls: Sequence[tuple[float, float]] = ()
    """The beginning and the end, in s, of each listed stall of the router; empty for a simulated run."""

    def __repr__(self) -> str:
        lines = ", ".join([*self.law, *(f"cwnd of {name}" for name in self.cwnd)])
        return f"<RunSeries of {self.run!r}: {self.queue!r}; {lines or 'no law and no windows'}>"


def run_series(tables: Tables, runs: Sequence[Run], queue: str, bins: int = MOST_BINS) -> list[RunSeries]:
    """Series of several runs at one queue.

    Parameters
    ----------
    tables
        The tables of the runs.
    runs
        The runs.
    queue
        The queue's name.
    bins
        Largest number of points in each line.
    """
    if not runs:
        return []
    end_ns = max(run.t1_ns for run in runs)
    queues = _queue_series(tables, runs, queue, end_ns, bins)
    laws = _law_series(tables, runs, queue, end_ns, bins)
    windows = _window_series(tables, runs, end_ns, bins)
    return [RunSeries(run, queues[i], laws[i], windows[i], _stalls(run)) for i, run in enumerate(runs)]


def _stalls(run: Run) -> tuple[tuple[float, float], ...]:
    verdict = faithfulness_of(run)
    return () if verdict is None else verdict.stalls_s


def _width(tables: Tables, runs: Sequence[Run], table: str, end_ns: int, bins: int) -> int:
    """Length of a bin in ns: a multiple of the table's sampling interval."""
    step = _step(tables, runs, table)
    samples = -(-end_ns // step)
    return step * max(-(-samples // bins), 1)


def _step(tables: Tables, runs: Sequence[Run], table: str) -> int:
    """The table's sampling interval in ns; 1 if there are fewer than two samples."""
    times = [row[0] for row in tables.rows(table, "DISTINCT t_ns", "ORDER BY t_ns LIMIT 2", runs[:1])]
    return int(times[1] - times[0]) if len(times) == 2 else 1


_LEVELS = ("backlog_packets", "backlog_bytes")
_COUNTS = (
    "arrivals_bytes",
    "departures_bytes",
    "dropped_by_law_packets",
    "dropped_not_by_law_packets",
    "marked_packets",
)


def _queue_series(tables: Tables, runs: Sequence[Run], queue: str, end_ns: int, bins: int) -> list[Series]:
    width = _width(tables, runs, "queues", end_ns, bins)
    step = _step(tables, runs, "queues")
    means = ", ".join(f"avg({name}) AS {name}" for name in _LEVELS)
    # The last bin may be cut short by the end of the run.
    sums = ", ".join(f"sum({name}) * 1e9 / (count(*) * {step}) AS {name}" for name in _COUNTS)
    # A sample covers the time before it, so a sample at the end of a bin belongs to that bin.
    rows = tables.rows(
        "queues",
        f"run, (t_ns - 1) // {width} AS bin, {means}, {sums}",
        f"WHERE queue = {_text(queue)} AND t_ns > 0 GROUP BY run, bin ORDER BY run, bin",
        runs,
    )
    capacities = _capacities(tables, runs, queue, width, step)
    result: list[Series] = []
    for part in _by_run(rows, len(runs)):
        number, *columns = _columns(part, 1 + len(_LEVELS) + len(_COUNTS))
        found = dict(zip((*_LEVELS, *_COUNTS), columns, strict=True))
        values = {name: found[name] for name in _LEVELS}
        for direction in ("arrivals", "departures"):
            values[f"{direction}_bps"] = [8 * rate for rate in found[f"{direction}_bytes"]]
        for name in _COUNTS[2:]:
            values[name.replace("_packets", "_per_s")] = found[name]
        if (capacity := capacities.get(len(result))) is not None:
            values["capacity_bps"] = [capacity.get(int(bin), 0.0) for bin in number]
            link = runs[len(result)].plan.link(queue)
            added = 0 if link is None else link.overhead_bytes
            waiting = zip(values["backlog_packets"], values["backlog_bytes"], strict=True)
            values["backlog_on_link_bytes"] = [size + added * packets for packets, size in waiting]
        result.append(Series([(bin + 1) * (width / 1e9) for bin in number], values))
    return result


def _capacities(
    tables: Tables, runs: Sequence[Run], queue: str, width: int, step: int
) -> dict[int, dict[int, float]]:
    """Return the capacity in bit/s by bin, by the index of each run in which it changes."""
    changing = [i for i, run in enumerate(runs) if run.changes(queue)]
    if not changing:
        return {}
    rows = tables.rows(
        "capacity",
        f"run, (t_ns - 1) // {width} AS bin, sum(capacity_bytes) * 8e9 / (count(*) * {step})",
        f"WHERE queue = {_text(queue)} AND t_ns > 0 GROUP BY run, bin",
        [runs[i] for i in changing],
    )
    found: dict[int, dict[int, float]] = {i: {} for i in changing}
    for run, bin, rate in rows:
        found[changing[int(run)]][int(bin)] = float(rate)
    return found


def _law_series(
    tables: Tables, runs: Sequence[Run], queue: str, end_ns: int, bins: int
) -> list[dict[str, tuple[Floats, Floats]]]:
    width = _width(tables, runs, "law", end_ns, bins)
    rows = tables.rows(
        "law",
        "run, name, avg(t_ns) / 1e9, avg(value)",
        f"WHERE queue = {_text(queue)} GROUP BY run, name, t_ns // {width} ORDER BY run, name, avg(t_ns)",
        runs,
    )
    lines = [_lines(part) for part in _by_run(rows, len(runs))]
    return [_in_packets(of_run, run, queue) for of_run, run in zip(lines, runs, strict=True)]


def _in_packets(
    law: dict[str, tuple[Floats, Floats]], run: Run, queue: str
) -> dict[str, tuple[Floats, Floats]]:
    if "avg" not in law or (units := run.plan.units_a_packet(queue)) == 1.0:
        return law
    times, values = law["avg"]
    return {**law, "avg": (times, [value / units for value in values])}


def _window_series(
    tables: Tables, runs: Sequence[Run], end_ns: int, bins: int
) -> list[dict[str, tuple[Floats, Floats]]]:
    width = _width(tables, runs, "flow_series", end_ns, bins)
    flows = tables.rows("flows", "run, flow, class, index", "", runs)
    names = {(run, flow): f"{class_name} {index}" for run, flow, class_name, index in flows}
    rows = tables.select("flow_series", _WINDOWS.format(width=width, most=MOST_FLOWS), runs)
    named = [
        (run, "mean" if flow is None else names.get((run, flow), str(flow)), t_s, value)
        for run, flow, t_s, value in rows
    ]
    return [_lines(part) for part in _by_run(named, len(runs))]


# The windows of the first flows that have one, followed by the mean window of all flows.
_WINDOWS = """
SELECT run, flow, t_s, value FROM (
  WITH binned AS MATERIALIZED (
    SELECT run, flow, t_ns // {width} AS bin, avg(t_ns) / 1e9 AS t_s, avg(cwnd_segments) AS value
    FROM flow_series WHERE cwnd_segments > 0 GROUP BY run, flow, bin
  ), first AS (
    SELECT DISTINCT run, flow FROM binned
    QUALIFY dense_rank() OVER (PARTITION BY run ORDER BY flow) <= {most}
  )
  SELECT * FROM binned SEMI JOIN first USING (run, flow)
  UNION ALL SELECT run, NULL, bin, avg(t_s), avg(value) FROM binned GROUP BY run, bin
) ORDER BY run, flow NULLS LAST, bin
"""


def _lines(points: Iterable[tuple[Any, ...]]) -> dict[str, tuple[Floats, Floats]]:
    """Return times and values of each line, by name: one point per bin, at the mean time of its samples."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for name, t_s, value in points:
        line = lines.setdefault(str(name), ([], []))
        line[0].append(t_s)
        line[1].append(value)
    return dict(lines)


def _by_run(rows: Iterable[tuple[Any, ...]], runs: int) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each run without their first column, which is the number of the run."""
    parts: list[list[tuple[Any, ...]]] = [[] for _ in range(runs)]
    for run, *rest in rows:
        parts[run].append(tuple(rest))
    return parts


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> list[list[float]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]


def _text(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"
