"""The kinds of figures of experiments and sweeps, and the numbers of those of many runs as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from aqmlab.errors import UsageError
from aqmlab.figures.boxes_and_bars import bar, box, flow_goodputs
from aqmlab.figures.cumulative import cumulative_ack, cumulative_rows
from aqmlab.figures.delay_cdf import cdfs
from aqmlab.figures.goodput_delay import trade_off
from aqmlab.figures.goodput_rtt import goodput_rtt, goodput_rtt_rows
from aqmlab.figures.ladder import ladder, ladder_rows
from aqmlab.figures.lines import lines
from aqmlab.figures.maps import difference_maps, heat
from aqmlab.figures.model import Figure
from aqmlab.figures.over_time import series
from aqmlab.figures.panel_grid import CLASSES, FLOWS, GOODPUT, PanelGrid, panel_grid
from aqmlab.figures.response_curves import ccdf_figure, cdf_figure, curve_rows
from aqmlab.figures.response_sizes import quantile_rows, quantiles_figure, scatter_figure, scatter_rows
from aqmlab.figures.senders import cwnd, srtt, trace_rows
from aqmlab.figures.sequence import sequence_rows, time_sequence
from aqmlab.figures.variance_time import variance_time
from aqmlab.figures.view import FigureKind, View
from aqmlab.metrics import Metric, Scope
from aqmlab.metrics.waits import ALL_WAITS, Waits
from aqmlab.results.cells import Cell
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_unit, display_value, listed


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


def _curves(waits: Waits) -> dict[str, FigureKind]:
    rows = partial(curve_rows, waits=waits)
    return {
        f"{waits.key}-cdf": FigureKind(partial(cdf_figure, waits=waits), rows),
        f"{waits.key}-ccdf": FigureKind(partial(ccdf_figure, waits=waits), rows),
    }


def _by_size(waits: Waits) -> dict[str, FigureKind]:
    scatter = FigureKind(partial(scatter_figure, waits=waits), partial(scatter_rows, waits=waits))
    quantiles = FigureKind(partial(quantiles_figure, waits=waits), partial(quantile_rows, waits=waits))
    return {f"{waits.key}-scatter": scatter, f"{waits.key}-quantiles": quantiles}


WAIT_CURVES = {name: kind for waits in ALL_WAITS for name, kind in _curves(waits).items()}
WAIT_KINDS = {
    name: kind for waits in ALL_WAITS for name, kind in {**_curves(waits), **_by_size(waits)}.items()
}
"""The figures of requests and of pages, in experiments and in sweeps."""

COMMON_KINDS: dict[str, FigureKind] = {
    "goodput-delay": FigureKind(trade_off),
    "delay-cdf": FigureKind(cdfs),
    "box": FigureKind(box, value_rows),
    "bar": FigureKind(bar, value_rows),
    **WAIT_KINDS,
}
"""The common figures of experiments and sweeps."""

SWEEP_KINDS: dict[str, FigureKind] = {
    "lines": FigureKind(lines, value_rows),
    "heat": FigureKind(heat, value_rows),
    "differences": FigureKind(difference_maps, value_rows),
    **COMMON_KINDS,
}
"""The figures of a sweep, by their names on the command line."""


def _whole(name: str, figure: Callable[[Results, str], Figure]) -> FigureKind:
    """Return a kind of figure that shows whole experiments: it refuses a choice of flows, arms or times."""

    def make(results: Results, view: View, queue: str) -> Figure:
        if given := view.chosen():
            raise UsageError(f"`{name}` shows the whole experiment; leave out {listed(given)}")
        return figure(results, queue)

    return FigureKind(make)


KINDS: dict[str, FigureKind] = {
    "series": FigureKind(series),
    "goodput-rtt": FigureKind(goodput_rtt, goodput_rtt_rows),
    "variance-time": _whole("variance-time", variance_time),
    "cwnd": FigureKind(cwnd, trace_rows),
    "srtt": FigureKind(srtt, trace_rows),
    "time-sequence": FigureKind(time_sequence, sequence_rows),
    "cumulative-ack": FigureKind(cumulative_ack, cumulative_rows),
    "ladder": FigureKind(ladder, ladder_rows),
    **COMMON_KINDS,
}
"""The figures of an experiment, by their names on the command line."""
