"""The output of the commands about disciplines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.cli.tables import answer_console, print_grid
from aqmlab.disciplines.contract import smallest_finding
from aqmlab.text.numbers import NO_VALUE
from aqmlab.text.tables import Column, Grid

if TYPE_CHECKING:
    from rich.console import Console


def print_disciplines(entries: Sequence[Mapping[str, Any]]) -> None:
    """Print the catalogue."""
    heads = ("title", "what it does", "decides at", "maturity")
    table = Grid("name", *(Column(head, prose=True) for head in heads))
    for entry in entries:
        table.add(*(entry[key] for key in ("name", "title", "summary", "decides", "maturity")))
    print_grid(answer_console(), table)


def print_discipline(entry: Mapping[str, Any]) -> None:
    """Print one discipline: summary, parameters with their meanings, presets."""
    console = answer_console()
    console.print(f"{entry['name']}: {entry['title']}", style="bold", markup=False)
    console.print(f"{entry['summary']}. Decides at {entry['decides']}; {entry['maturity']}.", markup=False)
    console.print()
    prose = [Column(head, prose=True) for head in ("values", "unit", "default", "source", "also called")]
    table = Grid("parameter", *prose)
    for param in entry["params"]:
        aliases = ", ".join(f"{alias['name']} ({alias['of']})" for alias in param["aliases"])
        cells = (param["name"], param["values"], param["unit"], param["default"], param["source"], aliases)
        table.add(*(cell or NO_VALUE for cell in cells))
    print_grid(console, table)
    console.print()
    for param in entry["params"]:
        console.print(f"{param['name']}: {param['help']}", markup=False)
        for alias in param["aliases"]:
            if alias["meaning"]:
                console.print(f"  {alias['name']} as in {alias['of']}: {alias['meaning']}", markup=False)
    if entry["presets"]:
        console.print()
        _print_presets(console, entry)


def _print_presets(console: Console, entry: Mapping[str, Any]) -> None:
    defaults = {param["name"]: param["default"] for param in entry["params"]}
    table = Grid("preset", *(Column(head, prose=True) for head in ("stands for", "sets", "to", "instead of")))
    for preset in entry["presets"]:
        heads = [preset["name"], preset["title"]]
        for name, value in preset["values"].items() or [("nothing: the same as the defaults", "")]:
            table.add(*heads, name, value, defaults.get(name, ""))
            heads = ["", ""]
    print_grid(console, table)


def print_checks(answer: Mapping[str, Any]) -> None:
    """Print how many checks were made, and what they found."""
    console = answer_console()
    entries = answer["disciplines"]
    scripts = sum(entry["scripts"] for entry in entries)
    console.print(
        f"contract: {scripts} scripts, seeds from {answer['first_seed']} on", style="bold", markup=False
    )
    console.print()
    table = Grid("", *(Column(entry["name"], right=True) for entry in entries), turns=True)
    table.add("presets and words", *(str(len(entry["variants"])) for entry in entries))
    table.add("scripts", *(str(entry["scripts"]) for entry in entries))
    for number, item in enumerate(answer["items"], start=1):
        counts = (str(entry["checks"][item["name"]]) for entry in entries)
        table.add(f"{number} {item['name']}", *counts)
    table.add("", *("fails" if entry["findings"] else "passes" for entry in entries))
    print_grid(console, table)
    console.print()
    for number, item in enumerate(answer["items"], start=1):
        checked = any(entry["checks"][item["name"]] for entry in entries)
        remark = "" if checked else "; none occurred"
        console.print(f"{number} {item['name']}: {item['counts']}{remark}", style="dim", markup=False)
    for entry in entries:
        _print_finding(console, entry)


def _print_finding(console: Console, entry: Mapping[str, Any]) -> None:
    """Print the smallest counterexample of a discipline, if there is one, and how to reproduce it."""
    finding = smallest_finding(entry)
    if finding is None:
        return
    console.print()
    place = f"{entry['name']}, {finding['variant']}, seed {finding['seed']}"
    others = len(entry["findings"]) - 1
    more = f" (and with {others} more {'setting' if others == 1 else 'settings'})" if others else ""
    console.print(f"{place}: {finding['item']}{more}", style="bold red", markup=False)
    console.print(finding["what"], markup=False)
    for number, operation in enumerate(finding["script"]):
        here = "  <- here" if number == finding["operation"] else ""
        console.print(f"{number:5}  {operation}{here}", markup=False)
    again = f"aqmlab aqm check {entry['name']} --seeds 1 --seed {finding['seed']}"
    console.print(f"again: {again}", markup=False)
