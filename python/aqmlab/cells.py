"""The answer of a sweep: cells by metrics, each a mean over seeds with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from aqmlab.answers import HEADLINE
from aqmlab.arguments import names as given_names
from aqmlab.errors import unknown
from aqmlab.figures import counted, estimate_cell, with_unit
from aqmlab.frames import REAL, TEXT, WHOLE, Columns, Framed, column_names
from aqmlab.grid import Column, Grid
from aqmlab.metrics import EVERY_CLASS, Metric, find
from aqmlab.stats import CONFIDENCE, Estimate, estimate, paired_difference

if TYPE_CHECKING:
    from aqmlab.results import Cell, Results

Settings = tuple[tuple[str, str], ...]
"""Axis and label of a case, in the order of the axes."""


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Framed):
    """Metrics by cell; as a data frame a row per run.

    Attributes
    ----------
    results
        Whose they are.
    metrics
        Those that were asked for, or all that any run has a value of.
    values
        By metric, cell and seed; ``None`` where the metric is not defined.
    """

    results: Results
    metrics: tuple[Metric, ...]
    values: Mapping[str, Mapping[Cell, Mapping[int, float | None]]]

    @cached_property
    def cases(self) -> tuple[tuple[Settings, tuple[Cell, ...]], ...]:
        """Each case and its cells, which differ by their arm."""
        return tuple(
            (settings, tuple(cells)) for settings, cells in groupby(self.results.cells, lambda c: c.settings)
        )

    @cached_property
    def _numbers(self) -> Mapping[Cell, int]:
        return {cell: i for i, cell in enumerate(self.results.cells)}

    def number(self, cell: Cell) -> int:
        """Place of a cell among all."""
        return self._numbers[cell]

    def estimate(self, metric: str, cell: Cell) -> Estimate | None:
        """Mean over the seeds with its interval.

        Raises
        ------
        UsageError
            For a metric or a cell that is not there, with the nearest name.
        """
        return estimate(self._of(metric, cell).values())

    def _of(self, metric: str, cell: Cell) -> Mapping[int, float | None]:
        if metric not in self.values:
            find(metric)
            raise unknown("metric among these", metric, self.values)
        if cell not in self.values[metric]:
            raise unknown("cell", str(cell), map(str, self.results.cells))
        return self.values[metric][cell]

    def difference(self, metric: str, cell: Cell, other: Cell) -> Estimate | None:
        """Mean of ``cell - other`` over the seeds that both have run."""
        return paired_difference(self._of(metric, cell), self._of(metric, other))

    def defined_in(self, metric: str, cell: Cell) -> str:
        """``"3 of 10"`` where only some of the runs have the figure: those without it may be the bad ones."""
        values = self._of(metric, cell).values()
        count = sum(value is not None for value in values)
        return f"{count} of {len(values)}" if 0 < count < len(values) else ""

    def __repr__(self) -> str:
        return f"<Cells: {counted(len(self.metrics), 'metric')} of {self.results!r}>"

    def __str__(self) -> str:
        return f"{self.results.title}\n\n{self.grid()}"

    def _repr_html_(self) -> str:
        from aqmlab.notebook import block, title

        return block(title(self.results.title), self.grid().html())

    def _frame_columns(self) -> Columns:
        runs = [(cell, run.seed) for cell in self.results.cells for run in self.results.runs(cell)]
        names = [metric.name for metric in self.metrics]
        axes = column_names([axis.short for axis in self.results.axes], ["arm", "seed", *names])
        return {
            **{axis: (TEXT, [cell.settings[i][1] for cell, _ in runs]) for i, axis in enumerate(axes)},
            "arm": (TEXT, [cell.arm for cell, _ in runs]),
            "seed": (WHOLE, [seed for _, seed in runs]),
            **{name: (REAL, [self.values[name][cell].get(seed) for cell, seed in runs]) for name in names},
        }

    def grid(self, rows: int | None = None) -> Grid:
        """The answer as text: a row per cell, the first ``rows`` of them if given."""
        axes = [axis.short for axis in self.results.axes]
        columns = (Column(with_unit(m.label, m.unit), right=True) for m in self.metrics)
        grid = Grid(*axes, "arm", *columns, keys=len(axes) + 1)
        for cell in self.results.cells[:rows]:
            labels = (label for _, label in cell.settings)
            figures = (
                estimate_cell(self.estimate(m.name, cell), m.unit, self.defined_in(m.name, cell))
                for m in self.metrics
            )
            grid.add(*labels, cell.arm, *figures)
        return grid

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data: what ``--json`` prints."""
        return {
            "format_version": 1,
            "title": self.results.title,
            "path": str(self.results.path),
            "confidence": CONFIDENCE,
            "metrics": [
                {"name": m.name, "unit": m.unit, "definition": m.definition, "source": m.source}
                for m in self.metrics
            ],
            "cells": [
                {
                    "settings": dict(cell.settings),
                    "arm": cell.arm,
                    "values": {m.name: self._json(m.name, cell) for m in self.metrics},
                }
                for cell in self.results.cells
            ],
            "missing_runs": [
                {"settings": dict(cell.settings), "arm": cell.arm, "seed": seed, "reason": reason}
                for cell, seed, reason, _ in self.results.missing
            ],
        }

    def _json(self, metric: str, cell: Cell) -> dict[str, Any]:
        est = self.estimate(metric, cell)
        return {
            "mean": est and est.mean,
            "half_width": est and est.half_width,
            "n": est.n if est else 0,
            "by_seed": {str(seed): value for seed, value in self.values[metric][cell].items()},
        }


def cells_of(
    results: Results,
    metrics: str | Sequence[str] | None = None,
    *,
    queue: str | None = None,
    class_name: str = EVERY_CLASS,
) -> Cells:
    """Compute metrics for every cell and seed.

    Parameters
    ----------
    results
        From :func:`aqmlab.load_results`.
    metrics
        Names; if not given those of :data:`aqmlab.answers.HEADLINE` and the scenario's own, as far as any run
        has a value.
    queue, class_name
        Where and of whom; the queue that each cell is judged by, and everybody, if not given.

    Raises
    ------
    UsageError
        For an unknown metric, queue or class.
    RecordingError
        If a recording cannot be read.
    """
    given = given_names(metrics)
    names = dict.fromkeys((*HEADLINE, *results.metrics) if given is None else given)
    chosen = [find(name) for name in names]
    values = {
        m.name: {
            cell: results.values(m.name, cell, queue=queue, class_name=class_name) for cell in results.cells
        }
        for m in chosen
    }
    shown = tuple(m for m in chosen if metrics is not None or _is_there(values[m.name]))
    return Cells(results, shown, values)


def _is_there(of_cells: Mapping[Cell, Mapping[int, float | None]]) -> bool:
    return any(value is not None for of_seed in of_cells.values() for value in of_seed.values())
