"""Response times by size, and page times by weight: individual times, and percentiles of size bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aqmlab.errors import UsageError
from aqmlab.figures.view import View
from aqmlab.metrics import Metric, Scope
from aqmlab.metrics.waits import Sample, SizeBand, Waits
from aqmlab.plots.appearance import arm_color, arm_look, legend_below, mark_size
from aqmlab.plots.panel_grid import (
    Panel,
    PanelGrid,
    band_note,
    columns_of,
    empty_plots,
    label_y,
    turned,
)
from aqmlab.plots.panels import plain_powers
from aqmlab.plots.response_curves import MEDIAN, REFERENCE, named, other_arms, wait_grid
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.stats import Estimate, estimate

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PERCENTILES = (MEDIAN, "p90_s", "p99_s")


# --- individual times


def scatter_figure(results: Results, view: View, queue: str | None, *, waits: Waits) -> Figure:
    """Time against size, both axes logarithmic; a plot per arm, a dot per request or page."""
    grid = _held(results, view, queue, waits)
    arms = other_arms(grid, view)
    columns = columns_of(len(arms))
    panels = [Panel(arm, grid.held, grid.panels[0].metric) for arm in arms]
    rows = tuple(tuple(panels[i : i + columns]) for i in range(0, len(panels), columns))
    of_arms = replace(grid, rows=rows)
    what = named(results, view, waits, f"{waits.time}s of single {waits.many}")
    figure, plots = empty_plots(of_arms, f"{what}, seed {results.finished_seeds[0]}")
    reference = None if view.reference is None else _sample(grid, view.reference, view, waits)
    for panel, axes in plots:
        if reference is not None:
            _dots(axes, reference, REFERENCE["color"], 0)
        sample = _sample(grid, panel.title, view, waits)
        if sample is not None:
            _dots(axes, sample, arm_color(arms[panel.title]), 1)
        axes.set(xscale="log", yscale="log")
        plain_powers(axes.xaxis)
        plain_powers(axes.yaxis)
    for i, (_, axes) in enumerate(plots):
        axes.set_xlabel(f"{waits.size} [kB]")
        if i % columns == 0:
            axes.set_ylabel(f"{waits.time} [s]")
    legend_below(figure, [], _dot_notes(view, waits))
    return figure


def _dot_notes(view: View, waits: Waits) -> dict[str, Artist]:
    """Return the legend entry that explains the dots; the titles of the plots name the arms."""
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "none", "marker": "."}
    notes: dict[str, Artist] = {
        f"a dot: a completed {waits.one} of the sample": Line2D([], [], color="black", **dot)
    }
    if view.reference is not None:
        notes[f"{view.reference} (reference)"] = Line2D([], [], color=REFERENCE["color"], **dot)
    return notes


def scatter_rows(
    results: Results, view: View, queue: str | None, *, waits: Waits
) -> Iterator[tuple[Any, ...]]:
    """The dots of :func:`scatter_figure`."""
    yield ("arm", f"{waits.key}_bytes", waits.metric("s"))
    grid = _held(results, view, queue, waits)
    for arm in dict.fromkeys([*grid.arms, *([view.reference] if view.reference else [])]):
        sample = _sample(grid, arm, view, waits)
        if sample is not None:
            for size, time in zip(*sample, strict=True):
                yield (arm, int(size), f"{time:.9f}")


def _held(results: Results, view: View, queue: str | None, waits: Waits) -> PanelGrid:
    """A single case: every axis of a sweep is fixed at a label."""
    if view.metrics or view.by is not None:
        raise UsageError(f"a scatter of {waits.many} has a plot for each arm: leave out the metric and `by`")
    grid = wait_grid(results, view, queue, waits)
    return replace(grid, held=grid.panels[0].held)


def _sample(grid: PanelGrid, arm: str, view: View, waits: Waits) -> Sample | None:
    """The recorded sample of the first finished run of a cell."""
    results = grid.answer.results
    cell = _cell(results, arm, grid)
    runs = () if cell is None else results.runs_of(cell)
    if not runs:
        return None
    return waits.sample(results.tables, runs[0], view.class_name)


def _cell(results: Results, arm: str, grid: PanelGrid) -> Cell | None:
    return next((c for c in results.cells if c.arm == arm and dict(c.settings) == dict(grid.held)), None)


def _dots(axes: Axes, sample: Sample, color: str, order: int) -> None:
    # The dots are rasterised even in a vector file, because there are thousands of them.
    look: dict[str, Any] = {
        "marker": ".",
        "markersize": 0.8 * mark_size(),
        "markeredgewidth": 0,
        "alpha": 0.5,
    }
    sizes = sample.sizes / 1e3
    axes.plot(sizes, sample.times, linestyle="none", color=color, zorder=order, rasterized=True, **look)


# --- size bands


def quantiles_figure(results: Results, view: View, queue: str | None, *, waits: Waits) -> Figure:
    """Draw percentiles of the times by size band: one line per arm, with means and their intervals."""
    bands = _bands(results, view, waits)
    grid = _of_known(wait_grid(results, view, queue, waits, PERCENTILES), bands, view, waits)
    figure, plots = empty_plots(grid, f"{named(results, view, waits, f'{waits.time}s')} by {waits.size}")
    names, across = list(map(str, bands)), max(map(len, grid.rows))
    means: dict[Metric, list[float]] = {}
    for panel, axes in plots:
        for arm, number in _drawn(grid, view):
            points = [_estimate(grid, panel, arm, band, view) for band in bands]
            means.setdefault(panel.metric, []).extend(point.mean for point in points if point is not None)
            _line(axes, arm, number, points)
    for i, (panel, axes) in enumerate(plots):
        axes.set_yscale("log")
        # The means set the limits, because the interval of a few requests can be arbitrarily wide.
        # All plots of the same metric have the same limits.
        axes.set_ylim(min(means[panel.metric]) / 2, max(means[panel.metric]) * 2)
        plain_powers(axes.yaxis)
        axes.set_xticks(range(len(bands)), names, **turned(figure, names, across))
        if i + across >= len(plots):
            axes.set_xlabel(waits.size)
        axes.grid(visible=False, axis="x")
    # Seconds, as in the other figures of these times.
    label_y(grid, plots, "s")
    several = any(axes.collections for _, axes in plots)
    legend_below(figure, [axes for _, axes in plots], band_note() if several else None)
    return figure


def quantile_rows(
    results: Results, view: View, queue: str | None, *, waits: Waits
) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`quantiles_figure`."""
    axes = tuple(axis.short for axis in results.axes)
    yield (
        *axes,
        "arm",
        f"{waits.key}_at_least_bytes",
        f"{waits.key}_below_bytes",
        "metric",
        "unit",
        "mean",
        "half_width_95",
        "n",
    )
    grid = wait_grid(results, view, queue, waits, PERCENTILES)
    for panel in grid.panels:
        labels = [panel.held[axis.name] for axis in results.axes]
        for arm, _ in _drawn(grid, view):
            for band in _bands(results, view, waits):
                found = _estimate(grid, panel, arm, band, view)
                if found is not None:
                    numbers = (
                        f"{found.mean:.9g}",
                        "" if found.half_width is None else f"{found.half_width:.9g}",
                    )
                    what = (panel.metric.name, panel.metric.unit)
                    yield (*labels, arm, band.at_least, band.below or "", *what, *numbers, found.n)


