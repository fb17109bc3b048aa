"""Figures of many runs: metrics over axes of a sweep, differences of arms, boxes and bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aqmlab.cells import Cells, cells_of
from aqmlab.errors import UsageError, unknown
from aqmlab.figures import display_unit, display_value
from aqmlab.metrics import Measured, Metric, find
from aqmlab.metrics.flow import goodputs
from aqmlab.plots.appearance import (
    arm_color,
    arm_dash,
    arm_look,
    entitle,
    legend_below,
    new_figure,
    note,
    points_of,
    text_width,
    width_asked,
)
from aqmlab.plots.kinds import cloud, cloud_notes
from aqmlab.plots.view import View
from aqmlab.reports.sweep.differences import differences
from aqmlab.reports.sweep.distributions import delay_cdf
from aqmlab.results import Axis, Cell, Results
from aqmlab.stats import Estimate, estimate

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELAY, MEAN_DELAY, GOODPUT = "queueing_delay_p95_s", "queueing_delay_mean_s", "goodput_bps"
SEEDS, FLOWS = "seeds", "flows"
_PANEL = (1.9, 2.0)
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
_GROUP = 0.8
"""Width of the boxes or bars of a label, where labels are one apart."""

Draw = Callable[[Results, View, "str | None"], "Figure"]
Rows = Callable[[Results, View, "str | None"], Iterator[tuple[Any, ...]]]


class OfMany(NamedTuple):
    """A kind of figure of many runs: how it is drawn, and its numbers, the names of the columns first."""

    draw: Draw
    rows: Rows | None = None


@dataclass(frozen=True)
class Panel:
    """One plot: its title, what is held in it by axis, and its metric where plots differ by that."""

    title: str
    held: Mapping[str, str]
    metric: Metric


@dataclass(frozen=True)
class Grid:
    """The plots of a figure, and what is along them.

    Attributes
    ----------
    cells
        The values of the metrics.
    arms
        Those to draw, by their number among all.
    x
        The axis along each plot, if there is one.
    rows
        Plots side by side.
    """

    cells: Cells
    arms: Mapping[str, int]
    x: Axis | None
    y: Axis | None
    rows: tuple[tuple[Panel, ...], ...]
    held: Mapping[str, str]

    @property
    def panels(self) -> list[Panel]:
        """All plots, row by row."""
        return [panel for row in self.rows for panel in row]

    @property
    def labels(self) -> tuple[str, ...]:
        """What stands along a plot; one empty text where nothing does."""
        return ("",) if self.x is None else self.x.labels

    def cell(self, arm: str, panel: Panel, label: str, row: str = "") -> Cell | None:
        """The cell of a place, if there is one."""
        along = {} if self.x is None else {self.x.name: label}
        down = {} if self.y is None else {self.y.name: row}
        wanted = {**panel.held, **along, **down}
        found = [c for c in self.cells.results.cells if c.arm == arm and dict(c.settings) == wanted]
        return found[0] if found else None

    def values(self, arm: str, panel: Panel, label: str) -> list[float]:
        """The values of the seeds of a cell, in the unit that they are shown in."""
        cell = self.cell(arm, panel, label)
        found = {} if cell is None else self.cells.values[panel.metric.name][cell]
        return [display_value(value, panel.metric.unit) for value in found.values() if value is not None]

    def estimate(self, arm: str, panel: Panel, label: str) -> Estimate | None:
        """Mean over the seeds of a cell with its interval, in the unit that it is shown in."""
        return estimate(self.values(arm, panel, label))


def _arms(results: Results, view: View) -> dict[str, int]:
    for arm in view.arms:
        if arm not in results.arms:
            raise unknown("arm", arm, results.arms)
    return {arm: i for i, arm in enumerate(results.arms) if not view.arms or arm in view.arms}


def _grid(  # noqa: PLR0913 (keyword arguments)
    results: Results,
    view: View,
    queue: str | None,
    *,
    along: bool = True,
    down: bool = False,
    metrics: Sequence[str] = (DELAY,),
    more: Sequence[str] = (),
) -> Grid:
    """What a view asks for: axes along and up each plot, or a plot for each label of one; the rest is held.

    ``more`` are metrics that no plot is for.

    Raises
    ------
    UsageError
        For an arm, axis, label or metric that is not there, or an axis that is asked for twice.
    """
    where = {}
    for name, label in view.where.items():
        axis = results.axis(name)
        if label not in axis.labels:
            raise unknown(f"value of `{axis.name}`", label, axis.labels)
        where[axis.name] = label
    asked = [results.axis(name) for name in (view.x, view.by) if name is not None]
    for i, axis in enumerate(asked):
        if axis.name in where or axis in asked[:i]:
            raise UsageError(f"the axis `{axis.name}` is asked for twice")
    free = [axis for axis in results.axes if axis.name not in where and axis not in asked]
    free.sort(key=lambda axis: -len(axis.labels))
    x = results.axis(view.x) if view.x is not None else (free.pop(0) if along and free else None)
    if view.x is not None and not along:
        raise UsageError("this figure has no axis of the sweep along it; choose plots with `by`")
    other = results.axis(view.by) if view.by is not None else (free.pop(0) if free else None)
    y, by = (other, None) if down else (None, other)
    held = {**where, **{axis.name: axis.labels[0] for axis in free}}
    chosen = tuple(find(name) for name in (view.metrics or metrics))
    rows = _panels(chosen, by, held)
    cells = cells_of(results, list(dict.fromkeys([*(m.name for m in chosen), *more])), queue=queue)
    return Grid(cells, _arms(results, view), x, y, rows, held)


def _panels(
    metrics: Sequence[Metric], by: Axis | None, held: Mapping[str, str]
) -> tuple[tuple[Panel, ...], ...]:
    """A row for each metric; of a single one, or of one plot each, as many side by side as fit."""
    rows = [
        [
            Panel("" if by is None else f"{by.short} {label}", {**held, **fixed}, metric)
            for label in ([""] if by is None else by.labels)
            for fixed in [{} if by is None else {by.name: label}]
        ]
        for metric in metrics
    ]
    if len(rows) > 1 and by is not None:
        return tuple(map(tuple, rows))
    flat = [panel for row in rows for panel in row]
    columns = _columns(len(flat))
    return tuple(tuple(flat[i : i + columns]) for i in range(0, len(flat), columns))


def _columns(plots: int) -> int:
    """Columns of so many plots, which fill their rows as far as there is room for."""
    most = min(max(int(width_asked(7.6) / 1.75), 1), 4)
    return math.ceil(plots / math.ceil(plots / most))


def _turned(figure: Figure, labels: Sequence[str], across: int) -> dict[str, Any]:
    """How the labels along a plot stand: turned where they would lie on one another."""
    size = points_of("xtick.labelsize")
    needed = sum(text_width(label, size) + size for label in labels)
    room = 72.0 * (figure.get_figwidth() / across - 0.55)
    return {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if needed > room else {}


def _plots(grid: Grid, what: str, *, share: bool = True) -> tuple[Figure, list[tuple[Panel, Axes]]]:
    """The empty plots, with their titles and those of the figure."""
    across, down = max(map(len, grid.rows)), len(grid.rows)
    size = (max(4.9, _PANEL[0] * across + 0.6), max(3.5, _PANEL[1] * down + 1.4))
    figure = new_figure(*size, down)
    metrics = {panel.metric for panel in grid.panels}
    shared: Any = False
    if share:
        shared = "all" if len(metrics) == 1 else "row" if len(grid.panels) > len(metrics) else False
    axes = figure.subplots(down, across, sharex=share, sharey=shared, squeeze=False)
    plots = []
    for row, of_row in zip(grid.rows, axes, strict=True):
        for i, one in enumerate(of_row):
            if i < len(row):
                one.set_title(row[i].title)
                plots.append((row[i], one))
            else:
                one.remove()
    short = {axis.name: axis.short for axis in grid.cells.results.axes}
    held = ", ".join(f"{short[name]} {label}" for name, label in grid.held.items())
    entitle(figure, f"{grid.cells.results.title}: {what}{f' ({held})' if held else ''}")
    return figure, plots


def _along(grid: Grid, plots: Sequence[tuple[Panel, Axes]]) -> None:
    """The labels of an axis, evenly spaced, turned where they are long."""
    if grid.x is None:
        return
    across = max(map(len, grid.rows))
    for i, (_, axes) in enumerate(plots):
        figure = axes.get_figure(root=True)
        turn = {} if figure is None else _turned(figure, grid.labels, across)
        axes.set_xticks(range(len(grid.labels)), grid.labels, **turn)
        axes.grid(visible=False, axis="x")
        if i + across >= len(plots):
            axes.set_xlabel(grid.x.short)
            axes.tick_params(labelbottom=True)


def _heights(grid: Grid, plots: Sequence[tuple[Panel, Axes]]) -> None:
    """What is upward: the metric with its unit, where it differs from the plot to the left."""
    firsts = {id(row[0]) for row in grid.rows}
    several = len({panel.metric for panel in grid.panels}) > 1
    alone = several and all(len({p.metric for p in row}) > 1 for row in grid.rows if len(row) > 1)
    for panel, axes in plots:
        if id(panel) in firsts or (several and alone):
            figure = axes.get_figure(root=True)
            label = titled(panel.metric)
            room = math.inf if figure is None else 72.0 * (figure.get_figheight() / len(grid.rows) - 1.1)
            wide = text_width(label, points_of("axes.labelsize")) > room
            axes.set_ylabel(label.replace(" [", "\n[") if wide else label)


def titled(metric: Metric) -> str:
    """A metric as people call it, with its unit."""
    unit = display_unit(metric.unit)
    return f"{metric.label} [{unit}]" if unit else metric.label


def lines(results: Results, view: View, queue: str | None) -> Figure:
    """A metric against an axis: a line an arm with the interval of its mean; a plot for each label."""
    grid = _grid(results, view, queue)
    if grid.x is None:
        raise UsageError("`lines` needs an axis of a sweep; for arms alone there are `bar` and `box`")
    figure, plots = _plots(grid, f"{_metrics(grid)} against {grid.x.short}")
    for panel, axes in plots:
        for arm, number in grid.arms.items():
            _line(axes, number, arm, [grid.estimate(arm, panel, label) for label in grid.labels])
    _along(grid, plots)
    _heights(grid, plots)
    shown = any(axes.collections for _, axes in plots)
    legend_below(figure, [axes for _, axes in plots], _band_note() if shown else None)
    return figure


def _metrics(grid: Grid) -> str:
    return ", ".join(dict.fromkeys(panel.metric.label for panel in grid.panels))


def _line(axes: Axes, arm: int, label: str, points: Sequence[Estimate | None]) -> None:
    known = [(i, e) for i, e in enumerate(points) if e is not None]
    look = {**arm_look(arm), "markevery": None}
    axes.plot([i for i, _ in known], [e.mean for _, e in known], label=label, **look)
    sure = [(i, e.low, e.high) for i, e in known if e.low is not None and e.high is not None]
    if sure:
        xs, lows, highs = zip(*sure, strict=True)
        if len(sure) > 1:
            axes.fill_between(xs, lows, highs, color=arm_color(arm), alpha=0.18, linewidth=0)
        else:
            # A single point has no band beside it: its interval is a line.
            axes.vlines(xs, lows, highs, color=arm_color(arm), linewidth=1.0)


def _band_note() -> dict[str, Artist]:
    from matplotlib.patches import Patch

    return {"band: 95 % interval of the mean": Patch(color="0.8")}


def heat(results: Results, view: View, queue: str | None) -> Figure:
    """A metric over two axes, a map for each arm, with the mean over the seeds in each cell."""
    grid = _grid(results, view, queue, down=True)
    _need_axes(grid)
    metric = grid.panels[0].metric
    found = {arm: _means(grid, arm) for arm in grid.arms}
    figure, plots = _maps(grid, list(found), titled(metric))
    values = [v for of_arm in found.values() for v in of_arm.values()]
    norm = _norm(min(values), max(values)) if values else _norm(0.0, 1.0)
    for (_, axes), of_arm in zip(plots, found.values(), strict=True):
        _map(axes, of_arm, norm, "viridis")
    _scale(figure, plots, norm, "viridis", titled(metric))
    return figure


def difference_maps(results: Results, view: View, queue: str | None) -> Figure:
    """The paired difference of arms over two axes; hatched where it is not significant."""
    from matplotlib.patches import Patch

    grid = _grid(results, view, queue, down=True)
    _need_axes(grid)
    metric = grid.panels[0].metric
    pairs = _pairs(grid)
    of_metric = differences(grid.cells, metric)
    maps: dict[str, dict[tuple[int, int], float]] = {}
    doubtful: dict[str, set[tuple[int, int]]] = {}
    for pair in pairs:
        name = f"{pair[0]} − {pair[1]}"
        maps[name], doubtful[name] = {}, set()
        places = _places(grid, pair[0])
        for contrast in of_metric.between(*pair):
            if contrast.cell in places and contrast.found.estimate is not None:
                place = places[contrast.cell]
                maps[name][place] = display_value(contrast.found.estimate.mean, metric.unit)
                if not contrast.stands:
                    doubtful[name].add(place)
    what = f"differences in {titled(metric)}"
    figure, plots = _maps(grid, list(maps), what)
    most = max((abs(v) for of_pair in maps.values() for v in of_pair.values()), default=0.0) or 1.0
    norm = _norm(-most, most)
    for (_, axes), (name, of_pair) in zip(plots, maps.items(), strict=True):
        _map(axes, of_pair, norm, "PuOr_r", doubtful[name])
    _scale(figure, plots, norm, "PuOr_r", what)
    patch = Patch(facecolor="white", edgecolor="0.4", hatch="////", linewidth=0.4)
    legend_below(figure, [], {"hatched: not significant (95 %, Holm over a map)": patch})
    return figure


def _need_axes(grid: Grid) -> None:
    if grid.x is None:
        raise UsageError("a map needs an axis of a sweep; for arms alone there are `bar` and `box`")


def _pairs(grid: Grid) -> list[tuple[str, str]]:
    """The arms to compare, the later one first: each with the first, or those two that are chosen."""
    arms = list(grid.arms)
    if len(arms) < 2:
        raise UsageError("a difference needs two arms")
    first, *others = arms
    return [(arm, first) for arm in others]


def _places(grid: Grid, arm: str) -> dict[Cell, tuple[int, int]]:
    """Column and row of the cells of an arm in a map."""
    panel = grid.panels[0]
    down = ("",) if grid.y is None else grid.y.labels
    return {
        cell: (column, row)
        for column, label in enumerate(grid.labels)
        for row, other in enumerate(down)
        if (cell := grid.cell(arm, panel, label, other)) is not None
    }


def _means(grid: Grid, arm: str) -> dict[tuple[int, int], float]:
    metric = grid.panels[0].metric
    found = {place: grid.cells.estimate(metric.name, cell) for cell, place in _places(grid, arm).items()}
    return {place: display_value(e.mean, metric.unit) for place, e in found.items() if e is not None}


def _maps(grid: Grid, titles: Sequence[str], what: str) -> tuple[Figure, list[tuple[Panel, Axes]]]:
    """A plot for each title, its two axes those of the grid."""
    columns = _columns(len(titles))
    panel = grid.panels[0]
    panels = [Panel(title, panel.held, panel.metric) for title in titles]
    rows = tuple(tuple(panels[i : i + columns]) for i in range(0, len(panels), columns))
    of_maps = Grid(grid.cells, grid.arms, grid.x, grid.y, rows, grid.held)
    figure, plots = _plots(of_maps, what)
    _along(of_maps, plots)
    for i, (_, axes) in enumerate(plots):
        axes.grid(visible=False)
        down = ("",) if grid.y is None else grid.y.labels
        axes.set_yticks(range(len(down)), down)
        if i % columns == 0 and grid.y is not None:
            axes.set_ylabel(grid.y.short)
        axes.set_xlim(-0.5, len(grid.labels) - 0.5)
        axes.set_ylim(-0.5, len(down) - 0.5)
    return figure, plots


def _norm(low: float, high: float) -> Any:  # noqa: ANN401 (matplotlib's own)
    from matplotlib.colors import Normalize

    return Normalize(low, high if high > low else low + 1.0)


def _map(
    axes: Axes,
    values: Mapping[tuple[int, int], float],
    norm: Any,  # noqa: ANN401 (matplotlib's own)
    colors: str,
    doubtful: Collection[tuple[int, int]] = (),
) -> None:
    """Squares with their numbers."""
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    palette = mpl.colormaps[colors]
    for (column, row), value in values.items():
        color = palette(norm(value))
        lightness = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2]
        ink = "black" if lightness > 0.45 else "white"
        square = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=color, edgecolor="white", linewidth=0.8)
        axes.add_patch(square)
        if (column, row) in doubtful:
            hatch = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", linewidth=0)
            hatch.set_edgecolor("0.55")
            axes.add_patch(hatch)
        back = {"boxstyle": "square,pad=0.1", "facecolor": color, "edgecolor": "none"}
        axes.text(
            column, row, _brief(value), ha="center", va="center", color=ink, fontsize="small", bbox=back
        )


def _brief(value: float) -> str:
    size = abs(value)
    places = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{places}f}".replace("-", "−")


def _scale(
    figure: Figure,
    plots: Sequence[tuple[Panel, Axes]],
    norm: Any,  # noqa: ANN401 (matplotlib's own)
    colors: str,
    label: str,
) -> None:
    """The bar that says which colour is how much."""
    from matplotlib.cm import ScalarMappable

    bar = figure.colorbar(ScalarMappable(norm, colors), ax=[axes for _, axes in plots], label=label)
    bar.outline.set_visible(False)


def trade_off(results: Results, view: View, queue: str | None) -> Figure:
    """Goodput against mean queueing delay: a mark a run, an outline a cell, a plot for each label."""
    if view.metrics:
        raise UsageError("`goodput-delay` shows goodput and mean queueing delay: leave out the metric")
    delay, goodput = find(MEAN_DELAY), find(GOODPUT)
    grid = _grid(results, view, queue, along=False, metrics=(GOODPUT,), more=(MEAN_DELAY,))
    figure, plots = _plots(grid, "goodput and mean queueing delay", share=False)
    for panel, axes in plots:
        for arm, number in grid.arms.items():
            cell = grid.cell(arm, panel, "")
            if cell is None:
                continue
            delays, of_goodput = (grid.cells.values[metric.name][cell] for metric in (delay, goodput))
            points = [
                (display_value(x, delay.unit), display_value(y, goodput.unit))
                for seed, x in delays.items()
                if x is not None and (y := of_goodput.get(seed)) is not None
            ]
            if points:
                xs, ys = zip(*points, strict=True)
                cloud(axes, number, xs, ys, arm)
        label, across = titled(delay), max(map(len, grid.rows))
        wide = text_width(label, points_of("axes.labelsize")) > 72.0 * (figure.get_figwidth() / across - 0.6)
        axes.set_xlabel(label.replace(", ", ",\n") if wide else label)
    _heights(grid, plots)
    legend_below(figure, [axes for _, axes in plots], cloud_notes())
    return figure


def cdfs(results: Results, view: View, queue: str | None) -> Figure:
    """The distribution of queueing delay: its mean over the seeds and the pointwise 95 % interval."""
    if queue is not None:
        raise UsageError("distributions of a sweep are those of the queue that each cell is judged by")
    grid = _grid(results, view, None, along=False, metrics=(MEAN_DELAY,))
    figure, plots = _plots(grid, "distribution of queueing delay", share=False)
    for panel, axes in plots:
        longest = 0.0
        for arm, number in grid.arms.items():
            cell = grid.cell(arm, panel, "")
            found = None if cell is None else delay_cdf(results, cell)
            if found is not None:
                axes.plot(found.delay_ms, found.share, label=arm, **arm_look(number))
                band: dict[str, Any] = {"color": arm_color(number), "alpha": 0.18, "linewidth": 0}
                axes.fill_between(found.delay_ms, found.low, found.high, **band)
                longest = max(longest, found.p99_ms)
        axes.set(xlabel="queueing delay [ms]", xlim=(0, longest * 1.02 or 1.0), ylim=(0, 1.01))
    firsts = {id(row[0]) for row in grid.rows}
    for panel, axes in plots:
        if id(panel) in firsts:
            axes.set_ylabel("share of packets")
    legend_below(figure, [axes for _, axes in plots], _band_note() if len(results.seeds) > 1 else None)
    return figure


class Group(NamedTuple):
    """Boxes or bars that stand together: their label, and of each arm its values."""

    label: str
    values: Mapping[str, Sequence[float]]


def _groups(grid: Grid, panel: Panel) -> list[Group]:
    return [Group(label, {a: grid.values(a, panel, label) for a in grid.arms}) for label in grid.labels]


def flow_goodputs(runs: Sequence[Measured]) -> dict[tuple[str, int], list[float]]:
    """Goodput in Mbit/s of each flow, by class and index, in the runs that know it."""
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        classes: dict[str, int] = {}
        of_flows = goodputs(run, run.flows, run.window)
        for flow, value in zip(run.flows, of_flows or [], strict=False):
            index = classes.get(flow.class_name, 0)
            classes[flow.class_name] = index + 1
            found.setdefault((flow.class_name, index), []).append(value / 1e6)
    return found


def _flow_groups(grid: Grid, panel: Panel, *, each: bool) -> list[Group]:
    """The goodput of each class (means of its flows over the seeds), or of ``each`` flow (of the seeds)."""
    of_arms = {}
    for arm in grid.arms:
        cell = grid.cell(arm, panel, "")
        of_arms[arm] = {} if cell is None else flow_goodputs(grid.cells.results.measured(cell))
    names = list(dict.fromkeys(name for of_flows in of_arms.values() for name in of_flows))
    if each:
        return [
            Group(f"{name} {index}", {arm: of.get((name, index), []) for arm, of in of_arms.items()})
            for name, index in names
        ]
    classes = dict.fromkeys(name for name, _ in names)
    return [
        Group(
            name,
            {
                arm: [float(np.mean(values)) for (of, _), values in found.items() if of == name]
                for arm, found in of_arms.items()
            },
        )
        for name in classes
    ]


def _compared(
    results: Results, view: View, queue: str | None, *, each: bool
) -> tuple[Grid, Callable[[Panel], list[Group]]]:
    """What boxes or bars are of."""
    if view.over not in (SEEDS, FLOWS):
        raise UsageError(f"`{view.over}` is nothing to compare over; there are `{SEEDS}` and `{FLOWS}`")
    if view.over == SEEDS:
        several = (DELAY, GOODPUT)
        grid = _grid(results, view, queue, metrics=several)
        return grid, lambda panel: _groups(grid, panel)
    if view.metrics and tuple(view.metrics) != (GOODPUT,):
        raise UsageError("flows are compared by their goodput only: leave out the metric")
    of_flows = _grid(results, view, queue, along=False, metrics=(GOODPUT,))
    return of_flows, lambda panel: _flow_groups(of_flows, panel, each=each)


def box(results: Results, view: View, queue: str | None) -> Figure:
    """A metric over seeds, or the goodput of flows, as boxes: one for each arm, grouped by label or class."""
    grid, groups = _compared(results, view, queue, each=False)
    figure, plots = _plots(grid, _over(grid, view))
    for panel, axes in plots:
        _grouped(axes, grid, groups(panel), _boxes)
    what = "run" if view.over == SEEDS else "flow"
    notes = [
        "box: quartiles; line in it: median",
        f"whiskers: last {what} within 1.5 heights of the box; circles: beyond",
    ]
    return _compared_figure(figure, grid, plots, view, notes)


def bar(results: Results, view: View, queue: str | None) -> Figure:
    """Means over the seeds as bars with their 95 % intervals: of each arm, or of each flow."""
    grid, groups = _compared(results, view, queue, each=True)
    figure, plots = _plots(grid, _over(grid, view))
    for panel, axes in plots:
        _grouped(axes, grid, groups(panel), _bars)
    for _, axes in plots:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    notes = ["bar: mean over the seeds", "whisker: 95 % Student t interval"]
    return _compared_figure(figure, grid, plots, view, notes)


def _over(grid: Grid, view: View) -> str:
    if view.over == FLOWS:
        return "goodput of flows"
    along = f" by {grid.x.short}" if grid.x is not None else ""
    return f"{_metrics(grid)}{along}"


def _compared_figure(
    figure: Figure, grid: Grid, plots: Sequence[tuple[Panel, Axes]], view: View, notes: Sequence[str]
) -> Figure:
    _heights(grid, plots)
    if grid.x is not None:
        _along(grid, plots)
    legend = dict.fromkeys(notes, note(""))
    named = grid.x is not None or view.over == FLOWS
    legend_below(figure, [axes for _, axes in plots] if named else [], legend)
    return figure


class Place(NamedTuple):
    """Where a box or a bar stands."""

    x: float
    width: float


_One = Callable[["Axes", Place, int, str, Sequence[float]], None]


def _grouped(axes: Axes, grid: Grid, groups: Sequence[Group], draw: _One) -> None:
    """The boxes or bars of a plot; arms are side by side in a group, or along it if it is the only one."""
    axes.grid(visible=False, axis="x")
    arms = list(grid.arms.items())
    alone = len(groups) == 1 and groups[0].label == ""
    step = 1.0 if alone else _GROUP / len(arms)
    for place, group in enumerate(groups):
        for i, (arm, number) in enumerate(arms):
            x = float(i) if alone else place + (i - (len(arms) - 1) / 2) * step
            if group.values[arm]:
                width = step * (0.6 if alone else 0.9)
                draw(axes, Place(x, width), number, arm if place == 0 else "_", group.values[arm])
    labels = [arm for arm, _ in arms] if alone else [group.label for group in groups]
    figure = axes.get_figure(root=True)
    turn = {} if figure is None else _turned(figure, labels, max(map(len, grid.rows)))
    axes.set_xticks(range(len(labels)), labels, **turn)
    axes.set_xlim(-0.6, len(labels) - 0.4)


def _face(arm: int) -> dict[str, Any]:
    """How the area of an arm is filled, so that it is told in grey as well."""
    hatch = _HATCHES[arm % len(_HATCHES)]
    return {"facecolor": (arm_color(arm), 0.35), "edgecolor": arm_color(arm), "hatch": hatch}


def _boxes(axes: Axes, place: Place, arm: int, label: str, values: Sequence[float]) -> None:
    axes.boxplot(
        [list(values)],
        positions=[place.x],
        widths=place.width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={**_face(arm), "linewidth": 0.8, "label": label},
        medianprops={"color": "black", "linewidth": 1.4},
        whiskerprops={"color": arm_color(arm), "linestyle": arm_dash(arm)},
        capprops={"color": arm_color(arm)},
        flierprops={"marker": "o", "markersize": 2.5, "markeredgecolor": arm_color(arm)},
    )


def _bars(axes: Axes, place: Place, arm: int, label: str, values: Sequence[float]) -> None:
    found = estimate(values)
    if found is None:
        return
    axes.bar([place.x], [found.mean], place.width, label=label, linewidth=0.8, **_face(arm))
    if found.half_width is not None:
        look: dict[str, Any] = {"ecolor": "black", "elinewidth": 0.9, "capsize": 2.5, "fmt": "none"}
        axes.errorbar([place.x], [found.mean], [found.half_width], **look)


def value_rows(results: Results, view: View, queue: str | None) -> Iterator[tuple[Any, ...]]:
    """What a figure of many runs shows, as numbers: a row a run and metric, or a row a flow."""
    axes = tuple(axis.name for axis in results.axes)
    if view.over == FLOWS:
        yield (*axes, "arm", "flow", "goodput_mean_mbit_s", "n")
        grid = _grid(results, view, queue, along=False, metrics=(GOODPUT,))
        for cell in _shown(results, grid):
            for (name, index), values in flow_goodputs(results.measured(cell)).items():
                yield (*_labels(cell), cell.arm, f"{name} {index}", f"{np.mean(values):.9g}", len(values))
        return
    yield (*axes, "arm", "metric", "unit", "seed", "value")
    grid = _grid(results, view, queue)
    for metric in {panel.metric.name: panel.metric for panel in grid.panels}.values():
        for cell in _shown(results, grid):
            for seed, value in grid.cells.values[metric.name][cell].items():
                shown = "" if value is None else f"{display_value(value, metric.unit):.9g}"
                yield (*_labels(cell), cell.arm, metric.name, display_unit(metric.unit), seed, shown)


def _shown(results: Results, grid: Grid) -> list[Cell]:
    held = grid.held.items()
    return [cell for cell in results.cells if cell.arm in grid.arms and held <= dict(cell.settings).items()]


def _labels(cell: Cell) -> tuple[str, ...]:
    return tuple(label for _, label in cell.settings)


KINDS_OF_MANY: dict[str, OfMany] = {
    "lines": OfMany(lines, value_rows),
    "heat": OfMany(heat, value_rows),
    "differences": OfMany(difference_maps, value_rows),
    "goodput-delay": OfMany(trade_off),
    "delay-cdf": OfMany(cdfs),
    "box": OfMany(box, value_rows),
    "bar": OfMany(bar, value_rows),
}
"""What can be drawn of a sweep, by the name that the command line takes."""

__all__ = ["FLOWS", "KINDS_OF_MANY", "SEEDS", "OfMany", "bar", "box", "flow_goodputs", "value_rows"]
