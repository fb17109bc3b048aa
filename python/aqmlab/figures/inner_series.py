"""The queues inside a queue over time, on one axis: backlog, departures, marks and drops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from aqmlab.errors import UsageError
from aqmlab.figures.looks import PALETTE, STALL, dash_lengths
from aqmlab.figures.model import Axis, Entry, Figure, Line, Look, Mark, Panel, Span, over_time, warmup
from aqmlab.figures.over_time import queue_columns
from aqmlab.figures.view import View
from aqmlab.recordings.recording import Run
from aqmlab.recordings.time_series import Floats, RunSeries, run_series
from aqmlab.results.answers import Answer, inner_queues
from aqmlab.results.results import Results
from aqmlab.text.numbers import listed

_PAGE_BINS = 200
"""Points per line on a page, which shows every arm at once."""


class _Quantity(NamedTuple):
    """A row of plots: its label with the unit, and its values from the columns of a queue."""

    label: str
    values: Callable[[dict[str, Floats]], Floats]


def _drops(columns: dict[str, Floats]) -> Floats:
    return [a + b for a, b in zip(columns["by_law"], columns["not_by_law"], strict=True)]


_QUANTITIES = (
    _Quantity("backlog [packets]", lambda of: of["backlog"]),
    _Quantity("departures [Mbit/s]", lambda of: of["departures"]),
    _Quantity("marks [packets/s]", lambda of: of["marked"]),
    _Quantity("drops [packets/s]", _drops),
)


class _Inside(NamedTuple):
    """The series of the queues inside a queue, by their names there, in the first run of an arm."""

    run: Run
    series: dict[str, RunSeries]


def _inside(results: Results, runs: Sequence[Run], queue: str, bins: int | None = None) -> list[_Inside]:
    """Return the series of each run with queues inside the queue; queues that stayed empty are left out."""
    found = []
    for run in runs:
        (cell,) = results.select(run.arm)
        names = inner_queues(results, cell, queue)
        more = {} if bins is None else {"bins": bins}
        each = {name: run_series(results.tables, [run], name, **more)[0] for name in names}
        used = {
            name[len(queue) + 1 :]: of_run
            for name, of_run in each.items()
            if any(queue_columns(of_run)["arrivals"])
        }
        if used:
            found.append(_Inside(run, used))
    return found


def inner_series(results: Results, view: View, queue: str) -> Figure:
    """The queues inside a queue over time: a column for the first run of each arm that has any.

    Raises
    ------
    UsageError
        If no arm has queues inside the queue, or the interval shown is empty.
    """
    columns = _asked(results, view, queue)
    names = _names(columns)
    rows = {
        quantity.label: [_marks(inside, quantity, names, view) for inside in columns]
        for quantity in _QUANTITIES
    }
    known = {label: marks for label, marks in rows.items() if _any(marks)}
    limits = view.limits(0.0, max(inside.run.t1_ns for inside in columns) / 1e9)
    return over_time(
        f"{results.title}: queues inside {queue}, seed {columns[0].run.seed}",
        [inside.run.arm for inside in columns],
        known,
        limits,
        height=1.4,
        bottom=0.0,
        size=(max(7.0, 2.4 * len(columns)), 1.0 + 1.4 * len(known)),
    )


def inner_series_rows(results: Results, view: View, queue: str) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`inner_series`."""
    yield ("arm", "queue", "t_s", "backlog_packets", "departures_mbit_s", "marked_per_s", "dropped_per_s")
    for inside in _asked(results, view, queue):
        begin, end = view.limits(0.0, inside.run.t1_ns / 1e9)
        for name, of_run in inside.series.items():
            columns = [quantity.values(queue_columns(of_run)) for quantity in _QUANTITIES]
            for t_s, *values in zip(of_run.queue.t_s, *columns, strict=True):
                if begin <= t_s <= end:
                    yield (inside.run.arm, name, f"{t_s:.9g}", *(f"{value:.9g}" for value in values))


def of_answer(answer: Answer) -> Figure | None:
    """The figure that a report shows of an experiment: backlogs and marks, without the rows of a file."""
    results = answer.results
    if results.axes:
        return None
    firsts = [its[0] for row in answer.rows if (its := results.runs_of(row.cell))]
    sampled = [run for run in firsts if "queues" in run.manifest.tables]
    columns = _inside(results, sampled, answer.queue, _PAGE_BINS) if sampled else []
    if not columns:
        return None
    names = _names(columns)
    backlog, _, marks, _ = _QUANTITIES
    panels = [
        Panel(
            f"{inside.run.arm}, {quantity.label}",
            Axis("time [s]"),
            Axis(begin=0.0),
            tuple(lines),
            answer.arms.index(inside.run.arm),
        )
        for quantity in (backlog, marks)
        for inside in columns
        if _any([lines := _lines(inside, quantity, names)])
    ]
    notes = tuple(Entry(name, _look(i)) for i, name in enumerate(names))
    return Figure("Inner queues over time", (tuple(panels),), notes) if panels else None


def _asked(results: Results, view: View, queue: str) -> list[_Inside]:
    allowed = ("`--arm`", "`--from`", "`--until`")
    if given := [option for option in view.chosen() if option not in allowed]:
        raise UsageError(f"`inner-series` shows queues, not flows or metrics; leave out {listed(given)}")
    columns = _inside(results, view.runs(results), queue)
    if not columns:
        raise UsageError(f"`inner-series` has nothing to show: no arm has a queue inside `{queue}`")
    return columns


def _names(columns: Sequence[_Inside]) -> list[str]:
    return list(dict.fromkeys(name for inside in columns for name in inside.series))


def _look(number: int) -> Look:
    return Look(PALETTE[number % len(PALETTE)], dash_lengths(number), width=0.9)


def _lines(inside: _Inside, quantity: _Quantity, names: Sequence[str]) -> list[Mark]:
    return [
        Line(name, of_run.queue.t_s, quantity.values(queue_columns(of_run)), _look(names.index(name)))
        for name, of_run in inside.series.items()
    ]


def _marks(inside: _Inside, quantity: _Quantity, names: Sequence[str], view: View) -> list[Mark]:
    stalls = next(iter(inside.series.values())).stalls
    return [
        *warmup(inside.run.t0_ns / 1e9, view.from_s or 0.0),
        *_lines(inside, quantity, names),
        *(Span("", *ends, STALL, 0.3, 0.5) for ends in stalls),
    ]


def _any(columns: Sequence[Sequence[Mark]]) -> bool:
    """Whether a quantity is ever above zero, so that it is worth a row."""
    return any(any(mark.y) for marks in columns for mark in marks if isinstance(mark, Line))
