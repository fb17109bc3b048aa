"""Maps of a sweep: a metric, or the difference of two arms, over two axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from aqmlab.errors import UsageError
from aqmlab.figures.differences import differences
from aqmlab.figures.model import Axis, Entry, Figure, Panel, Scale, Squares
from aqmlab.figures.panel_grid import PanelGrid, Subject, panel_grid, titled
from aqmlab.figures.view import View
from aqmlab.metrics import Metric
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_value

Values = Mapping[tuple[int, int], float]


def heat(results: Results, view: View, queue: str | None) -> Figure:
    """A metric over two axes, one map for each arm, with the mean over the seeds in each cell.

    With several metrics, each has a row of maps and a scale of its own.
    """
    grid = panel_grid(results, view, queue, down=True)
    _need_axes(grid)
    maps = [
        _MapsOf(metric, titled(metric), {arm: _means(grid, metric, arm) for arm in grid.arms}, {})
        for metric in grid.metrics
    ]

    def scale(label: str, values: Sequence[float]) -> Scale:
        return Scale(label, min(values, default=0.0), max(values, default=1.0))

    return _figure(grid, maps, grid.labelled if len(maps) > 1 else maps[0].what, scale)


def difference_maps(results: Results, view: View, queue: str | None) -> Figure:
    """The paired difference of arms over two axes; hatched where it is not significant.

    With several metrics, each has a row of maps and a scale of its own.
    """
    grid = panel_grid(results, view, queue, down=True)
    _need_axes(grid)
    maps = [_differences_of(grid, metric) for metric in grid.metrics]

    def scale(label: str, values: Sequence[float]) -> Scale:
        most = max(map(abs, values), default=0.0) or 1.0
        return Scale(label, -most, most, diverging=True)

    what = maps[0].what if len(maps) == 1 else f"differences in {grid.labelled}"
    note = Entry("hatched: not significant (95 %, Holm over a map)", shape="hatch")
    return replace(_figure(grid, maps, what, scale), notes=(note,))


class _MapsOf(NamedTuple):
    """The maps of one metric: the values of each, by its title, and those that are not significant."""

    metric: Metric
    what: str
    values: Mapping[str, Values]
    doubtful: Mapping[str, set[tuple[int, int]]]


def _differences_of(grid: PanelGrid, metric: Metric) -> _MapsOf:
    of_metric = differences(grid.answer, metric)
    maps: dict[str, dict[tuple[int, int], float]] = {}
    doubtful: dict[str, set[tuple[int, int]]] = {}
    for pair in _pairs(grid):
        name = f"{pair[0]} − {pair[1]}"
        maps[name], doubtful[name] = {}, set()
        places = _places(grid, pair[0])
        for contrast in of_metric.between(*pair):
            if contrast.cell in places and contrast.found.estimate is not None:
                place = places[contrast.cell]
                maps[name][place] = display_value(contrast.found.estimate.mean, metric.unit)
                if not contrast.stands:
                    doubtful[name].add(place)
    return _MapsOf(metric, f"differences in {titled(metric)}", maps, doubtful)


def _figure(
    grid: PanelGrid, maps: Sequence[_MapsOf], what: str, scale_of: Callable[[str, Sequence[float]], Scale]
) -> Figure:
    """One plot for each map, with the two axes of the grid; the plots of each metric begin a row."""
    held = grid.subjects[0].held
    rows = tuple(tuple(Subject(title, held, one.metric) for title in one.values) for one in maps)
    of_metrics = {one.metric: one for one in maps}
    scales = {
        one.metric: scale_of(one.what, [value for of_map in one.values.values() for value in of_map.values()])
        for one in maps
    }
    down = ("",) if grid.y is None else grid.y.labels
    across = replace(grid.across, begin=-0.5, end=len(grid.labels) - 0.5)
    up = Axis("" if grid.y is None else grid.y.short, labels=down, begin=-0.5, end=len(down) - 0.5)

    def panel(subject: Subject) -> Panel:
        of_metric, title = of_metrics[subject.metric], subject.title
        doubtful = frozenset(of_metric.doubtful.get(title, ()))
        return Panel(title, across, up, (Squares(of_metric.values[title], scales[subject.metric], doubtful),))

    return replace(grid, rows=rows, wraps=True).figure(what, panel)


def _need_axes(grid: PanelGrid) -> None:
    if grid.x is None:
        raise UsageError("a map needs an axis of a sweep; for arms alone, use `bar` or `box`")


def _pairs(grid: PanelGrid) -> list[tuple[str, str]]:
    """The pairs of arms to compare: each later arm, minus the first one."""
    arms = list(grid.arms)
    if len(arms) < 2:
        raise UsageError("a difference needs two arms")
    first, *others = arms
    return [(arm, first) for arm in others]


def _places(grid: PanelGrid, arm: str) -> dict[Cell, tuple[int, int]]:
    """Return, for each of an arm's cells, its column and its row in the map."""
    subject = grid.subjects[0]
    down = ("",) if grid.y is None else grid.y.labels
    return {
        cell: (column, row)
        for column, label in enumerate(grid.labels)
        for row, other in enumerate(down)
        if (cell := grid.cell(arm, subject, label, other)) is not None
    }


def _means(grid: PanelGrid, metric: Metric, arm: str) -> dict[tuple[int, int], float]:
    found = {place: grid.answer.estimate(cell, metric.name) for cell, place in _places(grid, arm).items()}
    return {place: display_value(e.mean, metric.unit) for place, e in found.items() if e is not None}
