"""The numbers of figures of many runs as rows: one per run and metric, or one per flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from aqmlab.figures.boxes_and_bars import flow_goodputs
from aqmlab.figures.panel_grid import CLASSES, FLOWS, GOODPUT, PanelGrid, panel_grid
from aqmlab.figures.view import View
from aqmlab.metrics import Metric, Scope
from aqmlab.results.cells import Cell
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_unit, display_value


def value_rows(results: Results, view: View, queue: str | None) -> Iterator[tuple[Any, ...]]:
    """Return a figure of many runs as numbers: one row per run and metric, or one row per flow."""
    axes = tuple(axis.name for axis in results.axes)
    if view.over == FLOWS:
        yield (*axes, "arm", "flow", "goodput_mean_mbit_s", "n")
        grid = panel_grid(results, view, queue, along=False, metrics=(GOODPUT,))
        for cell in _shown(results, grid):
            for (name, index), values in flow_goodputs(results.measured(cell), queue).items():
                yield (*_labels(cell), cell.arm, f"{name} {index}", f"{np.mean(values):.9g}", len(values))
        return
    if view.over == CLASSES:
        yield (*axes, "arm", "class", "metric", "unit", "seed", "value")
        grid = panel_grid(results, view, queue, along=False, metrics=(GOODPUT,))
        for metric, cell, name in product(grid.metrics, _shown(results, grid), classes_of(results)):
            found = results.values(metric.name, cell, Scope(queue, name))
            for seed, shown in _seeds(found, metric):
                yield (*_labels(cell), cell.arm, name, metric.name, display_unit(metric.unit), seed, shown)
        return
    yield (*axes, "arm", "metric", "unit", "seed", "value")
    grid = panel_grid(results, view, queue)
    for metric, cell in product(grid.metrics, _shown(results, grid)):
        for seed, shown in _seeds(grid.answer.by_seed(cell, metric.name), metric):
            yield (*_labels(cell), cell.arm, metric.name, display_unit(metric.unit), seed, shown)


def _seeds(values: Mapping[int, float | None], metric: Metric) -> Iterator[tuple[int, str]]:
    """Yield each seed with its value as text, in the displayed unit; the text is empty if undefined."""
    for seed, value in values.items():
        yield seed, "" if value is None else f"{display_value(value, metric.unit):.9g}"


def _shown(results: Results, grid: PanelGrid) -> list[Cell]:
    held = grid.held.items()
    return [cell for cell in results.cells if cell.arm in grid.arms and held <= dict(cell.settings).items()]


def _labels(cell: Cell) -> tuple[str, ...]:
    return tuple(label for _, label in cell.settings)
