"""Curves: metrics against an axis (sweeps), goodput against delay, distributions of delay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from aqmlab.errors import UsageError
from aqmlab.figures.distributions import delay_cdf
from aqmlab.figures.trade_off import TradeOff, trade_off_points
from aqmlab.figures.view import View
from aqmlab.metrics import find
from aqmlab.plots.appearance import (
    arm_color,
    arm_look,
    legend_below,
    points_of,
    text_width,
)
from aqmlab.plots.kinds import cloud, cloud_notes
from aqmlab.plots.panel_grid import (
    GOODPUT,
    MEAN_DELAY,
    Panel,
    PanelGrid,
    band_note,
    empty_plots,
    label_x,
    label_y,
    metric_labels,
    panel_grid,
    titled,
)
from aqmlab.plots.point_names import name_points
from aqmlab.results.answers import answer
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Results
from aqmlab.stats import Estimate
from aqmlab.text.numbers import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def lines(results: Results, view: View, queue: str | None) -> Figure:
    """Draw a metric against an axis: one line per arm, with intervals of the means; one plot per label."""
    grid = panel_grid(results, view, queue)
    if grid.x is None:
        raise UsageError("`lines` needs an axis of a sweep; for arms alone, use `bar` or `box`")
    figure, plots = empty_plots(grid, f"{metric_labels(grid)} against {grid.x.short}")
    for panel, axes in plots:
        for arm, number in grid.arms.items():
            _line(axes, number, arm, [grid.estimate(arm, panel, label) for label in grid.labels])
    label_x(grid, plots)
    label_y(grid, plots)
    shown = any(axes.collections for _, axes in plots)
    legend_below(figure, [axes for _, axes in plots], band_note() if shown else None)
    return figure


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
            # A single point has no band, so its interval is drawn as a line.
            axes.vlines(xs, lows, highs, color=arm_color(arm), linewidth=1.0)


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
    title = f"goodput and mean queueing delay{_at(queue)}"
    if inside:
        title += f" by {listed([axis.short for axis in inside])}"
    figure, plots = empty_plots(grid, title, share=False)
    clouds = {id(axes): _clouds(axes, grid, panel, inside) for panel, axes in plots}
    best = {cell for front in found.fronts(find(GOODPUT)) for cell in front.best}
    for _, axes in plots:
        _front(axes, [points for cell, points in clouds[id(axes)].items() if cell in best])
        label, across = titled(find(MEAN_DELAY)), max(map(len, grid.rows))
        wide = text_width(label, points_of("axes.labelsize")) > 72.0 * (figure.get_figwidth() / across - 0.6)
        axes.set_xlabel(label.replace(", ", ",\n") if wide else label)
    label_y(grid, plots)
    legend_below(figure, [axes for _, axes in plots], cloud_notes())
    if inside:
        for _, axes in plots:
            _name(axes, clouds[id(axes)], [axis.name for axis in inside], best)
    return figure


Points = list[tuple[float, float]]


def _clouds(axes: Axes, grid: PanelGrid, panel: Panel, inside: Sequence[Axis]) -> dict[Cell, Points]:
    """Draw the cells of a plot, and return their runs."""
    drawn: dict[Cell, Points] = {}
    of_case = {(cell.arm, cell.settings): cell for cell in grid.answer.results.cells}
    order = [axis.name for axis in grid.answer.results.axes]
    for arm, number in grid.arms.items():
        for labels in product(*(axis.labels for axis in inside)):
            held = {**panel.held, **dict(zip([axis.name for axis in inside], labels, strict=True))}
            cell = of_case.get((arm, tuple((name, held[name]) for name in order if name in held)))
            points = (
                {} if cell is None else trade_off_points(grid.answer, cell, find(MEAN_DELAY), find(GOODPUT))
            )
            if cell is not None and points:
                label = None if any(other.arm == arm for other in drawn) else arm
                drawn[cell] = list(points.values())
                xs, ys = zip(*drawn[cell], strict=True)
                cloud(axes, number, xs, ys, label)
    return drawn


def _front(axes: Axes, clouds: Sequence[Points]) -> None:
    """Join the means of the undominated cells."""
    if len(clouds) > 1:
        means = sorted((fmean(x for x, _ in points), fmean(y for _, y in points)) for points in clouds)
        look: dict[str, Any] = {"color": "0.35", "linestyle": ":", "linewidth": 1.0, "zorder": 1.5}
        axes.plot(*zip(*means, strict=True), label="not dominated", **look)


def _name(axes: Axes, clouds: Mapping[Cell, Points], inside: Sequence[str], best: Collection[Cell]) -> None:
    """Write the labels of cells beside their medians, those of the undominated ones first."""
    order = sorted(clouds, key=lambda cell: cell not in best)
    names = [
        (
            ", ".join(dict(cell.settings)[name] for name in inside),
            median(x for x, _ in clouds[cell]),
            median(y for _, y in clouds[cell]),
        )
        for cell in order
    ]
    name_points(axes, names, [point for points in clouds.values() for point in points])


def _at(queue: str | None) -> str:
    """Return the end of a title that names the queue; empty if cells have different queues."""
    return "" if queue is None else f" at {queue}"


def cdfs(results: Results, view: View, queue: str | None) -> Figure:
    """The distribution of queueing delay: its mean over the seeds and the pointwise 95 % interval."""
    if view.metrics:
        raise UsageError("`delay-cdf` shows queueing delay: leave out the metric")
    grid = panel_grid(results, view, queue, along=False, metrics=(MEAN_DELAY,))
    figure, plots = empty_plots(grid, f"queueing delay{_at(queue)}", share=False)
    for panel, axes in plots:
        longest = 0.0
        for arm, number in grid.arms.items():
            cell = grid.cell(arm, panel, "")
            found = None if cell is None else delay_cdf(results, cell, queue)
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
    legend_below(figure, [axes for _, axes in plots], band_note() if len(results.seeds) > 1 else None)
    return figure
