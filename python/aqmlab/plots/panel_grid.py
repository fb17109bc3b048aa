"""The plots of a figure of a sweep: one per label of an axis or per metric, with labels and titles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aqmlab.errors import UsageError, unknown
from aqmlab.figures.view import View
from aqmlab.metrics import Metric, Scope, find
from aqmlab.plots.appearance import (
    entitle,
    new_figure,
    points_of,
    text_width,
    width_asked,
)
from aqmlab.results.answers import Answer, answer
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Results
from aqmlab.stats import Estimate, estimate
from aqmlab.text.numbers import display_unit, display_value

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELAY, MEAN_DELAY, GOODPUT = "queueing_delay_p95_s", "queueing_delay_mean_s", "goodput_bps"
SEEDS, FLOWS, CLASSES = "seeds", "flows", "classes"
_PANEL = (1.9, 2.0)


@dataclass(frozen=True)
class Panel:
    """One plot: its title, the label of each axis that is fixed, and the metric that it shows."""

    title: str
    held: Mapping[str, str]
    metric: Metric


@dataclass(frozen=True)
class PanelGrid:
    """The plots of a figure, and their axes.

    Attributes
    ----------
    answer
        The values of the metrics.
    arms
        The arms to draw, each with its index among all arms.
    x
        The horizontal axis of each plot, if it is an axis of the sweep.
    rows
        The rows, each with its plots side by side.
    """

    answer: Answer
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
    def metrics(self) -> list[Metric]:
        """The metrics of the plots, each once."""
        return list(dict.fromkeys(panel.metric for panel in self.panels))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the horizontal axis; a single empty label if there are none."""
        return ("",) if self.x is None else self.x.labels

    def cell(self, arm: str, panel: Panel, label: str, row: str = "") -> Cell | None:
        """The cell at a position, if there is one."""
        along = {} if self.x is None else {self.x.name: label}
        down = {} if self.y is None else {self.y.name: row}
        wanted = {**panel.held, **along, **down}
        found = [c for c in self.answer.results.cells if c.arm == arm and dict(c.settings) == wanted]
        return found[0] if found else None

    def values(self, arm: str, panel: Panel, label: str) -> list[float]:
        """The values of the seeds of a cell, in the displayed unit."""
        cell = self.cell(arm, panel, label)
        found = {} if cell is None else self.answer.by_seed(cell, panel.metric.name)
        return [display_value(value, panel.metric.unit) for value in found.values() if value is not None]

    def of_class(self, arm: str, panel: Panel, class_name: str, queue: str | None) -> dict[int, float | None]:
        """The values of a class in a cell, by seed, in the metric's unit."""
        cell = self.cell(arm, panel, "")
        if cell is None:
            return {}
        return self.answer.results.values(panel.metric.name, cell, Scope(queue, class_name))

    def estimate(self, arm: str, panel: Panel, label: str) -> Estimate | None:
        """Mean over the seeds of a cell with its interval, in the displayed unit."""
        return estimate(self.values(arm, panel, label))


def _arms(results: Results, view: View) -> dict[str, int]:
    for arm in view.arms:
        if arm not in results.arms:
            raise unknown("arm", arm, results.arms)
    return {arm: i for i, arm in enumerate(results.arms) if not view.arms or arm in view.arms}