def _of_known(grid: PanelGrid, bands: Sequence[SizeBand], view: View, waits: Waits) -> PanelGrid:
    """Return the plots of percentiles that are reached, by any arm in any size band.

    Raises
    ------
    UsageError
        If there is none.
    """

    def known(panel: Panel) -> bool:
        arms = [arm for arm, _ in _drawn(grid, view)]
        return any(_estimate(grid, panel, arm, band, view) for arm in arms for band in bands)

    rows = (tuple(filter(known, row)) for row in grid.rows)
    found = replace(grid, rows=tuple(filter(None, rows)))
    if not found.rows:
        raise UsageError(
            f"too many {waits.many} had not ended with the run: no percentile of their {waits.time}s is known"
        )
    return found


def _drawn(grid: PanelGrid, view: View) -> list[tuple[str, int | None]]:
    """The arms to draw, each with its number, and the reference, which has none."""
    reference = [] if view.reference is None else [(view.reference, None)]
    return [*other_arms(grid, view).items(), *reference]


def _bands(results: Results, view: View, waits: Waits) -> list[SizeBand]:
    return sorted({band for run in results.measured() for band in waits.bands(run, view.class_name)})


def _estimate(grid: PanelGrid, panel: Panel, arm: str, band: SizeBand, view: View) -> Estimate | None:
    cell = grid.cell(arm, panel, "")
    if cell is None:
        return None
    metric: Metric = panel.metric
    values = grid.answer.results.values(
        metric.name, cell, Scope(class_name=view.class_name, parameters=band.parameters)
    )
    return estimate(value for value in values.values() if value is not None)


def _line(axes: Axes, arm: str, number: int | None, points: list[Estimate | None]) -> None:
    known = [(i, e) for i, e in enumerate(points) if e is not None]
    look = REFERENCE if number is None else {**arm_look(number), "markevery": None}
    label = f"{arm} (reference)" if number is None else arm
    axes.plot([i for i, _ in known], [e.mean for _, e in known], label=label, **look)
    # A logarithmic axis has no zero, so an interval that reaches zero ends at the lower edge.
    sure = [
        (i, max(e.low, e.mean / 1e3), e.high) for i, e in known if e.low is not None and e.high is not None
    ]
    if sure:
        xs, lows, highs = zip(*sure, strict=True)
        color = REFERENCE["color"] if number is None else arm_color(number)
        axes.fill_between(xs, lows, highs, color=color, alpha=0.18, linewidth=0)
