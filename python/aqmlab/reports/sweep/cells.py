"""The figures of every cell of a sweep: what its table and its charts are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from aqmlab.answers import HEADLINE
from aqmlab.metrics import Metric, find
from aqmlab.results import Cell, Results
from aqmlab.stats import Estimate, estimate, paired_difference

Settings = tuple[tuple[str, str], ...]
"""Axis and label of a case, in the order of the axes."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Metrics by cell.

    Attributes
    ----------
    results
        Whose they are.
    metrics
        Those that any run has a value of.
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
        """Mean over the seeds with its interval."""
        return estimate(self.values[metric][cell].values())

    def difference(self, metric: str, cell: Cell, other: Cell) -> Estimate | None:
        """Mean of ``cell - other`` over the seeds that both have run."""
        return paired_difference(self.values[metric][cell], self.values[metric][other])

    def defined_in(self, metric: str, cell: Cell) -> str:
        """``"3 of 10"`` where only some of the runs have the figure: those without it may be the bad ones."""
        values = self.values[metric][cell].values()
        count = sum(value is not None for value in values)
        return f"{count} of {len(values)}" if 0 < count < len(values) else ""


def cells_of(results: Results) -> Cells:
    """The metrics that every table has and those that the scenario asks for, of all cells."""
    metrics = [find(name) for name in dict.fromkeys((*HEADLINE, *results.metrics))]
    values = {m.name: {cell: results.values(m.name, cell) for cell in results.cells} for m in metrics}
    shown = tuple(m for m in metrics if _is_there(values[m.name]))
    return Cells(results, shown, values)


def _is_there(of_cells: Mapping[Cell, Mapping[int, float | None]]) -> bool:
    return any(value is not None for of_seed in of_cells.values() for value in of_seed.values())
