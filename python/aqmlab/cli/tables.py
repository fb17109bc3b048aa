"""Answers as tables on stdout: for a run, a sweep or a live run, or by class of traffic."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from aqmlab.cli.console import tell_json
from aqmlab.cli.streams import can_show, spelled
from aqmlab.text.numbers import counted
from aqmlab.text.tables import Column, Grid, Span, text_width

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.results.answers import Answer
    from aqmlab.results.results import Results
    from aqmlab.soundness import Check

MOST_ROWS = 60
"""Largest number of printed rows."""
SHORT = ("goodput_bps", "queueing_delay_mean_s", "queueing_delay_p99_s", "drop_percent")
"""The default metrics of a sweep."""

_RULE = "─"
_ENDLESS = 1_000_000
"""Number of columns assumed for an output that has no width."""


def short_answer(results: Results) -> Answer:
    """Return the default answer for results."""
    from aqmlab.results.answers import answer

    return answer(results, (results.metrics or SHORT) if results.axes else None)


def tell_losses(results: Results, *, as_json: bool) -> None:
    """Print losses and marks by kind of packet, as text or as JSON."""
    from aqmlab.results.losses import losses_by_kind, losses_grid, losses_json

    rows = tuple(losses_by_kind(results))
    if as_json:
        tell_json({"title": results.title, "path": str(results.path), "losses": losses_json(rows)})
        return
    console = answer_console()
    console.print(results.title, style="bold", markup=False)
    console.print()
    if not rows:
        console.print(
            "no packet was dropped or marked, or the recordings do not state the packets' kinds", markup=False
        )
        return
    print_grid(console, losses_grid(results, rows))
    note = (
        "each class at each queue that dropped or marked its packets; mean over the seeds ± 95 % t interval"
    )
    console.print(note, style="dim", markup=False, soft_wrap=True)


def print_left_out(results: Results) -> None:
    """Print the cases of a sweep that cannot run, with the reasons; print nothing if there are none."""
    if not results.left_out:
        return
    console = answer_console()
    table = Grid(
        *(axis.short for axis in results.axes), Column("left out", prose=True), keys=len(results.axes)
    )
    for case in results.left_out[:MOST_ROWS]:
        table.add(*case.labels, case.reason)
    console.print()
    print_grid(console, table)
    if (left := len(results.left_out) - MOST_ROWS) > 0:
        console.print(f"{counted(left, 'more case')}: `left_out` in `sweep.json` lists all", markup=False)


def print_doubts(checks: Sequence[Check]) -> None:
    """Print reasons to distrust the answer, the most serious first, or how many checks passed."""
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


def print_answer(found: Answer) -> None:
    """Print title and question, the table, what it covers, and the answer in words."""
    console, results = answer_console(), found.results
    console.print(results.title, style="bold", markup=False)
    if results.question:
        console.print(results.question, markup=False)
    console.print()
    print_grid(console, found.grid(MOST_ROWS))
    console.print(found.footnote(), style="dim", markup=False)
    if results.axes or found.by:
        left = len(found.rows) - MOST_ROWS
        if left > 0 and found.by:
            console.print(f"{counted(left, 'more row')}: `--json` prints all", markup=False)
        elif left > 0:
            from aqmlab.sweeps.tables import ANSWER_FILE

            console.print(f"{counted(left, 'more cell')} in {results.path / ANSWER_FILE}", markup=False)
    if not found.by and (said := _conclusion(found)):
        console.print()
        console.print(said, markup=False)


def _conclusion(found: Answer) -> str:
    """Answer the question in words; empty if a live run is not faithful or other metrics were named."""
    from aqmlab.figures.trade_off import TradeOff
    from aqmlab.recordings.faithfulness import verdicts
    from aqmlab.reports.answer import in_words

    if not all(verdict.faithful for verdict in verdicts(found.results.runs)):
        return ""
    trade_off = TradeOff(found)
    question, shown = trade_off.question, {metric.name for metric in found.metrics}
    asked = {metric.name for metric in question.asked or (question.delay, question.price)}
    return in_words(trade_off) if asked <= shown else ""


def print_grid(console: Console, table: Grid) -> None:
    """Print a table as wide as the output permits."""
    from rich.text import Text

    shown = table if can_show(sys.stdout, _RULE) else table.spelled(partial(spelled, sys.stdout))
    for line in shown.lines(None if console.width == _ENDLESS else console.width):
        text = Text.assemble(*((span.text, span.style) for span in line))
        console.print(text, no_wrap=True, overflow="ignore", crop=False)


def answer_console() -> Console:
    """Return the console for answers: stdout, as wide as the terminal or ``COLUMNS``, or else unlimited."""
    from rich.console import Console

    return Console(file=sys.stdout, width=text_width() or _ENDLESS, highlight=False)
