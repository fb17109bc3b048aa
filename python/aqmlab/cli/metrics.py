"""`aqmlab metrics`: what can be measured of a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from aqmlab.cli.console import tell_json
from aqmlab.cli.options import AsJson


def _metric_names(incomplete: str) -> list[str]:
    from aqmlab.api import metric_list

    return [entry["name"] for entry in metric_list() if entry["name"].startswith(incomplete)]


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show only this metric, with its source and parameters.",
            show_default=False,
            autocompletion=_metric_names,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the metrics, one per line: name, unit, scope, parameters, definition.

    Claims, tables and figures ask it of a queue, a class or a part of the run in braces, where parameters
    stand too: `loss_bins_percent{queue=last, window=20s-40s, bin=100ms}`.
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
    """A line each, whole for a program that reads them, and cut at the edge of a terminal."""
    heads = ("name", "unit", "asked of", "parameters", "definition")
    rows = [heads, *(_row(entry) for entry in entries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    edge = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(line if edge is None or len(line) <= edge else f"{line[: edge - 1]}…")


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    parameters = ", ".join(parameter["name"] for parameter in entry["parameters"])
    return (entry["name"], entry["unit"], ", ".join(entry["asked_of"]), parameters, entry["definition"])


def _print_one(entry: Mapping[str, Any]) -> None:
    from rich.text import Text

    from aqmlab.cli.tables import answer_console, plain_table
    from aqmlab.figures import NO_VALUE

    console = answer_console()
    unit = f" [{entry['unit']}]" if entry["unit"] else ""
    console.print(f"{entry['name']}: {entry['label']}{unit}", style="bold", markup=False)
    for line in (
        f"{entry['definition']}.",
        f"Source: {entry['source']}.",
        f"Scope: {', '.join(entry['asked_of']) or 'the whole run only'}.",
        {"less": "Lower is better.", "more": "Higher is better."}.get(entry["better"], ""),
        "Computed from samples, run by run." if entry["from_samples"] else "",
    ):
        if line:
            console.print(line, markup=False)
    if entry["parameters"]:
        console.print()
        table = plain_table("parameter", "unit", "default", "what it is")
        for parameter in entry["parameters"]:
            default = NO_VALUE if parameter["default"] is None else f"{parameter['default']:g}"
            cells = (parameter["name"], parameter["unit"] or NO_VALUE, default, parameter["definition"])
            table.add_row(*map(Text, cells))
        console.print(table)


__all__ = ["metrics"]
