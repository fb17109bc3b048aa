"""Answers as tables on stdout."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.cli.console import tell_json
from aqmlab.figures import display_unit, estimate_parts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from aqmlab.answers import Table
    from aqmlab.soundness import Check

_NARROW = 100
_PIPE_WIDTH = 160


def tell_answer(results: Table, *, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    """The answer of an experiment and what speaks against believing it, as text or as JSON with ``more``."""
    from aqmlab.results import Results
    from aqmlab.soundness import doubts, examine

    found = Results.of_experiment(results.experiment)
    if as_json:
        told = results.to_json() | {"doubts": [doubt.to_json() for doubt in doubts(found)]}
        tell_json(told | dict(more or {}))
        return
    print_answer(results)
    print_doubts(examine(found))


def print_doubts(checks: Sequence[Check]) -> None:
    """Reasons to distrust the answer, the most serious first; or how many were looked for in vain."""
    from rich.text import Text

    from aqmlab.soundness import ranked

    console = answer_console()
    console.print()
    found = ranked(checks)
    if not found:
        console.print(f"no doubts: {len(checks)} checks passed", style="dim", markup=False)
        return
    table = plain_table("doubts", "")
    for doubt in found:
        style = {"serious": "bold red", "warning": "yellow", "note": "dim"}[doubt.severity]
        table.add_row(Text(doubt.severity, style=style), Text(f"{doubt.sentence}: {doubt.remedy}"))
    console.print(table)


def print_answer(results: Table) -> None:
    """Arms by metrics; metrics by arms where the lines would get too long."""
    from rich.text import Text

    from aqmlab.reports.answer import answer

    console = answer_console()
    experiment = results.experiment
    console.print(f"{experiment.title}", style="bold", markup=False)
    if experiment.question:
        console.print(experiment.question, markup=False)
    console.print()
    table = plain_table()
    shown = [m for m in results.metrics if any(results.estimate(arm, m.name) for arm in results.arms)]
    table.add_column("", no_wrap=True)
    for arm in results.arms:
        table.add_column(Text(arm), justify="right", no_wrap=console.width >= _NARROW)
    for metric in shown:
        unit = display_unit(metric.unit)
        cells = []
        for arm in results.arms:
            mean, half = estimate_parts(results.estimate(arm, metric.name), metric.unit)
            seeds = results.defined_in(arm, metric.name)
            cells.append((f"{mean} ±{half}" if half else mean) + (f" ({seeds})" if seeds else ""))
        table.add_row(Text(f"{metric.label} [{unit}]" if unit else metric.label), *cells)
    console.print(table)
    console.print(_footnote(results), style="dim", markup=False)
    if {"queueing_delay_p95_s", "goodput_bps", "drop_percent"} <= set(results.values[results.arms[0]]):
        console.print()
        console.print(answer(results), markup=False)


def _footnote(results: Table) -> str:
    seeds = results.experiment.finished_seeds
    where = results.where_text()
    missing = len(results.experiment.missing)
    lost = f"; {missing} {'run is' if missing == 1 else 'runs are'} missing" if missing else ""
    if len(seeds) == 1:
        return f"{where}; one run (seed {seeds[0]}): no interval{lost}"
    chance = f"; {note}" if (note := results.chance_note()) else ""
    seen = f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})"
    return f"{where}; mean ± 95 % t interval over {seen}{lost}{chance}"


def plain_table(*columns: str) -> RichTable:
    """A table with a line under its head and none else."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    return table


def answer_console() -> Console:
    """Where answers are printed: stdout."""
    from rich.console import Console

    # A pipe has no width: nothing that a program reads should be folded to a terminal's 80 columns.
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False)
