"""The answer by class of traffic: NewReno beside SACK, short beside long round-trip times, UDP beside TCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab.arguments import names
from aqmlab.errors import RecordingError, UsageError, unknown
from aqmlab.figures import counted, estimate_parts, with_unit
from aqmlab.frames import REAL, TEXT, WHOLE, Columns, Framed, column_names
from aqmlab.grid import Column, Grid
from aqmlab.metrics import EVERY_QUEUE, Metric, find
from aqmlab.plan import Plan
from aqmlab.recording import Experiment
from aqmlab.results import Cell, Results
from aqmlab.stats import CONFIDENCE, Estimate, estimate

BY_CLASS = (
    "flows",
    "goodput_bps",
    "goodput_per_flow_bps",
    "goodput_share_percent",
    "jain_index",
    "drop_percent",
    "mark_percent",
    "timeouts_per_flow",
    "retransmissions",
    "round_trip_mean_s",
)
"""What is shown of a class unless asked for something else."""

Row = tuple[Cell, str]
"""A cell and a class that has flows in it."""


@dataclass(frozen=True, eq=False, repr=False)
class ClassTable(Framed):
    """Metrics of each class of traffic in each cell.

    Printed, it is the table of the command line. As a data frame (:meth:`to_frame`) it has a row per run and
    class, with a column per axis, ``arm``, ``class``, ``seed`` and one per metric.

    Attributes
    ----------
    results
        Whose they are.
    queue
        Where; ``*`` is the whole network, and each class on its whole way.
    classes
        In the order of the scenario, those whose data cross the queue.
    metrics
        Those that were asked for, or all that any class has a value of.
    rows
        Cell by cell, and in each the classes.
    values
        By row, metric name and seed; ``None`` where the metric is not defined.
    """

    results: Results
    queue: str
    classes: tuple[str, ...]
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    values: Mapping[Row, Mapping[str, Mapping[int, float | None]]] = field(repr=False)

    def estimate(self, cell: Cell | str, class_name: str, metric: str) -> Estimate | None:
        """Mean over the seeds with its 95 % t interval, where there are at least two.

        ``cell`` may be the name of an arm where there are no swept values.

        Raises
        ------
        UsageError
            For a cell, class or metric that the table does not have.
        """
        row = (Cell((), cell) if isinstance(cell, str) else cell, class_name)
        if row not in self.values or metric not in self.values[row]:
            raise UsageError(f"the table has no `{metric}` of class `{class_name}` in `{row[0]}`")
        return estimate(self.values[row][metric].values())

    def defined_in(self, row: Row, metric: str) -> str:
        """``"3 of 10"`` where only some seeds have the figure: those without it may be the bad ones."""
        values = self.values[row][metric].values()
        count = sum(value is not None for value in values)
        return f"{count} of {len(values)}" if 0 < count < len(values) else ""

    def parts(self, row: Row, metric: Metric) -> tuple[str, str]:
        """Mean and half-width as texts; a figure that no seed changes has no half-width to show."""
        est = self.estimate(*row, metric.name)
        mean, half = estimate_parts(est, metric.unit)
        if est is None or half not in ("", "0"):
            return mean, half
        return (f"{est.mean:.0f}" if metric.unit == "" and est.mean.is_integer() else mean), ""

    def where_text(self) -> str:
        """Where the figures are of, in words."""
        if self.queue == EVERY_QUEUE:
            return "each class on its whole way"
        return f"queue {self.queue}, the classes whose data cross it"

    def grid(self, most: int | None = None) -> Grid:
        """The table as text: a row per cell and class, at most so many; a column per metric."""
        keys = [*(axis.short for axis in self.results.axes), "arm", "class"]
        columns = (Column(with_unit(m.label, m.unit), right=True) for m in self.metrics)
        grid = Grid(*keys, *columns, keys=len(keys))
        for cell, class_name in self.rows[:most]:
            texts = []
            for metric in self.metrics:
                mean, half = self.parts((cell, class_name), metric)
                some = self.defined_in((cell, class_name), metric.name)
                texts.append((f"{mean} ±{half}" if half else mean) + (f" ({some})" if some else ""))
            grid.add(*(label for _, label in cell.settings), cell.arm, class_name, *texts)
        return grid

    def footnote(self) -> str:
        """Where the figures are of, and over which seeds."""
        seeds = self.results.seeds
        if len(seeds) == 1:
            return f"{self.where_text()}; one run each (seed {seeds[0]}): no interval"
        seen = f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})"
        return f"{self.where_text()}; mean ± 95 % t interval over {seen}"

    def __repr__(self) -> str:
        from aqmlab.notebook import names_text

        metrics = counted(len(self.metrics), "metric")
        of = f"{metrics} of {names_text(self.classes)}"
        return f"<ClassTable of {self.results.title!r}: {of}; {self.footnote()}>"

    def _repr_html_(self) -> str:
        from aqmlab.notebook import block, note, title

        return block(title(self.results.title), self.grid().html(), note(self.footnote()))

    def _columns(self) -> Columns:
        runs = [(row, run.seed) for row in self.rows for run in self.results.runs(row[0])]
        of = [metric.name for metric in self.metrics]
        own = ["arm", "class", "seed", *of]
        axes = column_names([axis.short for axis in self.results.axes], own)
        return {
            **{axis: (TEXT, [cell.settings[i][1] for (cell, _), _ in runs]) for i, axis in enumerate(axes)},
            "arm": (TEXT, [cell.arm for (cell, _), _ in runs]),
            "class": (TEXT, [class_name for (_, class_name), _ in runs]),
            "seed": (WHOLE, [seed for _, seed in runs]),
            **{name: (REAL, [self.values[row][name].get(seed) for row, seed in runs]) for name in of},
        }

    def __str__(self) -> str:
        return f"{self.results.title}\n\n{self.grid()}\n{self.footnote()}"

    def to_json(self) -> dict[str, Any]:
        """The table as plain data: what ``--json`` prints."""
        return {
            "format_version": 1,
            "title": self.results.title,
            "path": str(self.results.path),
            "queue": self.queue,
            "confidence": CONFIDENCE,
            "metrics": [
                {"name": m.name, "unit": m.unit, "definition": m.definition, "source": m.source}
                for m in self.metrics
            ],
            "classes": [
                {
                    "settings": dict(cell.settings),
                    "arm": cell.arm,
                    "class": class_name,
                    "values": {m.name: self._json((cell, class_name), m.name) for m in self.metrics},
                }
                for cell, class_name in self.rows
            ],
        }

    def _json(self, row: Row, metric: str) -> dict[str, Any]:
        est = self.estimate(*row, metric)
        return {
            "mean": est and est.mean,
            "half_width": est and est.half_width,
            "n": est.n if est else 0,
            "by_seed": {str(seed): value for seed, value in self.values[row][metric].items()},
        }


def table_by_class(
    of: Experiment | Results, metrics: str | Sequence[str] | None = None, *, queue: str = EVERY_QUEUE
) -> ClassTable:
    """Compute metrics for every class of traffic, arm and seed.

    Parameters
    ----------
    of
        From :func:`aqmlab.load` or :func:`aqmlab.load_results`.
    metrics
        Names; if not given those of :data:`BY_CLASS`, as far as any class has a value.
    queue
        Where: only classes whose data cross it are there. Each class on its whole way if not given.

    Raises
    ------
    UsageError
        For an unknown metric or queue.
    RecordingError
        If no run has finished, or a recording cannot be read.
    """
    results = Results.of_experiment(of) if isinstance(of, Experiment) else of
    chosen = [find(name) for name in names(metrics) or BY_CLASS]
    plans = {cell: results.runs(cell)[0].plan for cell in results.cells if results.runs(cell)}
    if not plans:
        raise RecordingError(f"`{results.path}` holds no finished run")
    queues = dict.fromkeys(link.name for plan in plans.values() for link in plan.links)
    if queue not in (EVERY_QUEUE, *queues):
        raise unknown("queue", queue, queues)
    rows = tuple((cell, name) for cell, plan in plans.items() for name in classes_at(plan, queue))
    values = {
        (cell, name): {m.name: results.values(m.name, cell, queue=queue, class_name=name) for m in chosen}
        for cell, name in rows
    }
    shown = tuple(
        m
        for m in chosen
        if metrics is not None
        or any(value is not None for of_row in values.values() for value in of_row[m.name].values())
    )
    classes = tuple(dict.fromkeys(name for plan in plans.values() for name in classes_at(plan, queue)))
    return ClassTable(results, queue, classes, shown, rows, values)


def classes_of(results: Results) -> tuple[str, ...]:
    """Names of the classes of traffic in all cells, in the order of the scenario."""
    plans = (results.runs(cell)[0].plan for cell in results.cells if results.runs(cell))
    return tuple(dict.fromkeys(name for plan in plans for name in classes_at(plan)))


def classes_at(plan: Plan, queue: str = EVERY_QUEUE) -> list[str]:
    """Names of the classes of a plan whose data cross a queue."""
    left_out = frozenset[str]() if queue == EVERY_QUEUE else plan.elsewhere(queue)
    return [entry.name for entry in plan.classes if entry.name not in left_out]


__all__ = ["BY_CLASS", "ClassTable", "classes_at", "classes_of", "table_by_class"]
