"""Answers by class of traffic on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.cli.console import tell_json
from aqmlab.cli.sweep_tables import MOST_ROWS
from aqmlab.cli.tables import answer_console, print_doubts, print_grid
from aqmlab.errors import UsageError, unknown
from aqmlab.figures import counted
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE

if TYPE_CHECKING:
    from aqmlab.classes import ClassTable
    from aqmlab.results import Results


def report_by_class(
    path: Path,
    output: Path | None,
    metrics: Sequence[str] | None,
    *,
    by: str,
    queue: str | None,
    class_name: str,
    as_json: bool,
) -> tuple[Path, Results]:
    """Write the report of an experiment or a sweep, and tell its answer by class as a table or as JSON."""
    from aqmlab.classes import table_by_class
    from aqmlab.paths import is_sweep, load_results
    from aqmlab.recording import load
    from aqmlab.reports import write_report, write_sweep_report
    from aqmlab.soundness import doubts

    if by != "class":
        raise unknown("way to make rows", by, ["class"])
    if class_name != EVERY_CLASS:
        raise UsageError("`--by class` shows every class; leave `--class` out")
    results = load_results(path).sound()
    table = table_by_class(results, metrics, queue=EVERY_QUEUE if queue is None else queue)
    if as_json:
        tell_json(table.to_json() | {"doubts": [doubt.to_json() for doubt in doubts(results)]})
    else:
        print_by_class(table)
    if is_sweep(path):
        return write_sweep_report(results, output), results
    return write_report(load(path), output), results


def print_by_class(table: ClassTable) -> None:
    """A row for each cell and class, mean and interval of each metric; then the doubts."""
    from aqmlab.soundness import examine

    console, results = answer_console(), table.results
    console.print(results.title, style="bold", markup=False)
    if results.question:
        console.print(results.question, markup=False)
    console.print()
    print_grid(console, table.grid(MOST_ROWS))
    console.print(table.footnote(), style="dim", markup=False)
    left = len(table.rows) - MOST_ROWS
    if left > 0:
        console.print(f"{counted(left, 'more row')}: `--json` has all", markup=False)
    print_doubts(examine(results))
