"""The answer: the metrics of every cell, or of every class of traffic in a cell, as means over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.arguments import names as given_names
from aqmlab.arguments import typed
from aqmlab.errors import RecordingError, UsageError, unknown
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, Metric, Scope, Takes, find
from aqmlab.recordings.frames import REAL, TEXT, WHOLE, Columns, Framed, column_names
from aqmlab.results.classes import BY_CLASS, classes_at
from aqmlab.stats import CONFIDENCE, Difference, Estimate, difference, estimate
from aqmlab.text.numbers import counted, estimate_parts, listed, with_unit
from aqmlab.text.tables import Column, Grid
from aqmlab.text.units import si_numbers

if TYPE_CHECKING:
    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

HEADLINE = (
    "goodput_bps",
    "utilisation_percent",
    "queueing_delay_mean_s",
    "queueing_delay_p50_s",
    "queueing_delay_p95_s",
    "queueing_delay_p99_s",
    "backlog_mean_packets",
    "drop_percent",
    "mark_percent",
    "jain_index",
    "timeouts_per_flow",
)
"""The default metrics of an answer, in addition to those that a scenario names."""

BY_QUEUE = (
    "queue_share_percent",
    "queueing_delay_mean_s",
    "queueing_delay_p50_s",
    "queueing_delay_p99_s",
    "backlog_mean_packets",
    "drop_percent",
    "mark_percent",
)
"""The default metrics of an inner queue."""

_BY: Mapping[str, Sequence[str]] = {"class": BY_CLASS, "queue": BY_QUEUE}
"""The kinds of parts that rows may be about, and the default metrics of each."""

Settings = tuple[tuple[str, str], ...]
"""The pairs of axis and label that identify a case, in the order of the axes."""


class Row(NamedTuple):
    """What a value refers to: a cell, and in it all traffic, one class or one inner queue."""

    cell: Cell
    part: str


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Framed):
    """Metrics by cell and, on request, by class of traffic or by inner queue.

    When printed, an answer is the table that the command line shows. As a data frame
    (:meth:`to_frame`), it has a row per run, or per run and part. The columns of the frame are one
    per axis, ``arm``, ``class`` or ``queue`` if rows are per part, ``seed``, and one per metric.

    Methods take a cell or, if no values are swept, the name of an arm. They also take the part of the
    cell, which is the name of a class or of an inner queue, if rows are per part.

    Attributes
    ----------
    results
        The results that the answer summarises.
    asked_queue
        The queue that was requested; ``None`` means the queue by which each cell is judged.
    class_name
        The class of traffic; ``*`` means all traffic whose data cross the queue or, if the queue is
        ``*`` too, all traffic.
    by
        ``"class"`` or ``"queue"`` if there is a row for each class or inner queue; ``None`` if there is one
        for each cell.
    metrics
        The metrics requested.
    by_name
        Whether the metrics were named explicitly rather than taken by default.
    values
        The values by row, metric name and seed; ``None`` where the metric is not defined.
    """

    results: Results
    asked_queue: str | None
    class_name: str
    by: str | None
    metrics: tuple[Metric, ...]
    by_name: bool
    values: Mapping[Row, Mapping[str, Mapping[int, float | None]]] = field(repr=False)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows: cell by cell and, within each cell, class by class."""
        return tuple(self.values)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that have a row, in the order of the scenario."""
        return tuple(dict.fromkeys(row.cell.arm for row in self.values))

    @property
    def compared(self) -> tuple[str, ...]:
        """The arms that are compared with each other: all but the reference, unless it is the only arm."""
        others = tuple(arm for arm in self.arms if arm != self.results.reference)
        return others or self.arms

    @property
    def shown(self) -> tuple[Metric, ...]:
        """The named metrics or, if none were named, the default metrics that have a value in some run."""
        return self.metrics if self.by_name else self._there

    @cached_property
    def _there(self) -> tuple[Metric, ...]:
        return tuple(m for m in self.metrics if any(_is_there(of[m.name]) for of in self.values.values()))

    @cached_property
    def cases(self) -> tuple[tuple[Settings, tuple[Cell, ...]], ...]:
        """Each case with its cells, one per arm."""
        return tuple(
            (settings, tuple(cells)) for settings, cells in groupby(self.results.cells, lambda c: c.settings)
        )

    @cached_property
    def _numbers(self) -> Mapping[Cell, int]:
        return {cell: i for i, cell in enumerate(self.results.cells)}

    @cached_property
    def _of_arm(self) -> Mapping[str, Cell]:
        return {row.cell.arm: row.cell for row in self.values}

    def number(self, cell: Cell) -> int:
        """Return the index of a cell among all cells."""
        return self._numbers[cell]

    @cached_property
    def queues(self) -> tuple[str, ...]:
        """The queues to which the values refer."""
        if self.asked_queue is not None:
            return (self.asked_queue,)
        cells = (cell for cell in self.results.cells if self.results.runs_of(cell))
        return tuple(dict.fromkeys(self.results.queue_of(cell, self.class_name) for cell in cells))

    @property
    def queue(self) -> str:
        """The queue to which the values refer; the first one if cells are judged by different queues."""
        return self.queues[0]

    @typed
    def by_seed(self, of: Cell | str, metric: str, part: str | None = None) -> Mapping[int, float | None]:
        """Return the value of each run, by seed.

        Raises
        ------
        UsageError
            For a cell, metric or class that the answer does not have; the message gives the nearest
            name.
        """
        row = self._row(of, part)
        if metric not in self.values[row]:
            find(metric)
            raise unknown("metric in this answer", metric, self.values[row])
        return self.values[row][metric]

    def _row(self, of: Cell | str, part: str | None) -> Row:
        if isinstance(of, str):
            if self.results.axes:
                raise UsageError(f"`{of}` has one cell per case: name a cell of `results.cells`")
            if of not in self._of_arm:
                raise unknown("arm", of, self._of_arm)
            of = self._of_arm[of]
        row = Row(of, self.class_name if part is None else part)
        if row not in self.values:
            parts = [found.part for found in self.values if found.cell == of]
            if not parts:
                raise unknown("cell", str(of), map(str, self.results.cells))
            raise unknown(f"{self.by or 'class'} in this answer", row.part, parts)
        return row

    @typed
    def estimate(self, of: Cell | str, metric: str, part: str | None = None) -> Estimate | None:
        """Return the mean over the seeds, with a 95 % t interval where there are at least two.

        Raises
        ------
        UsageError
            As for :meth:`by_seed`.
        """
        return estimate(self.by_seed(of, metric, part).values())

    @typed
    def difference(
        self, of: Cell | str, other: Cell | str, metric: str, part: str | None = None
    ) -> Estimate | None:
        """Return the mean of ``of - other`` over the seeds for which both have a value."""
        return self.contrast(of, other, metric, part).estimate

    @typed
    def contrast(self, of: Cell | str, other: Cell | str, metric: str, part: str | None = None) -> Difference:
        """Return :meth:`difference` with the relative change, the p value and the seeds without a pair."""
        return difference(self.by_seed(of, metric, part), self.by_seed(other, metric, part))

    @typed
    def defined_in(self, of: Cell | str, metric: str, part: str | None = None) -> str:
        """Return ``"3 of 10"`` if only 3 of 10 seeds have a value, a possibly biased choice; else ``""``."""
        values = self.by_seed(of, metric, part).values()
        count = sum(value is not None for value in values)
        return f"{count} of {len(values)}" if 0 < count < len(values) else ""

    def parts(self, of: Cell | str, metric: Metric, part: str | None = None) -> tuple[str, str]:
        """Return the mean and the half-width of its interval as text.

        The half-width is empty if all seeds of a class give the same value.
        """
        est = self.estimate(of, metric.name, part)
        mean, half = estimate_parts(est, metric.unit)
        if not self.by or est is None or half not in ("", "0"):
            return mean, half
        return (f"{est.mean:.0f}" if metric.unit == "" and est.mean.is_integer() else mean), ""

    def text(self, of: Cell | str, metric: Metric, part: str | None = None) -> str:
        """Return ``38.72 ±0.21``, as in tables, followed by ``(3 of 10)`` if only some seeds have a value."""
        mean, half = self.parts(of, metric, part)
        some = self.defined_in(of, metric.name, part)
        return (f"{mean} ±{half}" if half else mean) + (f" ({some})" if some else "")

    def without_chance(self) -> tuple[str, ...]:
        """Return the arms whose seeds all gave the same values, so that there is no interval."""
        fixed = {
            arm: all(_all_the_same(self.values[row]) for row in self.values if row.cell.arm == arm)
            for arm in self.arms
        }
        return tuple(arm for arm in self.arms if fixed[arm])

    def chance_note(self) -> str:
        """Return a sentence that names the arms of :meth:`without_chance`; empty if there are none."""
        fixed = self.without_chance()
        return f"all seeds gave the same values in {', '.join(fixed)}: there is no interval" if fixed else ""

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of traffic, in the order of the scenario."""
        return tuple(dict.fromkeys(name for plan in self.results.plans for name in classes_at(plan)))

    @property
    def crossed_by(self) -> tuple[str, ...]:
        """The classes whose data cross the queue in at least one cell; metrics of flows refer to these."""
        crossing = {
            name for queue in self.queues for plan in self.results.plans for name in classes_at(plan, queue)
        }
        return tuple(name for name in self.classes if name in crossing)

    def where_text(self) -> str:
        """Describe in words the queue and the traffic that the values refer to."""
        if self.by == "queue":
            return f"the queues inside {' or '.join(self.queues)}"
        if self.by:
            if self.asked_queue == EVERY_QUEUE:
                at = [metric.label for metric in self.shown if metric.of_one_queue]
                there = f"; {listed(at)} at the queue by which the class is judged" if at else ""
                return f"each class over its whole path{there}"
            return f"queue {self.asked_queue}, the classes whose data cross it"
        of_whom = "" if self.class_name == EVERY_CLASS else f", class {self.class_name}"
        if self.asked_queue == EVERY_QUEUE:
            return f"all queues: every flow of the network{of_whom}"
        where = f"queue {' or '.join(self.queues)}"
        others = [name for name in self.classes if name not in self.crossed_by]
        if not others or of_whom:
            return f"{where}{of_whom}"
        crossed_by = listed(self.crossed_by) if self.crossed_by else "nobody's data"
        return f"{where}, crossed by {crossed_by} (not by {listed(others)})"

    def grid(self, most: int | None = None) -> Grid:
        """Return the answer as a table of text.

        If nothing is swept and rows are not per part, it has a column per arm, and a row per
        metric that has a value in some run. Otherwise it has a row per cell or part, but only the
        first ``most`` rows if that is given.
        """
        if not self.results.axes and not self.by:
            grid = Grid("", *(Column(arm, right=True) for arm in self.arms), turns=True)
            for metric in self._there:
                grid.add(with_unit(metric.label, metric.unit), *(self.text(arm, metric) for arm in self.arms))
            return grid
        keys = [*(axis.short for axis in self.results.axes), "arm", *([self.by] if self.by else [])]
        columns = (Column(with_unit(m.label, m.unit), right=True) for m in self.shown)
        grid = Grid(*keys, *columns, keys=len(keys))
        for row in self.rows[:most]:
            labels = (label for _, label in row.cell.settings)
            part = [row.part] if self.by else []
            grid.add(
                *labels,
                row.cell.arm,
                *part,
                *(self.text(row.cell, m, row.part) for m in self.shown),
            )
        return grid

    def footnote(self) -> str:
        """Describe in words what the numbers refer to, which seeds were run, and what is missing."""
        seeds = self.results.finished_seeds
        one_case = not self.results.axes
        asked = self.by or one_case or self.asked_queue is not None or self.class_name != EVERY_CLASS
        parts = [self.where_text()] if asked else []
        if not one_case and not self.by:
            parts.append(counted(len(self.results.cells), "cell"))
        lost = ""
        if missing := len(self.results.missing):
            lost = f"; {missing} {'run is' if missing == 1 else 'runs are'} missing"
        if len(seeds) == 1:
            each = "one run" if one_case and not self.by else "one run each"
            return f"{'; '.join(parts)}; {each} (seed {seeds[0]}): no interval{lost}"
        chance = f"; {note}" if one_case and not self.by and (note := self.chance_note()) else ""
        seen = f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})" if seeds else "no seeds"
        return f"{'; '.join(parts)}; mean ± 95 % t interval over {seen}{lost}{chance}"

    def __repr__(self) -> str:
        from aqmlab.text.notebook import names_text

        cells = counted(len(self.results.cells), "cell")
        of = cells if self.results.axes else names_text(self.crossed_by if self.by == "class" else self.arms)
        metrics = counted(len(self.metrics), "metric")
        return f"<Answer of {self.results.title!r}: {metrics} of {of}; {self.footnote()}>"

    def __str__(self) -> str:
        return f"{self.results.title}\n\n{self.grid()}\n{self.footnote()}"

    def _repr_html_(self) -> str:
        from aqmlab.text.notebook import block, note, title

        return block(title(self.results.title), self.grid().html(), note(self.footnote()))

    def _frame_columns(self) -> Columns:
        runs = [(row, run.seed) for row in self.rows for run in self.results.runs_of(row.cell)]
        own = ["arm", *([self.by] if self.by else []), "seed", *(m.name for m in self.metrics)]
        of_axes: dict[str, tuple[str, list[Any]]] = {}
        for i, axis in enumerate(self.results.axes):
            of_rows = [row.cell.settings[i][1] for row, _ in runs]
            of_axes[axis.short] = (TEXT, of_rows)
            if (found := si_numbers(axis.labels)) is not None:
                of_axes[f"{axis.short}_{found.unit}"] = (REAL, [found.values[label] for label in of_rows])
        axes = column_names(list(of_axes), own)
        parts = {self.by: (TEXT, [row.part for row, _ in runs])} if self.by else {}
        return {
            **dict(zip(axes, of_axes.values(), strict=True)),
            "arm": (TEXT, [row.cell.arm for row, _ in runs]),
            **parts,
            "seed": (WHOLE, [seed for _, seed in runs]),
            **{
                m.name: (REAL, [self.values[row][m.name].get(seed) for row, seed in runs])
                for m in self.metrics
            },
        }

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain data, as printed by ``--json``."""
        return {
            "format_version": 2,
            "title": self.results.title,
            "path": str(self.results.path),
            "queues": list(self.queues),
            "crossed_by": list(self.crossed_by),
            "class": self.class_name,
            "confidence": CONFIDENCE,
            "metrics": [
                {"name": m.name, "unit": m.unit, "definition": m.definition, "source": m.source}
                for m in self.metrics
            ],
            "cells": [
                {
                    "settings": dict(row.cell.settings),
                    "arm": row.cell.arm,
                    **({self.by: row.part} if self.by else {}),
                    "values": {m.name: self._json(row, m.name) for m in self.metrics},
                }
                for row in self.rows
            ],
            "missing_runs": [
                {
                    "settings": dict(lost.cell.settings),
                    "arm": lost.cell.arm,
                    "seed": lost.seed,
                    "reason": lost.reason,
                }
                for lost in self.results.missing
            ],
        }

    def _json(self, row: Row, metric: str) -> dict[str, Any]:
        est = self.estimate(row.cell, metric, row.part)
        return {
            "mean": est and est.mean,
            "half_width": est and est.half_width,
            "n": est.n if est else 0,
            "by_seed": {str(seed): value for seed, value in self.values[row][metric].items()},
        }


def _is_there(of_seed: Mapping[int, float | None]) -> bool:
    return any(value is not None for value in of_seed.values())


def _all_the_same(of_metrics: Mapping[str, Mapping[int, float | None]]) -> bool:
    """Whether each metric that has values has the same one for all seeds; false if none has values."""
    columns = [list(of_seed.values()) for of_seed in of_metrics.values()]
    known = [values for values in columns if any(value is not None for value in values)]
    return bool(known) and all(len(values) > 1 and len(set(values)) == 1 for values in known)


@typed
def answer(
    results: Results,
    metrics: str | Sequence[str] | None = None,
    *,
    queue: str | None = None,
    class_name: str = EVERY_CLASS,
    by: str | None = None,
) -> Answer:
    """Compute metrics for every cell and seed.

    Parameters
    ----------
    results
        The results from :func:`aqmlab.run`, :func:`aqmlab.load` or a sweep.
    metrics
        Names of metrics; by default those of :data:`HEADLINE` and of the scenario, or, with a row per
        class or inner queue, those of :data:`BY_CLASS` or :data:`BY_QUEUE`.
    queue
        The queue; metrics of flows refer to the flows whose data cross it. By default, each cell is
        measured at the queue by which it is judged (:meth:`Results.queue_of`), and each class over
        its whole path. ``*`` means the whole network.
    class_name
        A traffic class; by default all traffic.
    by
        ``"class"`` for a row per class of traffic whose data cross the queue; ``"queue"`` for a row per
        queue inside it, at any depth.

    Raises
    ------
    UsageError
        For an unknown metric, queue or class, or a metric of another class than the one asked for.
    RecordingError
        If no run has finished, or a recording cannot be read.
    """
    if by not in (None, *_BY):
        raise unknown("kind of row", str(by), _BY)
    if by == "class" and class_name != EVERY_CLASS:
        raise UsageError("an answer by class covers every class; leave out the class")
    given = given_names(metrics)
    usual = _BY[by] if by else (*HEADLINE, *results.metrics)
    chosen = tuple(dict.fromkeys(map(find, usual if given is None else given)))
    if by == "class" or class_name != EVERY_CLASS:
        if given is None:
            chosen = tuple(metric for metric in chosen if "class_name" not in metric.bound)
        for metric in chosen:
            refuse_class(metric)
    if by == "queue":
        for metric in chosen:
            _refuse_queue(metric)
    if not results.plans and (by or not results.axes):
        raise RecordingError(f"`{results.path}` holds no finished run")
    if by == "class" and queue is None:
        queue = EVERY_QUEUE
    if queue is not None and results.runs:
        results.place(queue)
    rows = _rows(results, queue, class_name, by=by)
    if by == "queue" and not rows:
        raise UsageError(f"there is no queue inside `{results.place(queue)}`: leave out `by`")
    values = {row: _values(results, row, chosen, queue, class_name, by=by) for row in rows}
    return Answer(results, queue, class_name, by, chosen, given is not None, values)


def refuse_class(metric: Metric) -> None:
    """Refuse a metric with a class in braces where another class is asked for.

    Raises
    ------
    UsageError
        If the metric has a class.
    """
    if "class_name" in metric.bound:
        raise UsageError(f"`{metric.name}` names a class: leave it out of the braces, or ask for no class")


def _refuse_queue(metric: Metric) -> None:
    """Refuse a metric that has no value for an inner queue, or names a queue itself."""
    if "queue" in metric.bound:
        raise UsageError(f"`{metric.name}` names a queue: leave it out of the braces")
    if not metric.of_one_queue and not metric.takes & Takes.QUEUE:
        raise UsageError(
            f"`{metric.name}` is about flows, which belong to no inner queue; name a metric of a queue"
        )


def _values(  # noqa: PLR0913 (keyword arguments)
    results: Results,
    row: Row,
    metrics: Sequence[Metric],
    queue: str | None,
    class_name: str,
    *,
    by: str | None,
) -> dict[str, Mapping[int, float | None]]:
    """Return the values of a row; all are ``None`` if the cell lacks a queue that another cell has."""
    cell, part = row
    if by == "queue":
        return {m.name: results.values(m.name, cell, Scope(part, class_name)) for m in metrics}
    class_name = part
    if queue == EVERY_QUEUE and by:
        # A metric of single queues is not defined for the whole network.
        return {
            m.name: results.values(m.name, cell, Scope(None if m.of_one_queue else queue, class_name))
            for m in metrics
        }
    if queue not in (None, EVERY_QUEUE) and queue not in _queues(results, cell):
        return {m.name: dict.fromkeys(run.seed for run in results.runs_of(cell)) for m in metrics}
    return {m.name: results.values(m.name, cell, Scope(queue, class_name)) for m in metrics}


def inner_queues(results: Results, cell: Cell, queue: str | None = None) -> list[str]:
    """Return the names of the queues inside a queue of a cell, by default its own, at any depth."""
    outer = results.queue_of(cell) if queue is None else queue
    runs = results.measured(cell)
    return list(dict.fromkeys(name for run in runs for name in run.inner_queues(outer, nested=True)))


def has_inner_queues(results: Results, queue: str | None = None) -> bool:
    """Return whether some cell has a queue inside a queue, by default inside its own."""
    return any(inner_queues(results, cell, queue) for cell in results.cells if results.runs_of(cell))


def _queues(results: Results, cell: Cell) -> set[str]:
    return {name for run in results.measured(cell) for name, _ in run.queues}


def _rows(results: Results, queue: str | None, class_name: str, *, by: str | None) -> list[Row]:
    """Return the rows; in a sweep, a cell without finished runs gets one too, unless rows are per part."""
    cells = [cell for cell in results.cells if results.runs_of(cell) or (results.axes and not by)]
    if not by:
        return [Row(cell, class_name) for cell in cells]
    if by == "queue":
        return [Row(cell, name) for cell in cells for name in inner_queues(results, cell, queue)]
    plans = {cell: results.runs_of(cell)[0].plan for cell in cells}
    return [
        Row(cell, name) for cell, plan in plans.items() for name in classes_at(plan, queue or EVERY_QUEUE)
    ]
