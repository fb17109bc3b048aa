"""Distributions of response and page times: the part up to a given time, or the tail on logarithmic axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from aqmlab.errors import UsageError, unknown
from aqmlab.figures.distributions import WaitCdf, wait_cdf
from aqmlab.figures.model import BAND, REFERENCE, Axis, Figure, Line, Look, Panel, arm_look
from aqmlab.figures.panel_grid import PanelGrid, Subject, panel_grid
from aqmlab.figures.view import View
from aqmlab.metrics import EVERY_CLASS, Scope
from aqmlab.metrics.waits import Waits
from aqmlab.results.results import Results

MEDIAN = "median_s"
SHARES = tuple(i / 200 for i in range(201))
"""The shares at which curves have points."""


@dataclass(frozen=True)
class WaitLine:
    """A curve of a plot.

    Attributes
    ----------
    label
        Name in the legend.
    number
        Index that selects its colour, dashes and marks; ``None`` for the reference, which is grey.
    curve
        The distribution.
    """

    label: str
    number: int | None
    curve: WaitCdf


class Limits(NamedTuple):
    """The ranges that the axes of a plot of curves show."""

    begin_s: float
    end_s: float
    least_share: float


def cdf_figure(results: Results, view: View, queue: str | None, *, waits: Waits) -> Figure:
    """The distribution of each arm's times, as the mean over the seeds with its 95 % band."""
    return _figure(results, view, queue, waits, tail=False)


def ccdf_figure(results: Results, view: View, queue: str | None, *, waits: Waits) -> Figure:
    """The share of requests, or pages, that take longer than a given time; both axes are logarithmic."""
    return _figure(results, view, queue, waits, tail=True)


def curve_rows(results: Results, view: View, queue: str | None, *, waits: Waits) -> Iterator[tuple[Any, ...]]:
    """The points of the curves, up to the longest time."""
    axes = tuple(axis.short for axis in results.axes)
    yield (*axes, "arm", waits.metric("s"), "share", "low_95", "high_95", "n")
    grid = wait_grid(results, view, queue, waits)
    for subject in grid.subjects:
        labels = [subject.held[axis.name] for axis in results.axes]
        for line in _lines(grid, subject, view, waits):
            for row in point_rows(line):
                yield (*labels, *row)


def point_rows(line: WaitLine) -> Iterator[tuple[Any, ...]]:
    """Rows of a curve's points: the curve's label, time, share, interval limits and number of seeds."""
    curve = line.curve
    for point in zip(curve.time_s, curve.share, curve.low, curve.high, strict=True):
        yield (line.label, *(f"{value:.9g}" for value in point), curve.n)


def wait_grid(
    results: Results,
    view: View,
    queue: str | None,
    waits: Waits,
    percentiles: Sequence[str] = (MEDIAN,),
) -> PanelGrid:
    """Return the plots of a figure that shows times: one per percentile and per case that has values.

    Raises
    ------
    UsageError
        For an unknown arm or class, or one without a completed request or page.
    """
    for arm in (view.reference, *view.arms):
        if arm is not None and arm not in results.arms:
            raise unknown("arm", arm, results.arms)
    grid = panel_grid(results, view, queue, along=False, metrics=tuple(map(waits.metric, percentiles)))

    def any_completed(subject: Subject) -> bool:
        cells = (cell for arm in results.arms if (cell := grid.cell(arm, subject, "")))
        of_cells = (
            results.values(f"{waits.many}_completed", cell, Scope(class_name=view.class_name))
            for cell in cells
        )
        return any(count for of_cell in of_cells for count in of_cell.values())

    rows = tuple(tuple(subject for subject in row if any_completed(subject)) for row in grid.rows)
    if not any(rows):
        whose = "" if view.class_name == EVERY_CLASS else f" of `{view.class_name}`"
        raise UsageError(f"`{results.path}` has no completed {waits.one}{whose}: there are no {waits.time}s")
    return replace(grid, rows=tuple(filter(None, rows)))