def panel_grid(  # noqa: PLR0913 (keyword arguments)
    results: Results,
    view: View,
    queue: str | None,
    *,
    along: bool = True,
    down: bool = False,
    metrics: Sequence[str] = (DELAY,),
    more: Sequence[str] = (),
) -> PanelGrid:
    """Return the grid of a view, which shows at most two axes and fixes the others.

    With ``along``, one axis of the sweep is the horizontal axis of each plot. With ``down``, another
    one is the vertical axis of each plot; otherwise, there is one plot for each of its labels.

    ``more`` are metrics that are needed but have no plot of their own.

    Raises
    ------
    UsageError
        For an unknown arm, axis, label or metric, or an axis that is requested twice.
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
            raise UsageError(f"the axis `{axis.name}` is requested twice")
    free = [axis for axis in results.axes if axis.name not in where and axis not in asked]
    free.sort(key=lambda axis: -len(axis.labels))
    x = results.axis(view.x) if view.x is not None else (free.pop(0) if along and free else None)
    if view.x is not None and not along:
        raise UsageError(
            "the horizontal axis of this figure is not an axis of the sweep; use `by` for a plot per label"
        )
    other = results.axis(view.by) if view.by is not None else (free.pop(0) if free else None)
    y, by = (other, None) if down else (None, other)
    held = {**where, **{axis.name: axis.labels[0] for axis in free}}
    chosen = tuple(find(name) for name in (view.metrics or metrics))
    rows = _panels(chosen, by, held)
    found = answer(results, list(dict.fromkeys([*(m.name for m in chosen), *more])), queue=queue)
    return PanelGrid(found, _arms(results, view), x, y, rows, held)


def _panels(
    metrics: Sequence[Metric], by: Axis | None, held: Mapping[str, str]
) -> tuple[tuple[Panel, ...], ...]:
    """Return the plots in rows.

    There is a row per metric if several metrics and ``by`` are given; otherwise, rows hold as
    many plots as fit.
    """
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
    columns = columns_of(len(flat))
    return tuple(tuple(flat[i : i + columns]) for i in range(0, len(flat), columns))


def columns_of(plots: int) -> int:
    """Return the number of columns for this many plots: as few rows as space permits, evenly filled."""
    most = min(max(int(width_asked(7.6) / 1.75), 1), 4)
    return math.ceil(plots / math.ceil(plots / most))


def turned(figure: Figure, labels: Sequence[str], across: int) -> dict[str, Any]:
    """Return the text properties that rotate the x tick labels if they would otherwise overlap."""
    size = points_of("xtick.labelsize")
    needed = sum(text_width(label, size) + size for label in labels)
    room = 72.0 * (figure.get_figwidth() / across - 0.55)
    return {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if needed > room else {}


def empty_plots(grid: PanelGrid, what: str, *, share: bool = True) -> tuple[Figure, list[tuple[Panel, Axes]]]:
    """The empty plots, with their titles and the title of the figure."""
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
    short = {axis.name: axis.short for axis in grid.answer.results.axes}
    held = ", ".join(f"{short[name]} {label}" for name, label in grid.held.items())
    entitle(figure, f"{grid.answer.results.title}: {what}{f' ({held})' if held else ''}")
    return figure, plots


def label_x(grid: PanelGrid, plots: Sequence[tuple[Panel, Axes]]) -> None:
    """Label the horizontal axes: one tick per label, evenly spaced, and rotated if the labels are long."""
    if grid.x is None:
        return
    across = max(map(len, grid.rows))
    for i, (_, axes) in enumerate(plots):
        figure = axes.get_figure(root=True)
        turn = {} if figure is None else turned(figure, grid.labels, across)
        axes.set_xticks(range(len(grid.labels)), grid.labels, **turn)
        axes.grid(visible=False, axis="x")
        if i + across >= len(plots):
            axes.set_xlabel(grid.x.short)
            axes.tick_params(labelbottom=True)


def label_y(grid: PanelGrid, plots: Sequence[tuple[Panel, Axes]], unit: str | None = None) -> None:
    """Label the vertical axis with the metric and its unit, unless the plot to the left has the same label.

    By default, the unit is the usual one of the metric.
    """
    firsts = {id(row[0]) for row in grid.rows}
    several = len({panel.metric for panel in grid.panels}) > 1
    alone = several and all(len({p.metric for p in row}) > 1 for row in grid.rows if len(row) > 1)
    for panel, axes in plots:
        if id(panel) in firsts or (several and alone):
            figure = axes.get_figure(root=True)
            label = titled(panel.metric, unit)
            room = math.inf if figure is None else 72.0 * (figure.get_figheight() / len(grid.rows) - 1.1)
            wide = text_width(label, points_of("axes.labelsize")) > room
            axes.set_ylabel(label.replace(" [", "\n[") if wide else label)


def titled(metric: Metric, unit: str | None = None) -> str:
    """Return a metric's label with its unit, by default the usual one."""
    unit = display_unit(metric.unit) if unit is None else unit
    return f"{metric.label} [{unit}]" if unit else metric.label


def metric_labels(grid: PanelGrid) -> str:
    """The labels of all metrics of a figure."""
    return ", ".join(dict.fromkeys(panel.metric.label for panel in grid.panels))


def band_note() -> dict[str, Artist]:
    """The entry of a legend that explains bands."""
    from matplotlib.patches import Patch

    return {"band: 95 % interval of the mean": Patch(color="0.8")}
