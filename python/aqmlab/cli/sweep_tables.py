"""Answers over many runs, and by class of traffic, as tables on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.cli.console import tell_json
from aqmlab.cli.progress import duration_text
from aqmlab.cli.tables import answer_console, print_doubts, print_grid
from aqmlab.errors import UsageError, unknown
from aqmlab.figures import counted
from aqmlab.grid import Column, Grid
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE

if TYPE_CHECKING:
    from aqmlab.cells import Cells
    from aqmlab.classes import ClassTable
    from aqmlab.results import Results
    from aqmlab.sweeps.forecast import Forecast

MOST_ROWS = 60
SHORT = ("goodput_bps", "queueing_delay_mean_s", "queueing_delay_p99_s", "drop_percent")
"""What is printed of a sweep whose scenario names no metrics."""


def print_sweep(results: Results, cells: Cells | None = None) -> None:
    """A row a cell: mean and interval of the scenario's metrics, or of :data:`SHORT`; then the doubts.

    Parameters
    ----------
    results
        Of the sweep.
    cells
        Other metrics of it.
    """
    from aqmlab.cells import cells_of
    from aqmlab.soundness import examine
    from aqmlab.sweeps.tables import ANSWER_FILE

    console = answer_console()
    console.print(results.title, style="bold", markup=False)
    if results.question:
        console.print(results.question, markup=False)
    console.print()
    shown = cells or cells_of(results, results.metrics or SHORT)
    print_grid(console, shown.grid(MOST_ROWS))
    console.print(_footnote(results), style="dim", markup=False)
    left = len(results.cells) - MOST_ROWS
    if left > 0:
        console.print(f"{counted(left, 'more cell')} in {results.path / ANSWER_FILE}", markup=False)
    print_doubts(examine(results))


def report_sweep(
    path: Path,
    output: Path | None,
    metrics: Sequence[str] | None,
    *,
    queue: str | None,
    class_name: str,
    as_json: bool,
) -> tuple[Path | None, Results]:
    """Write the report of a sweep, and tell its answer as a table or as JSON; over what can be read."""
    from aqmlab.cells import cells_of
    from aqmlab.errors import UsageError
    from aqmlab.metrics import EVERY_CLASS
    from aqmlab.paths import load_results
    from aqmlab.reports import write_sweep_report
    from aqmlab.soundness import doubts

    parts = [name for name in (class_name, queue) if name not in (None, EVERY_CLASS)]
    if parts and output is not None:
        raise UsageError(
            f"the report of a sweep is of all classes and queues; leave out `{parts[0]}`, or `-o`"
        )
    results = load_results(path).sound()
    if not as_json and metrics is None:
        metrics = results.metrics or SHORT
    cells = cells_of(results, metrics, queue=queue, class_name=class_name)
    file = None if parts else write_sweep_report(results, output)
    if as_json:
        tell_json(cells.to_json() | {"doubts": [doubt.to_json() for doubt in doubts(results)]})
    else:
        print_sweep(results, cells)
    return file, results


def _footnote(results: Results) -> str:
    seeds = results.seeds
    missing = len(results.missing)
    lost = f"; {missing} {'run is' if missing == 1 else 'runs are'} missing" if missing else ""
    cells = counted(len(results.cells), "cell")
    if len(seeds) == 1:
        return f"{cells}; one run each (seed {seeds[0]}): no interval{lost}"
    return f"{cells}; mean ± 95 % t interval over {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}){lost}"


def print_forecast(found: Forecast) -> None:
    """What there is to do, and what it would take."""
    console = answer_console()
    table = Grid("", Column("", prose=True))
    product = " × ".join(
        [counted(found.cases, "case"), counted(found.arms, "arm"), counted(found.seeds, "seed")]
    )
    table.add("sweep", f"{product} = {counted(found.cases * found.arms * found.seeds, 'run')}")
    if found.runs != found.cases * found.arms * found.seeds:
        table.add("asked for", counted(found.runs, "run"))
    table.add("in the store", str(found.present))
    table.add("to do", str(found.runs - found.present))
    if found.wall_s is not None:
        table.add("time", f"about {duration_text(found.wall_s)}")
    if found.bytes is not None:
        table.add("disk", f"about {found.bytes / 1e6:.3g} MB")
    if found.memory_bytes:
        table.add("memory", f"{found.memory_bytes / 1e6:.3g} MB at least")
    print_grid(console, table)
    console.print(found.how, style="dim", markup=False)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """The answer to a query."""
    table = Grid(*columns, keys=0)
    for row in rows:
        table.add(*("" if value is None else str(value) for value in row))
    print_grid(answer_console(), table)


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
