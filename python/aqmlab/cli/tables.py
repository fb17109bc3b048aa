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
    of_whom = "" if results.class_name == "*" else f", class {results.class_name}"
    where = f"queue {results.queue}{of_whom}"
    missing = len(results.experiment.missing)
    lost = f"; {missing} {'run is' if missing == 1 else 'runs are'} missing" if missing else ""
    if len(seeds) == 1:
        return f"{where}; one run (seed {seeds[0]}): no interval{lost}"
    chance = f"; {note}" if (note := results.chance_note()) else ""
    seen = f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]})"
    return f"{where}; mean ± 95 % t interval over {seen}{lost}{chance}"


def print_scenario(answer: Mapping[str, Any], arms: Sequence[str]) -> None:
    """Every value of the arms, with origin and source; of further arms only what differs from the first."""
    from rich.text import Text

    from aqmlab.errors import UsageError

    console = answer_console()
    names = [arm["name"] for arm in answer["arms"]]
    for arm in arms:
        if arm not in names:
            raise UsageError(f"there is no arm `{arm}`; there are {', '.join(f'`{name}`' for name in names)}")
    chosen = [arm for arm in answer["arms"] if not arms or arm["name"] in arms]
    console.print(answer["title"], style="bold", markup=False)
    if answer["question"]:
        console.print(answer["question"], markup=False)
    seeds = answer["seeds"]
    arm_count = "1 arm" if len(names) == 1 else f"{len(names)} arms"
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    console.print(f"{arm_count}, {which}", markup=False)
    _print_axes(console, answer)
    for warning in answer["warnings"]:
        console.print(f"warning: {warning}", style="yellow", markup=False)
    known: set[tuple[str, str, str]] = set()
    for i, arm in enumerate(chosen):
        rows = [(p["path"], p["value"], p["origin"], p["source"]) for p in arm["parameters"]]
        fresh = [row for row in rows if row[:3] not in known]
        known.update(row[:3] for row in rows)
        console.print()
        note = "" if i == 0 else ": what differs from the arms above"
        console.print(f"{arm['name']}{note}", style="bold", markup=False)
        table = plain_table("parameter", "value", "origin", "source")
        for row in fresh:
            table.add_row(*map(Text, row))
        console.print(table)
        console.print(f"plan {arm['digest']}", style="dim", markup=False)


def _print_axes(console: Console, answer: Mapping[str, Any]) -> None:
    """What a sweep varies, and what that comes to."""
    from rich.text import Text

    axes = answer["axes"]
    if not axes:
        return
    count = "1 axis" if len(axes) == 1 else f"{len(axes)} axes"
    console.print(
        f"{count}, {answer['cases']} cases, {answer['runs']} runs; below is the first case", markup=False
    )
    table = plain_table("axis", "sets", "values")
    for axis in axes:
        table.add_row(Text(axis["short"]), Text(", ".join(axis["keys"])), Text(", ".join(axis["labels"])))
    console.print()
    console.print(table)


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
