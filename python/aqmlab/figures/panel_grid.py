"""What the plots of a figure of a sweep show: one plot per label of an axis or per metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aqmlab.errors import UsageError, unknown
from aqmlab.figures.model import Axis as Ruler
from aqmlab.figures.model import Entry, Figure, Panel, Share
from aqmlab.figures.view import View
from aqmlab.metrics import Metric, Scope, find
from aqmlab.results.answers import Answer, answer
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Results
from aqmlab.stats import Estimate, estimate
from aqmlab.text.numbers import display_unit, display_value

DELAY, MEAN_DELAY, GOODPUT = "queueing_delay_p95_s", "queueing_delay_mean_s", "goodput_bps"
SEEDS, FLOWS, CLASSES = "seeds", "flows", "classes"


@dataclass(frozen=True)
class Subject:
    """What one plot shows: its title, the label of each axis that is fixed, and a metric."""

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
    x, y
        The axes of each plot that are axes of the sweep.
    rows
        The rows, each with its plots side by side.
    held
        The labels at which other axes of the sweep are fixed.
    wraps
        Whether rows are broken where space requires it.
    """

    answer: Answer
    arms: Mapping[str, int]
    x: Axis | None
    y: Axis | None
    rows: tuple[tuple[Subject, ...], ...]
    held: Mapping[str, str]
    wraps: bool = False

    @property
    def subjects(self) -> list[Subject]:
        """All plots, row by row."""
        return [subject for row in self.rows for subject in row]

    @property
    def metrics(self) -> list[Metric]:
        """The metrics of the plots, each once."""
        return list(dict.fromkeys(subject.metric for subject in self.subjects))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the horizontal axis; a single empty label if there are none."""
        return ("",) if self.x is None else self.x.labels

    def cell(self, arm: str, subject: Subject, label: str, row: str = "") -> Cell | None:
        """The cell at a position, if there is one."""
        along = {} if self.x is None else {self.x.name: label}
        down = {} if self.y is None else {self.y.name: row}
        wanted = {**subject.held, **along, **down}
        found = [c for c in self.answer.results.cells if c.arm == arm and dict(c.settings) == wanted]
        return found[0] if found else None

    def values(self, arm: str, subject: Subject, label: str) -> list[float]:
        """The values of the seeds of a cell, in the displayed unit."""
        cell = self.cell(arm, subject, label)
        found = {} if cell is None else self.answer.by_seed(cell, subject.metric.name)
        return [display_value(value, subject.metric.unit) for value in found.values() if value is not None]

    def of_class(
        self, arm: str, subject: Subject, class_name: str, queue: str | None
    ) -> dict[int, float | None]:
        """The values of a class in a cell, by seed, in the metric's unit."""
        cell = self.cell(arm, subject, "")
        if cell is None:
            return {}
        return self.answer.results.values(subject.metric.name, cell, Scope(queue, class_name))

    def estimate(self, arm: str, subject: Subject, label: str) -> Estimate | None:
        """Mean over the seeds of a cell with its interval, in the displayed unit."""
        return estimate(self.values(arm, subject, label))

    @property
    def across(self) -> Ruler:
        """The horizontal axis of each plot: the labels of an axis of the sweep, evenly spaced."""
        return Ruler() if self.x is None else Ruler(self.x.short, labels=self.x.labels)

    @property
    def labelled(self) -> str:
        """The labels of all metrics."""
        return ", ".join(metric.label for metric in self.metrics)

    def title(self, what: str) -> str:
        """The title of a figure that shows ``what``: it names the labels at which axes are fixed."""
        short = {axis.name: axis.short for axis in self.answer.results.axes}
        held = ", ".join(f"{short[name]} {label}" for name, label in self.held.items())
        return f"{self.answer.results.title}: {what}{f' ({held})' if held else ''}"

    def figure(
        self,
        what: str,
        panel_of: Callable[[Subject], Panel],
        *,
        share: bool = True,
        notes: Sequence[Entry] = (),
    ) -> Figure:
        """The figure of this grid; its title says ``what`` it shows, and with ``share``, plots share axes."""
        shared: Share = "none"
        if share:
            several = len(self.subjects) > len(self.metrics)
            shared = "all" if len(self.metrics) == 1 else "row" if several else "none"
        return Figure(
            self.title(what),
            tuple(tuple(map(panel_of, row)) for row in self.rows),
            tuple(notes),
            wraps=self.wraps,
            share=("all" if share else "none", shared),
        )


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
    rows, wraps = _subjects(chosen, by, held)
    found = answer(results, list(dict.fromkeys([*(m.name for m in chosen), *more])), queue=queue)
    return PanelGrid(found, _arms(results, view), x, y, rows, held, wraps)


def _subjects(
    metrics: Sequence[Metric], by: Axis | None, held: Mapping[str, str]
) -> tuple[tuple[tuple[Subject, ...], ...], bool]:
    """Return the plots in rows, and whether rows are broken where space requires it.

    There is a row per metric if several metrics and ``by`` are given; otherwise, there is one row, which may
    be broken.
    """
    rows = tuple(
        tuple(
            Subject("" if by is None else f"{by.short} {label}", {**held, **fixed}, metric)
            for label in ([""] if by is None else by.labels)
            for fixed in [{} if by is None else {by.name: label}]
        )
        for metric in metrics
    )
    if len(rows) > 1 and by is not None:
        return rows, False
    return (tuple(subject for row in rows for subject in row),), True


def titled(metric: Metric, unit: str | None = None) -> str:
    """Return a metric's label with its unit, by default the usual one."""
    unit = display_unit(metric.unit) if unit is None else unit
    return f"{metric.label} [{unit}]" if unit else metric.label


def at_queue(queue: str | None) -> str:
    """Return the end of a title that names the queue; empty if cells have different queues."""
    return "" if queue is None else f" at {queue}"
