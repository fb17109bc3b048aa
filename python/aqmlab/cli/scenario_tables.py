"""The output of `aqmlab show`: the parts of a scenario, then every value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.cli.tables import answer_console, print_grid
from aqmlab.text.tables import Column, Grid, Span

if TYPE_CHECKING:
    from rich.console import Console


def print_scenario(answer: Mapping[str, Any], arms: Sequence[str]) -> None:
    """Print every value with its origin and source; for later arms, only values that earlier arms lack."""
    from aqmlab.errors import unknown

    console = answer_console()
    names = [arm["name"] for arm in answer["arms"]]
    for arm in arms:
        if arm not in names:
            raise unknown("arm", arm, names)
    _print_head(console, answer)
    for warning in answer["warnings"]:
        console.print(f"warning: {warning}", style="yellow", markup=False)
    known: set[tuple[str, str, str]] = set()
    for i, arm in enumerate(arm for arm in answer["arms"] if not arms or arm["name"] in arms):
        rows = [(p["path"], p["value"], p["origin"], p["source"]) for p in arm["parameters"]]
        fresh = [row for row in rows if row[:3] not in known]
        known.update(row[:3] for row in rows)
        console.print()
        note = "" if i == 0 else ": what differs from the arms above"
        console.print(f"{arm['name']}{note}", style="bold", markup=False)
        table = Grid("parameter", *(Column(head, prose=True) for head in ("value", "origin", "source")))
        for row in fresh:
            table.add(*row)
        print_grid(console, table)
        console.print(f"plan {arm['digest']}", style="dim", markup=False)


def _print_head(console: Console, answer: Mapping[str, Any]) -> None:
    """Print the names that claims and options may use, and the number of runs."""
    console.print(answer["title"], style="bold", markup=False)
    if answer["question"]:
        console.print(answer["question"], markup=False)
    console.print()
    table = Grid("", Column("", prose=True))
    for what, of in _head(answer):
        table.add(Span(what, "dim"), of)
    print_grid(console, table)
    if not answer["axes"]:
        return
    console.print()
    swept = Grid("axis", Column("sets", prose=True), Column("values", prose=True))
    for axis in answer["axes"]:
        swept.add(axis["short"], ", ".join(axis["keys"]), ", ".join(axis["labels"]))
    print_grid(console, swept)
    console.print()
    console.print("The classes and values shown are those of the first case.", style="dim", markup=False)


def _head(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from aqmlab.recordings.plan import Plan
    from aqmlab.text.numbers import counted

    arms, seeds, cases = answer["arms"], answer["seeds"], answer["cases"]
    plans = [Plan.of(arm["plan"]) for arm in arms]
    classes = {
        of.name: f"{of.name} ({of.members} {of.kind})" for each in reversed(plans) for of in each.classes
    }
    yield "arms", ", ".join(arm["name"] for arm in arms)
    yield "queues", ", ".join(dict.fromkeys(link.name for each in plans for link in each.links))
    yield "classes", ", ".join(classes.values())
    yield "seeds", str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    parts = (counted(len(arms), "arm"), counted(cases, "case"), counted(len(seeds), "seed"))
    yield "runs", f"{answer['runs']}: {', '.join(parts)}"
