"""Box plots and bar charts that compare arms over the seeds, or the flows of each arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aqmlab.errors import UsageError, unknown
from aqmlab.figures.view import View
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, Measured
from aqmlab.metrics.flow import goodputs
from aqmlab.plots.appearance import (
    arm_color,
    arm_dash,
    legend_below,
    note,
)
from aqmlab.plots.panel_grid import (
    CLASSES,
    DELAY,
    FLOWS,
    GOODPUT,
    SEEDS,
    Panel,
    PanelGrid,
    empty_plots,
    label_x,
    label_y,
    metric_labels,
    panel_grid,
    turned,
)
from aqmlab.results.answers import refuse_class
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.stats import estimate
from aqmlab.text.numbers import display_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")


_GROUP = 0.8
"""Total width of all boxes or bars of a label, in units of the distance between labels."""


class Group(NamedTuple):
    """A group of boxes or bars: its label, and the values of each arm."""

    label: str
    values: Mapping[str, Sequence[float]]


def _groups(grid: PanelGrid, panel: Panel) -> list[Group]:
    return [Group(label, {a: grid.values(a, panel, label) for a in grid.arms}) for label in grid.labels]


def flow_goodputs(runs: Sequence[Measured], queue: str | None) -> dict[tuple[str, int], list[float]]:
    """Goodput in Mbit/s of each flow, by class and index, in the runs in which it is known.

    With a queue, flows whose data do not cross it are left out.
    """
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        classes: dict[str, int] = {}
        flows = run.at(queue or EVERY_QUEUE).flows_of(EVERY_CLASS)
        of_flows = goodputs(run, flows, run.window)
        for flow, value in zip(flows, of_flows or [], strict=False):
            index = classes.get(flow.class_name, 0)
            classes[flow.class_name] = index + 1
            found.setdefault((flow.class_name, index), []).append(value / 1e6)
    return found


def _flow_groups(grid: PanelGrid, panel: Panel, queue: str | None, *, each: bool) -> list[Group]:
    """Groups of goodputs: the mean of each flow, by class; with ``each``, the value of each seed, by flow."""
    of_arms = {}
    for arm in grid.arms:
        cell = grid.cell(arm, panel, "")
        of_arms[arm] = {} if cell is None else flow_goodputs(grid.answer.results.measured(cell), queue)
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


def _class_groups(grid: PanelGrid, panel: Panel, queue: str | None) -> list[Group]:
    """Groups of values of a metric over the seeds: one for each class of traffic."""
    unit = panel.metric.unit

    def values(arm: str, name: str) -> list[float]:
        found = grid.of_class(arm, panel, name, queue).values()
        return [display_value(value, unit) for value in found if value is not None]

    classes = classes_of(grid.answer.results)
    return [Group(name, {arm: values(arm, name) for arm in grid.arms}) for name in classes]


def _compared(
    results: Results, view: View, queue: str | None, *, each: bool
) -> tuple[PanelGrid, Callable[[Panel], list[Group]]]:
    """Return a grid of plots, and a function that gives the boxes or bars of a plot."""
    if view.over not in (SEEDS, FLOWS, CLASSES):
        raise unknown("choice of `--over`", view.over, (SEEDS, FLOWS, CLASSES))
    if view.over == CLASSES:
        of_classes = panel_grid(results, view, queue, along=False, metrics=(GOODPUT,))
        for metric in of_classes.metrics:
            refuse_class(metric)
        return of_classes, lambda panel: _class_groups(of_classes, panel, queue)
    if view.over == SEEDS:
        several = (DELAY, GOODPUT)
        grid = panel_grid(results, view, queue, metrics=several)
        return grid, lambda panel: _groups(grid, panel)
    if view.metrics and tuple(view.metrics) != (GOODPUT,):
        raise UsageError("flows are compared by their goodput only: leave out the metric")
    of_flows = panel_grid(results, view, queue, along=False, metrics=(GOODPUT,))
    return of_flows, lambda panel: _flow_groups(of_flows, panel, queue, each=each)


def box(results: Results, view: View, queue: str | None) -> Figure:
    """A metric over seeds, or the goodput of flows, as boxes: one for each arm, grouped by label or class."""
    grid, groups = _compared(results, view, queue, each=False)
    figure, plots = empty_plots(grid, _over(grid, view))
    for panel, axes in plots:
        _grouped(axes, grid, groups(panel), _boxes)
    what = "flow" if view.over == FLOWS else "run"
    notes = [
        "box: quartiles; line in it: median",
        f"whiskers: last {what} within 1.5 box heights; circles: beyond",
    ]
    return _compared_figure(figure, grid, plots, view, notes)


def bar(results: Results, view: View, queue: str | None) -> Figure:
    """Means over the seeds, of each arm or of each flow, as bars with 95 % intervals."""
    grid, groups = _compared(results, view, queue, each=True)
    figure, plots = empty_plots(grid, _over(grid, view))
    for panel, axes in plots:
        _grouped(axes, grid, groups(panel), _bars)
    for _, axes in plots:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    notes = ["bar: mean over the seeds", "whisker: 95 % Student t interval"]
    return _compared_figure(figure, grid, plots, view, notes)


def _over(grid: PanelGrid, view: View) -> str:
    if view.over == FLOWS:
        return "goodput of flows"
    if view.over == CLASSES:
        return f"{metric_labels(grid)} of each class"
    along = f" by {grid.x.short}" if grid.x is not None else ""
    return f"{metric_labels(grid)}{along}"


def _compared_figure(
    figure: Figure, grid: PanelGrid, plots: Sequence[tuple[Panel, Axes]], view: View, notes: Sequence[str]
) -> Figure:
    label_y(grid, plots)
    if grid.x is not None:
        label_x(grid, plots)
    legend = dict.fromkeys(notes, note(""))
    named = grid.x is not None or view.over != SEEDS
    legend_below(figure, [axes for _, axes in plots] if named else [], legend)
    return figure


class Place(NamedTuple):
    """The position of a box or a bar."""

    x: float
    width: float


_One = Callable[["Axes", Place, int, str, Sequence[float]], None]


def _grouped(axes: Axes, grid: PanelGrid, groups: Sequence[Group], draw: _One) -> None:
    """Draw a plot's boxes or bars; arms are side by side in a group, or along the axis without groups."""
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
    turn = {} if figure is None else turned(figure, labels, max(map(len, grid.rows)))
    axes.set_xticks(range(len(labels)), labels, **turn)
    axes.set_xlim(-0.6, len(labels) - 0.4)


def _face(arm: int) -> dict[str, Any]:
    """Return the fill of an arm's area, which is also distinguishable in grey."""
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