def other_arms(grid: PanelGrid, view: View) -> dict[str, int]:
    """The arms that are drawn in their own colours, each with its index among all arms."""
    return {arm: number for arm, number in grid.arms.items() if arm != view.reference}


def named(results: Results, view: View, waits: Waits, what: str) -> str:
    """Return the subject of a figure, with the class if several classes have such times."""
    waiting = {of.class_name for run in results.measured() for of in waits.totals(run, EVERY_CLASS)}
    several = len(waiting) > 1
    if view.class_name != EVERY_CLASS:
        return f"{what} of {view.class_name}"
    return f"{what} of all classes" if several else what


def _figure(results: Results, view: View, queue: str | None, waits: Waits, *, tail: bool) -> Figure:
    if view.metrics:
        raise UsageError(f"distributions of {waits.time}s have no metric: leave it out")
    grid = wait_grid(results, view, queue, waits)
    of_plots = {subject.title: _lines(grid, subject, view, waits) for subject in grid.subjects}
    lines = [line for of_plot in of_plots.values() for line in of_plot]
    limits = limits_of(lines, view, waits, tail=tail)

    def panel(subject: Subject) -> Panel:
        return curve_panel(subject.title, of_plots[subject.title], limits, waits, tail=tail)

    notes = [BAND] if any(line.curve.n > 1 for line in lines) else []
    return grid.figure(named(results, view, waits, f"{waits.time}s"), panel, notes=notes)


def _lines(grid: PanelGrid, subject: Subject, view: View, waits: Waits) -> list[WaitLine]:
    """The curves of a plot, the reference last."""
    asked: list[tuple[str, int | None]] = list(other_arms(grid, view).items())
    if view.reference is not None:
        asked.append((view.reference, None))
    found = []
    for arm, number in asked:
        cell = grid.cell(arm, subject, "")
        curve = cell and wait_cdf(grid.answer.results, cell, waits, view.class_name, shares=SHARES)
        if curve:
            found.append(WaitLine(arm, number, curve))
    return found


def curve_panel(title: str, lines: Sequence[WaitLine], limits: Limits, waits: Waits, *, tail: bool) -> Panel:
    """A plot of curves or of their complements, each with its band."""
    top = 1.2 if tail else 1.01
    return Panel(
        title,
        Axis(f"{waits.time} [s]", tail, limits.begin_s, limits.end_s),
        Axis("share that takes longer" if tail else f"share of {waits.many}", tail, limits.least_share, top),
        tuple(_line(line, limits, tail=tail) for line in lines),
    )


def _line(line: WaitLine, limits: Limits, *, tail: bool) -> Line:
    # Beyond the last request, the function is constant, or not known.
    last_s = line.curve.time_s[-1]
    x = np.append(line.curve.time_s, max(limits.end_s, last_s) if line.curve.complete else last_s)
    low, mean, high = (np.append(of, of[-1]) for of in (line.curve.low, line.curve.share, line.curve.high))
    if tail:
        # A logarithmic axis has no zero, so a curve ends with its last request.
        shown = (x > 0) & (mean < 1)
        x, low, mean, high = x[shown], 1 - high[shown], 1 - mean[shown], 1 - low[shown]
        low = np.maximum(low, mean / 1e3)
    name, look = reference(line.label) if line.number is None else (line.label, arm_look(line.number))
    return Line(name, x, mean, look, *((low, high) if line.curve.n > 1 else ()))


def reference(arm: str) -> tuple[str, Look]:
    """The name and the look of the arm to which others are compared."""
    return f"{arm} (reference)", REFERENCE


def limits_of(lines: Sequence[WaitLine], view: View, waits: Waits, *, tail: bool) -> Limits:
    """Return the ranges of the axes: up to the requested time or, for tails, up to the last request."""
    if not tail:
        return Limits(*view.limits(0.0, waits.until_s), 0.0)
    times = [s for line in lines for s in line.curve.time_s if s > 0]
    shares = [1 - share for line in lines for share in line.curve.share if share < 1]
    return Limits(*view.limits(min(times), max(times)), min(shares) / 1.5)
