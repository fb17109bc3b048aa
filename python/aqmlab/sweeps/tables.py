"""The tables of a sweep as CSV.

``results.csv`` has a row a run, ``answer.csv`` a row a cell, ``classes.csv`` a row a cell and class of
traffic.

Their bytes depend on the runs alone: rows are in the order of the cells and seeds, numbers are the shortest
decimals that mean the same double.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from aqmlab.answers import HEADLINE
from aqmlab.classes import ClassTable, classes_of, table_by_class
from aqmlab.files import write_whole
from aqmlab.metrics import Metric, all_metrics, find
from aqmlab.results import Cell, Results
from aqmlab.stats import Estimate, estimate
from aqmlab.sweeps.store import writing

RESULTS_FILE = "results.csv"
ANSWER_FILE = "answer.csv"
CLASSES_FILE = "classes.csv"


def columns(results: Results) -> tuple[Metric, ...]:
    """The metrics of the tables: those that are counted, and what the scenario asks for besides.

    One that is computed from samples takes longer than many a run.
    """
    counted = (m.name for m in all_metrics() if not m.from_samples)
    return tuple(map(find, dict.fromkeys([*HEADLINE, *counted, *results.metrics])))


def results_csv(results: Results) -> str:
    """A row for each finished run: swept values, arm, seed, metrics; empty where one is not defined."""
    metrics = columns(results)
    rows: list[list[str]] = [[*_axes(results), "arm", "seed", *(metric.name for metric in metrics)]]
    for cell in results.cells:
        values = [results.values(metric.name, cell) for metric in metrics]
        for run in results.runs(cell):
            rows.append([*_labels(cell), str(run.seed), *(_number(of[run.seed]) for of in values)])
    return _csv(rows)


def answer_csv(results: Results) -> str:
    """A row for each cell: swept values, arm, and of each metric mean, half-width of its interval, and n."""
    metrics = columns(results)
    head = [f"{m.name}{part}" for m in metrics for part in ("", "_half_width", "_n")]
    rows: list[list[str]] = [[*_axes(results), "arm", *head]]
    for cell in results.cells:
        estimates = (estimate(results.values(metric.name, cell).values()) for metric in metrics)
        rows.append([*_labels(cell), *(text for found in estimates for text in _estimate(found))])
    return _csv(rows)


def classes_csv(table: ClassTable) -> str:
    """A row for each cell and class of traffic, otherwise as :func:`answer_csv`."""
    head = [f"{m.name}{part}" for m in table.metrics for part in ("", "_half_width", "_n")]
    rows: list[list[str]] = [[*_axes(table.results), "arm", "class", *head]]
    for cell, class_name in table.rows:
        estimates = (table.estimate(cell, class_name, metric.name) for metric in table.metrics)
        rows.append([*_labels(cell), class_name, *(text for found in estimates for text in _estimate(found))])
    return _csv(rows)


def write_tables(results: Results, directory: Path) -> None:
    """Write the tables; that of classes where there are several.

    Raises
    ------
    HostError
        If they cannot be written.
    RecordingError
        If a recording cannot be read.
    """
    tables = {RESULTS_FILE: results_csv(results), ANSWER_FILE: answer_csv(results)}
    if len(classes_of(results)) > 1:
        tables[CLASSES_FILE] = classes_csv(table_by_class(results))
    with writing(directory.parent.parent):
        for name, content in tables.items():
            write_whole(directory / name, content)


def _axes(results: Results) -> list[str]:
    taken = ("arm", "seed")
    return [axis.name if axis.short in taken else axis.short for axis in results.axes]


def _labels(cell: Cell) -> list[str]:
    return [*(label for _, label in cell.settings), cell.arm]


def _number(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _estimate(found: Estimate | None) -> Sequence[str]:
    if found is None:
        return ("", "", "0")
    return (_number(found.mean), _number(found.half_width), str(found.n))


def _csv(rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


__all__ = [
    "ANSWER_FILE",
    "CLASSES_FILE",
    "RESULTS_FILE",
    "answer_csv",
    "classes_csv",
    "columns",
    "results_csv",
    "write_tables",
]
