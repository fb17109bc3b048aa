"""Goodput against queueing delay: one mark per run, and an outline per cell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean, median

from aqmlab.errors import UsageError
from aqmlab.figures.looks import DOTTED, dash_lengths, marker
from aqmlab.figures.model import Axis, Entry, Figure, Line, Look, Mark, Names, Outline, Panel
from aqmlab.figures.panel_grid import (
    GOODPUT,
    MEAN_DELAY,
    PanelGrid,
    Subject,
    at_queue,
    panel_grid,
    titled,
)
from aqmlab.figures.trade_off import TradeOff, trade_off_points
from aqmlab.figures.view import View
from aqmlab.metrics import find
from aqmlab.results.answers import answer
from aqmlab.results.cells import Axis as SweepAxis
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.stats.ellipse import covariance_ellipse
from aqmlab.text.numbers import listed

_GREY = "#595959"
_RUN = Look(_GREY, mark="circle", size=1.3, line=False)
_NOTES = (
    Entry("one run", _RUN),
    Entry("median of the runs", replace(_RUN, size=2.5, hollow="white")),
    Entry("outline: 1-sigma ellipse of the runs", Look(_GREY, width=0.9)),
)
Points = list[tuple[float, float]]


def trade_off(results: Results, view: View, queue: str | None) -> Figure:
    """Draw goodput against mean queueing delay: a mark per run, an outline per cell, a plot per label.

    Cells that differ in settings of a queue or of TCP are choices: they share a plot, with their labels
    as names, unless the view fixes these settings or asks for a plot per label.
    """
    if view.metrics:
        raise UsageError("`goodput-delay` shows goodput and mean queueing delay: leave out the metric")
    found = TradeOff(answer(results, [MEAN_DELAY, GOODPUT], queue=queue))
    asked = {results.axis(name).name for name in (*view.where, *([view.by] if view.by else []))}
    inside = [axis for axis in found.chosen_axes if axis.name not in asked]
    whole = {**view.where, **{axis.name: axis.labels[0] for axis in inside}}
    grid = panel_grid(
        results, replace(view, where=whole), queue, along=False, metrics=(GOODPUT,), more=(MEAN_DELAY,)
    )
    chosen = {axis.name for axis in inside}
    grid = replace(grid, held={name: label for name, label in grid.held.items() if name not in chosen})
    best = {cell for front in found.fronts(find(GOODPUT)) for cell in front.best}
    names = [axis.name for axis in inside]

    def panel(subject: Subject) -> Panel:
        clouds = dict(_clouds(grid, subject, inside))
        marks: list[Mark] = []
        for cell, points in clouds.items():
            first = all(other.arm != cell.arm for other in list(clouds)[: list(clouds).index(cell)])
            marks += _cloud(grid.arms[cell.arm], points, cell.arm if first else "")
        marks += _front([points for cell, points in clouds.items() if cell in best])
        if inside:
            marks.append(_names(clouds, names, best))
        across, up = Axis(titled(find(MEAN_DELAY))), Axis(titled(subject.metric))
        return Panel(subject.title, across, up, tuple(marks))

    title = f"goodput and mean queueing delay{at_queue(queue)}"
    if inside:
        title += f" by {listed([axis.short for axis in inside])}"
    return grid.figure(title, panel, share=False, notes=_NOTES)


def _clouds(grid: PanelGrid, subject: Subject, inside: Sequence[SweepAxis]) -> Iterator[tuple[Cell, Points]]:
    """Yield the cells of a plot, with their runs."""
    of_case = {(cell.arm, cell.settings): cell for cell in grid.answer.results.cells}
    order = [axis.name for axis in grid.answer.results.axes]
    for arm in grid.arms:
        for labels in product(*(axis.labels for axis in inside)):
            held = {**subject.held, **dict(zip([axis.name for axis in inside], labels, strict=True))}
            cell = of_case.get((arm, tuple((name, held[name]) for name in order if name in held)))
            if cell is None:
                continue
            if points := trade_off_points(grid.answer, cell, find(MEAN_DELAY), find(GOODPUT)):
                yield cell, list(points.values())


def _cloud(arm: int, points: Points, name: str) -> list[Mark]:
    """The runs of a cell, their median, and the ellipse around them."""
    xs, ys = zip(*points, strict=True)
    run = Look(arm, mark=marker(arm), size=1.3, line=False)
    middle = replace(run, size=2.5, hollow="white", order=4)
    made: list[Mark] = [
        Line(name, xs, ys, replace(run, alpha=0.75)),
        Line("", [median(xs)], [median(ys)], middle),
    ]
    outline = covariance_ellipse(xs, ys)
    if outline is not None:
        made.append(Outline(outline, Look(arm, dash_lengths(arm), width=0.9)))
    return made


def _front(clouds: Sequence[Points]) -> list[Mark]:
    """The line that joins the means of the undominated cells."""
    if len(clouds) < 2:
        return []
    means = sorted((fmean(x for x, _ in points), fmean(y for _, y in points)) for points in clouds)
    xs, ys = zip(*means, strict=True)
    return [Line("not dominated", xs, ys, Look(_GREY, DOTTED, width=1.0, order=1.5))]


def _names(clouds: Mapping[Cell, Points], inside: Sequence[str], best: Collection[Cell]) -> Names:
    """The labels of cells beside their medians, those of the undominated ones first."""
    order = sorted(clouds, key=lambda cell: cell not in best)
    names = [
        (
            ", ".join(dict(cell.settings)[name] for name in inside),
            median(x for x, _ in clouds[cell]),
            median(y for _, y in clouds[cell]),
        )
        for cell in order
    ]
    return Names(names, [point for points in clouds.values() for point in points])
