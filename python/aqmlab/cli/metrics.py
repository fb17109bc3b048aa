"""`aqmlab metrics`: the metrics of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import tell_json
from aqmlab.cli.options import AsJson

BETTER = {"less": "lower", "more": "higher"}
"""The words for the direction in which values are better."""


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show only this metric, with its formula, source and parameters.",
            show_default=False,
            autocompletion=completion.metrics,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the metrics, one per line: name, unit, which direction is better, scope, parameters, definition.

    With a name, also shows the formula and the recorded table from which it is computed.

    In claims, tables and figures, braces select a queue, a class or a part of the run, and set parameters:
    `loss_bins_percent{queue=last, window=20s-40s, bin=100ms}`.
    """
    from aqmlab.api import metric_list, metric_show

    answer = metric_list() if name is None else metric_show(name)
    if as_json:
        tell_json(answer)
    elif isinstance(answer, list):
        _print_list(answer)
    else:
        _print_one(answer)


def _print_list(entries: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per metric if the output is wide enough, as it always is for a program."""
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.text.tables import Column, Grid

    prose = (Column(head, prose=True) for head in ("scope", "parameters", "definition"))
    table = Grid("name", "unit", "better", *prose)
    for entry in entries:
        table.add(*_row(entry))
    print_grid(answer_console(), table)


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    parameters = ", ".join(parameter["name"] for parameter in entry["parameters"])
    better = BETTER.get(entry["better"], "")
    return (
        entry["name"],
        entry["unit"],
        better,
        ", ".join(entry["asked_of"]),
        parameters,
        entry["definition"],
    )


def _print_one(entry: Mapping[str, Any]) -> None:
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.text.numbers import NO_VALUE
    from aqmlab.text.tables import Column, Grid

    console = answer_console()
    unit = f" [{entry['unit']}]" if entry["unit"] else ""
    console.print(f"{entry['name']}: {entry['label']}{unit}", style="bold", markup=False)
    for line in (
        f"{entry['definition']}.",
        f"Source: {entry['source']}.",
        f"Scope: {', '.join(entry['asked_of']) or 'the whole run only'}.",
        f"Formula: {entry['formula']} (over {entry['over']}).",
        f"{BETTER[entry['better']].capitalize()} is better." if entry["better"] else "",
        "Computed from samples, run by run." if entry["from_samples"] else "",
    ):
        if line:
            console.print(line, markup=False)
    if entry["parameters"]:
        console.print()
        table = Grid("parameter", "unit", "default", Column("what it is", prose=True))
        for parameter in entry["parameters"]:
            default = NO_VALUE if parameter["default"] is None else f"{parameter['default']:g}"
            table.add(parameter["name"], parameter["unit"] or NO_VALUE, default, parameter["definition"])
        print_grid(console, table)
