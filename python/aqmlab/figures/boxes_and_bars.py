"""Box plots and bar charts that compare arms over the seeds, or the flows of each arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from aqmlab.errors import UsageError, unknown
from aqmlab.figures.model import Axis, Bar, Box, Entry, Figure, Panel
from aqmlab.figures.panel_grid import (
    CLASSES,
    DELAY,
    FLOWS,
    GOODPUT,
    SEEDS,
    PanelGrid,
    Subject,
    panel_grid,
    titled,
)
from aqmlab.figures.view import View
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, Measured
from aqmlab.metrics.flow import goodputs
from aqmlab.results.answers import refuse_class
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.stats import estimate
from aqmlab.text.numbers import display_value

_GROUP = 0.8
"""Total width of all boxes or bars of a label, in units of the distance between labels."""


class Group(NamedTuple):
    """A group of boxes or bars: its label, and the values of each arm."""

    label: str
    values: Mapping[str, Sequence[float]]


def _groups(grid: PanelGrid, subject: Subject) -> list[Group]:
    return [Group(label, {a: grid.values(a, subject, label) for a in grid.arms}) for label in grid.labels]


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


def _flow_groups(grid: PanelGrid, subject: Subject, queue: str | None, *, each: bool) -> list[Group]:
    """Groups of goodputs: the mean of each flow, by class; with ``each``, the value of each seed, by flow."""
    of_arms = {}
    for arm in grid.arms:
        cell = grid.cell(arm, subject, "")
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


def _class_groups(grid: PanelGrid, subject: Subject, queue: str | None) -> list[Group]:
    """Groups of values of a metric over the seeds: one for each class of traffic."""
    unit = subject.metric.unit

    def values(arm: str, name: str) -> list[float]:
        found = grid.of_class(arm, subject, name, queue).values()
        return [display_value(value, unit) for value in found if value is not None]

    classes = classes_of(grid.answer.results)
    return [Group(name, {arm: values(arm, name) for arm in grid.arms}) for name in classes]


def _compared(
    results: Results, view: View, queue: str | None, *, each: bool
) -> tuple[PanelGrid, Callable[[Subject], list[Group]]]:
    """Return a grid of plots, and a function that gives the boxes or bars of a plot."""
    if view.over not in (SEEDS, FLOWS, CLASSES):
        raise unknown("choice of `--over`", view.over, (SEEDS, FLOWS, CLASSES))
    if view.over == CLASSES:
        of_classes = panel_grid(results, view, queue, along=False, metrics=(GOODPUT,))
        for metric in of_classes.metrics:
            refuse_class(metric)
        return of_classes, lambda subject: _class_groups(of_classes, subject, queue)
    if view.over == SEEDS:
        several = (DELAY, GOODPUT)
        grid = panel_grid(results, view, queue, metrics=several)
        return grid, lambda subject: _groups(grid, subject)
    if view.metrics and tuple(view.metrics) != (GOODPUT,):
        raise UsageError("flows are compared by their goodput only: leave out the metric")
    of_flows = panel_grid(results, view, queue, along=False, metrics=(GOODPUT,))
    return of_flows, lambda subject: _flow_groups(of_flows, subject, queue, each=each)


def box(results: Results, view: View, queue: str | None) -> Figure:
    """A metric over seeds, or the goodput of flows, as boxes: one for each arm, grouped by label or class."""
    what = "flow" if view.over == FLOWS else "run"
    notes = [
        "box: quartiles; line in it: median",
        f"whiskers: last {what} within 1.5 box heights; circles: beyond",
    ]
    return _figure(_compared(results, view, queue, each=False), view, Box, notes)


def bar(results: Results, view: View, queue: str | None) -> Figure:
    """Means over the seeds, of each arm or of each flow, as bars with 95 % intervals."""

    def of_mean(name: str, x: float, width: float, arm: int, values: Sequence[float]) -> Bar:
        found = estimate(values)
        assert found is not None
        return Bar(name, x, width, arm, found.mean, found.half_width)

    notes = ["bar: mean over the seeds", "whisker: 95 % Student t interval"]
    return _figure(_compared(results, view, queue, each=True), view, of_mean, notes)


_One = Callable[[str, float, float, int, Sequence[float]], Box | Bar]


def _figure(
    compared: tuple[PanelGrid, Callable[[Subject], list[Group]]], view: View, made: _One, notes: Sequence[str]
) -> Figure:
    grid, groups = compared
    named = grid.x is not None or view.over != SEEDS
    along = f" by {grid.x.short}" if grid.x is not None else ""
    what = {FLOWS: "goodput of flows", CLASSES: f"{grid.labelled} of each class"}.get(
        view.over, f"{grid.labelled}{along}"
    )

    def panel(subject: Subject) -> Panel:
        return _panel(grid, subject, groups(subject), made, named=named)

    return grid.figure(what, panel, notes=[Entry(text, shape="words") for text in notes])


def _panel(grid: PanelGrid, subject: Subject, groups: Sequence[Group], made: _One, *, named: bool) -> Panel:
    """A plot of boxes or bars; arms are side by side in a group, or along the axis without groups."""
    arms = list(grid.arms.items())
    alone = len(groups) == 1 and groups[0].label == ""
    step = 1.0 if alone else _GROUP / len(arms)
    marks = []
    for place, group in enumerate(groups):
        for i, (arm, number) in enumerate(arms):
            x = float(i) if alone else place + (i - (len(arms) - 1) / 2) * step
            if group.values[arm]:
                name = arm if place == 0 and named else ""
                marks.append(made(name, x, step * (0.6 if alone else 0.9), number, group.values[arm]))
    labels = tuple(arm for arm, _ in arms) if alone else tuple(group.label for group in groups)
    short = "" if grid.x is None else grid.x.short
    across = Axis(short, labels=labels, begin=-0.6, end=len(labels) - 0.4)
    return Panel(subject.title, across, Axis(titled(subject.metric)), tuple(marks))
