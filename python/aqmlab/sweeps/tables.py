"""The tables of a sweep as CSV.

``results.csv`` has a row per run, ``answer.csv`` a row per cell, ``classes.csv`` a row per cell and class,
``queues.csv`` a row per cell and queue inside its queue.

Their bytes depend only on the runs: rows are in the order of the cells and seeds, and numbers are the
shortest decimals that denote the same double.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from aqmlab.metrics import Metric, all_metrics, find
from aqmlab.results.answers import HEADLINE, Answer, answer, has_inner_queues
from aqmlab.results.cells import Cell
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.stats import Estimate
from aqmlab.system.files import write_whole

RESULTS_FILE = "results.csv"
ANSWER_FILE = "answer.csv"
CLASSES_FILE = "classes.csv"
QUEUES_FILE = "queues.csv"


def columns(results: Results) -> tuple[Metric, ...]:
    """The metrics of the tables: those that are computed from counters, and those that the scenario requests.

    Computing a metric from samples may take longer than the run did.
    """
    counted = (m.name for m in all_metrics() if not m.from_samples)
    return tuple(map(find, dict.fromkeys([*HEADLINE, *counted, *results.metrics])))


def results_csv(found: Answer) -> str:
    """Return CSV with a row per finished run: swept values, arm, seed and metrics (empty if undefined)."""
    rows: list[list[str]] = [[*_axes(found.results), "arm", "seed", *(m.name for m in found.metrics)]]
    for row in found.rows:
        for run in found.results.runs_of(row.cell):
            values = (found.values[row][metric.name][run.seed] for metric in found.metrics)
            rows.append([*_labels(row.cell), str(run.seed), *map(_number, values)])
    return _csv(rows)


def answer_csv(found: Answer) -> str:
    """Return CSV with a row per cell: swept values, arm, and the mean, half-width and n of each metric.

    For an answer by class or by queue, there is a row per part of a cell, with the metrics for which some run
    has a value.
    """
    metrics = found.shown if found.by else found.metrics
    head = [f"{m.name}{part}" for m in metrics for part in ("", "_half_width", "_n")]
    rows: list[list[str]] = [[*_axes(found.results), "arm", *([found.by] if found.by else []), *head]]
    for row in found.rows:
        part = [row.part] if found.by else []
        estimates = (found.estimate(row.cell, metric.name, row.part) for metric in metrics)
        rows.append([*_labels(row.cell), *part, *(text for est in estimates for text in _estimate(est))])
    return _csv(rows)


def write_tables(results: Results, directory: Path) -> None:
    """Write the tables; those of classes and inner queues only if there are several, or any.

    Raises
    ------
    OSError
        If the tables cannot be written.
    RecordingError
        If a recording cannot be read.
    """
    found = answer(results, [metric.name for metric in columns(results)])
    tables = {RESULTS_FILE: results_csv(found), ANSWER_FILE: answer_csv(found)}
    if len(classes_of(results)) > 1:
        tables[CLASSES_FILE] = answer_csv(answer(results, by="class"))
    if has_inner_queues(results):
        tables[QUEUES_FILE] = answer_csv(answer(results, by="queue"))
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
