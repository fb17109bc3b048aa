"""Answers as tables on stdout."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.cli.console import tell_json
from aqmlab.grid import Column, Grid, Span, text_width

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.answers import Table
    from aqmlab.soundness import Check

_ENDLESS = 1_000_000
"""Columns of an output that has no width."""


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
    from aqmlab.soundness import ranked

    console = answer_console()
    console.print()
    found = ranked(checks)
    if not found:
        console.print(f"no doubts: {len(checks)} checks passed", style="dim", markup=False)
        return
    table = Grid("doubts", Column("", prose=True))
    for doubt in found:
        style = {"serious": "bold red", "warning": "yellow", "note": "dim"}[doubt.severity]
        table.add(Span(doubt.severity, style), f"{doubt.sentence}: {doubt.remedy}")
    print_grid(console, table)


def print_answer(results: Table) -> None:
    """Arms by metrics; metrics by arms where the lines would get too long."""
    from aqmlab.faithfulness import verdicts
    from aqmlab.reports.answer import answer

    console = answer_console()
    experiment = results.experiment
    console.print(f"{experiment.title}", style="bold", markup=False)
    if experiment.question:
        console.print(experiment.question, markup=False)
    console.print()
    print_grid(console, results.grid())
    console.print(results.footnote(), style="dim", markup=False)
    asked = {"queueing_delay_p95_s", "goodput_bps", "drop_percent"} <= set(results.values[results.arms[0]])
    # No sentence draws a conclusion from figures that are not to be used.
    if asked and all(verdict.faithful for verdict in verdicts(experiment.runs)):
        console.print()
        console.print(answer(results), markup=False)


def print_grid(console: Console, table: Grid) -> None:
    """Print a table as wide as there is room."""
    from rich.text import Text

    for line in table.lines(None if console.width == _ENDLESS else console.width):
        text = Text.assemble(*((span.text, span.style) for span in line))
        console.print(text, no_wrap=True, overflow="ignore", crop=False)


def answer_console() -> Console:
    """Where answers are printed: stdout, as wide as the terminal or ``COLUMNS``; elsewhere without end."""
    from rich.console import Console

    return Console(file=sys.stdout, width=text_width() or _ENDLESS, highlight=False)
