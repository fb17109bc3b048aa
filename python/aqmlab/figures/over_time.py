"""A queue, its law and the windows of its flows over time: what figures of single runs show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from aqmlab.errors import UsageError
from aqmlab.figures.looks import DASHED, MUTED, PALETTE, STALL
from aqmlab.figures.model import INK, Figure, Line, Look, Mark, Span, over_time, warmup
from aqmlab.figures.view import EVERYTHING, View
from aqmlab.recordings.draining import draining_times
from aqmlab.recordings.recording import Run
from aqmlab.recordings.time_series import MOST_BINS, Floats, RunSeries, run_series
from aqmlab.results.results import Results
from aqmlab.text.numbers import listed


def queue_columns(of_run: RunSeries) -> dict[str, Floats]:
    """The series of the queue, in displayed units, by the names that lines have."""
    queue = of_run.queue.values
    return {
        "arrivals": [rate / 1e6 for rate in queue["arrivals_bps"]],
        "departures": [rate / 1e6 for rate in queue["departures_bps"]],
        "backlog": queue["backlog_packets"],
        "by_law": queue["dropped_by_law_per_s"],
        "not_by_law": queue["dropped_not_by_law_per_s"],
        "marked": queue["marked_per_s"],
    }


def draining_ms(of_run: RunSeries) -> tuple[Floats, Floats]:
    """Return, by time in s, how long a link whose rate changes takes to send what waits, in ms.

    The last points are left out if the run ends before the link has sent what waits.
    """
    times, values = of_run.queue.t_s, of_run.queue.values
    lengths = [end - begin for begin, end in zip([0.0, *times[:-1]], times, strict=True)]
    capacities = [rate * s / 8 for rate, s in zip(values["capacity_bps"], lengths, strict=True)]
    found = draining_times(times, capacities, times, values["backlog_on_link_bytes"])
    return times[: len(found)], [1e3 * time_s for time_s in found]


# --- one figure for an experiment

_THIN = Look(PALETTE[0], width=0.7)
_LAW = {"p": Look(PALETTE[6]), "max_p": Look(PALETTE[1], DASHED)}
_RATE, _BACKLOG, _DRAINING = "rate [Mbit/s]", "backlog [packets]", "draining time [ms]"
_PROBABILITY, _CWND = "probability", "cwnd [segments]"


_CHOICES = ("`--arm`", "`--from`", "`--until`", "`--where`")


def series(results: Results, view: View, queue: str | None) -> Figure:
    """Backlog, average, probability and windows over time: a column for the first run of each arm.

    If the rate of the link changes, the rate and the time that it takes to send what waits come with them. In
    a sweep, one case is shown.

    Raises
    ------
    UsageError
        If the interval shown is empty, or a choice does not apply.
    """
    if given := [option for option in view.chosen() if option not in _CHOICES]:
        raise UsageError(f"`series` shows all flows; leave out {listed(given)}")
    cells = [cell for cell in view.cells(results) if results.runs_of(cell)]
    if not cells:
        raise UsageError("none of these arms has a finished run")
    shown = queue or results.queue_of(cells[0])
    case = str(cells[0]).removeprefix(cells[0].arm).removeprefix(", ")
    title = f"{results.title}: {shown}, {case}" if case else f"{results.title}: {shown}"
    return series_of(results, shown, [results.runs_of(cell)[0] for cell in cells], view, title)


def series_of(
    results: Results, queue: str, firsts: Sequence[Run], view: View = EVERYTHING, title: str = ""
) -> Figure:
    """The same for given runs."""
    end_s = max(run.t1_ns for run in firsts) / 1e9
    limits = view.limits(0.0, end_s)
    is_whole = limits == (0.0, end_s)
    # The visible part has as many points as a whole run would have.
    bins = ceil(MOST_BINS * end_s / (limits[1] - limits[0]))
    columns = [_column(of_run, limits[0]) for of_run in run_series(results.tables, firsts, queue, bins)]
    rows = {label: [column[label] for column in columns] for label in columns[0]}
    known = {label: of_row for label, of_row in rows.items() if any(map(_has_line, of_row))}
    return over_time(
        f"{title or results.title}, seed {firsts[0].seed}",
        [run.arm for run in firsts],
        known,
        None if is_whole else limits,
        bottom=None if is_whole else 0.0,
        size=(max(7.0, 2.2 * len(firsts)), 1.0 + 1.4 * len(known)),
    )


def _has_line(marks: Sequence[Mark]) -> bool:
    return any(isinstance(mark, Line) for mark in marks)


def _column(of_run: RunSeries, begin_s: float) -> dict[str, list[Mark]]:
    times, columns = of_run.queue.t_s, queue_columns(of_run)
    rate: list[Mark] = []
    draining: list[Mark] = []
    if (capacity := of_run.queue.values.get("capacity_bps")) is not None:
        rate.append(Line("departures", times, columns["departures"], Look(PALETTE[3], width=0.7)))
        rate.append(Line("rate of the link", times, [bps / 1e6 for bps in capacity], Look(INK, width=1.0)))
        draining.append(Line("time to send what waits", *draining_ms(of_run), _THIN))
    backlog: list[Mark] = [Line("backlog", times, columns["backlog"], _THIN)]
    if "avg" in of_run.law:
        backlog.append(Line("the law's average (avg)", *of_run.law["avg"], Look(INK, width=1.2)))
    probability = [Line(name, *of_run.law[name], look) for name, look in _LAW.items() if name in of_run.law]
    flows = [line for name, line in of_run.cwnd.items() if name != "mean"]
    faint = Look(MUTED, width=0.5, alpha=0.6)
    windows = [Line("" if i else "cwnd of a flow", *line, faint) for i, line in enumerate(flows)]
    if "mean" in of_run.cwnd:
        mean = of_run.cwnd["mean"]
        windows.append(Line("mean cwnd of all flows", *mean, Look(PALETTE[3], width=1.4)))
    # A stripe that is narrower than one dot needs an edge to be visible.
    stalls = [
        Span("" if i else "stall: the router stood still", *ends, STALL, 0.3, 0.5)
        for i, ends in enumerate(of_run.stalls)
    ]
    rows: dict[str, Sequence[Mark]] = {
        _RATE: rate,
        _BACKLOG: backlog,
        _DRAINING: draining,
        _PROBABILITY: probability,
        _CWND: windows,
    }
    before = warmup(of_run.run.t0_ns / 1e9, begin_s)
    return {label: [*before, *marks, *stalls] for label, marks in rows.items()}


# --- one figure for chosen quantities of given runs

Lines = Mapping[str, tuple[Floats, Floats, Look]]


def _colored(color: int, width: float = 0.6) -> Look:
    return Look(PALETTE[color], width=width)


def _rates(of_run: RunSeries, _laws: Sequence[str]) -> Lines:
    times, values = of_run.queue.t_s, queue_columns(of_run)
    lines = {name: (times, values[name], _colored(i)) for name, i in (("arrivals", 0), ("departures", 3))}
    if (rate := of_run.queue.values.get("capacity_bps")) is not None:
        lines["capacity"] = (times, [bps / 1e6 for bps in rate], Look(INK, DASHED, width=0.6))
    return lines


def _queue(of_run: RunSeries, _laws: Sequence[str]) -> Lines:
    lines = {"queue": (of_run.queue.t_s, queue_columns(of_run)["backlog"], _colored(0))}
    if "avg" in of_run.law:
        lines["average"] = (*of_run.law["avg"], _colored(3, 1.0))
    return lines


def _law(of_run: RunSeries, laws: Sequence[str]) -> Lines:
    known = [law for law in laws if law in of_run.law]
    return {law: (*of_run.law[law], _colored(i, 1.0)) for i, law in enumerate(known)}


def _signals(of_run: RunSeries, _laws: Sequence[str]) -> Lines:
    times, values = of_run.queue.t_s, queue_columns(of_run)
    by_law, others = values["by_law"], values["not_by_law"]
    drops = [a + b for a, b in zip(by_law, others, strict=True)]
    return {"marks": (times, values["marked"], _colored(0)), "drops": (times, drops, _colored(3))}


class Quantities(NamedTuple):
    """A row of plots: its label with the unit, and the function that returns its lines by name."""

    label: str
    lines: Callable[[RunSeries, Sequence[str]], Lines]


QUANTITIES: dict[str, Quantities] = {
    "rates": Quantities("rate [Mbit/s]", _rates),
    "queue": Quantities("queue [packets]", _queue),
    "law": Quantities("probability", _law),
    "signals": Quantities("packets/s", _signals),
}
"""The available rows: arrivals and departures, the queue, the law, marks and drops."""


def quantities(
    experiment: Results, queue: str, rows: Sequence[str], laws: Sequence[str], view: View
) -> Figure:
    """The runs of an experiment side by side: rows of :data:`QUANTITIES`, with these variables of the law.

    Raises
    ------
    UsageError
        If the interval shown is empty.
    """
    end_s = max(run.t1_ns for run in experiment.runs) / 1e9
    begin, end = view.limits(0.0, end_s)
    # The visible part has as many points as a whole run would have.
    bins = ceil(MOST_BINS * end_s / (end - begin))
    columns = run_series(experiment.tables, experiment.runs, queue, bins)

    def marks(row: str, of_run: RunSeries) -> list[Mark]:
        lines = QUANTITIES[row].lines(of_run, laws)
        named = [Line(name, times, values, look) for name, (times, values, look) in lines.items()]
        return [*warmup(of_run.run.t0_ns / 1e9, begin), *named]

    return over_time(
        f"{experiment.title} (seed {experiment.runs[0].seed})",
        [of_run.run.arm for of_run in columns],
        {QUANTITIES[row].label: [marks(row, of_run) for of_run in columns] for row in rows},
        (begin, end),
        bottom=0.0,
        size=(max(3.5, 2.4 * len(columns)), 1.0 + 1.2 * len(rows)),
        legend="rows",
    )
