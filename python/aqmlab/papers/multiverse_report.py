"""The multiverse of a paper as Markdown and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aqmlab.papers.multiverse import STATUSES, MultiverseTable, Universe
from aqmlab.papers.paper import Paper
from aqmlab.papers.scorecard_text import markdown_table


def multiverse_json(table: MultiverseTable) -> dict[str, Any]:
    """The multiverse as plain data."""
    return {
        "format_version": 1,
        "paper": table.paper.key,
        "findings": [
            {"name": f.name, "strength": f.strength, **{s: table.share(i, s) for s in STATUSES}}
            for i, f in enumerate(table.findings)
        ],
        "readings": [
            {
                "reading": dict(universe.reading),
                "failure": universe.failure,
                "firm_holding": table.held(universe),
                "status": {f.name: table.status(universe, i) for i, f in enumerate(table.findings)},
            }
            for universe in table.universes
        ],
    }


def multiverse_markdown(table: MultiverseTable, made: Mapping[str, str]) -> str:
    """Return ``multiverse.md``: the share of readings in which each finding holds; a table of readings."""
    paper = table.paper
    ran = [u for u in table.universes if not u.failure]
    best = table.best()
    firm = sum(f.strength == "firm" for f in table.findings)
    lines = [
        f"# Multiverse: {paper.title}",
        "",
        f"{len(ran)} readings ({paper.multiverse.design.replace('_', ' ')}), each of which chooses what the"
        " paper does not state. The scored reading is the first, fixed before scoring; the others show how"
        " much its"
        f" score depends on the choices. Made on {made['date']} by aqmlab {made['version']}"
        f" (commit {made['commit']}) with {_thinned(paper)}.",
        "",
        f"Firm findings that hold: {table.held(table.universes[0])} of {firm} in the fixed reading,"
        f" {table.held(best)} in the best one ({best.label}), which was picked after scoring and is not a"
        " score.",
        "",
        *markdown_table(
            ("finding", "strength", "holds in", "fails in", "undecided in", "fixed reading"),
            [
                (
                    *(finding.name, finding.strength),
                    *(f"{table.share(i, status):.0%}" for status in STATUSES),
                    table.status(table.universes[0], i),
                )
                for i, finding in enumerate(table.findings)
            ],
        ),
        "",
        *markdown_table(
            ("reading", "known as", "firm findings that hold", "verdicts that change"),
            [_universe_row(table, universe, firm) for universe in table.universes],
        ),
    ]
    return "\n".join(lines) + "\n"


def _thinned(paper: Paper) -> str:
    """Return the number of seeds and the labels that the multiverse keeps."""
    thinned = paper.multiverse.thinned
    seeds = f"{thinned.runs} seeds per cell" if thinned.runs else "all seeds"
    kept = "; ".join(f"only {', '.join(labels)} of {axis}" for axis, labels in thinned.keep.items())
    return f"{seeds}{f', {kept}' if kept else ''}"


def _universe_row(table: MultiverseTable, universe: Universe, firm: int) -> tuple[str, ...]:
    label = universe.label, _marks(table.paper, universe)
    if universe.failure:
        return *label, "could not be run", universe.failure.splitlines()[0]
    fixed = table.universes[0]
    changed = [
        f"{finding.name} {table.status(universe, i)}"
        for i, finding in enumerate(table.findings)
        if table.status(universe, i) != table.status(fixed, i)
    ]
    return *label, f"{table.held(universe)} of {firm}", ", ".join(changed) or "nothing"


def _marks(paper: Paper, universe: Universe) -> str:
    """Return the marks of the settings that a reading changes, which say how well each is known."""
    return ", ".join(dict.fromkeys(s.mark for s in paper.settings if s.name in universe.reading))
