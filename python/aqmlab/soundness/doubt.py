"""Doubts, and how doubts of the same kind about several cells are combined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from aqmlab.text.numbers import listed

if TYPE_CHECKING:
    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")
_NAMED = 3
"""Largest number of arms that are named one by one."""


@dataclass(frozen=True)
class Doubt:
    """A reason not to trust a result.

    Attributes
    ----------
    cells
        The cells concerned.
    severity
        ``"serious"``, ``"warning"`` or ``"note"``.
    kind
        The check: ``"bottleneck"``, ``"warm-up"``, ...
    sentence
        The finding with figures, for the worst of the cells.
    remedy
        The remedy.
    """

    cells: tuple[Cell, ...]
    severity: Severity
    kind: str
    sentence: str
    remedy: str

    def to_json(self) -> dict[str, Any]:
        """Return the doubt as plain data."""
        cells = [{"arm": cell.arm, "settings": dict(cell.settings)} for cell in self.cells]
        return {
            "severity": self.severity,
            "kind": self.kind,
            "sentence": self.sentence,
            "remedy": self.remedy,
            "cells": cells,
        }


@dataclass(frozen=True)
class Check:
    """A question about the results, and what was found.

    Attributes
    ----------
    kind
        Its short name.
    question
        The expected state: "all runs finished".
    finding
        The observation if there is no doubt.
    doubts
        The doubts; empty if there are none.
    """

    kind: str
    question: str
    finding: str
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class CellDoubt:
    """A doubt about a single cell.

    Attributes
    ----------
    badness
        Among similar doubts, the one with the largest value is reported.
    """

    cell: Cell
    severity: Severity
    sentence: str
    remedy: str
    badness: float = 0.0


def merged(kind: str, results: Results, findings: Iterable[CellDoubt]) -> tuple[Doubt, ...]:
    """Return one doubt for all findings with the same severity and remedy, in the words of the worst one."""
    alike: dict[tuple[Severity, str], list[CellDoubt]] = {}
    for finding in findings:
        alike.setdefault((finding.severity, finding.remedy), []).append(finding)
    doubts = []
    for (severity, remedy), parts in alike.items():
        worst = max(parts, key=lambda part: part.badness)
        cells = tuple(part.cell for part in parts)
        same = all(part.sentence == worst.sentence for part in parts)
        sentence = f"{_where(results, cells, None if same else worst.cell)}{worst.sentence}"
        doubts.append(Doubt(cells, severity, kind, sentence, remedy))
    return tuple(doubts)


def _where(results: Results, cells: Sequence[Cell], worst: Cell | None) -> str:
    """Return the words for the cells that a sentence is about: ``in 8 of 24 cells, at worst in RED: ``.

    They are empty if the sentence applies to all cells alike.
    """
    total = len(results.cells)
    if worst is None and len(cells) == total:
        return ""
    if len(cells) == 1:
        return f"in {cells[0]}: " if results.axes else f"with {cells[0].arm}: "
    if results.axes:
        at_worst = "" if worst is None else f", at worst in {worst}"
        return f"in {len(cells)} of {total} cells{at_worst}: "
    at_worst = "" if worst is None else f", at worst with {worst.arm}"
    if len(cells) == total:
        return f"with every arm{at_worst}: "
    if len(cells) <= _NAMED:
        return f"with {listed([cell.arm for cell in cells])}{at_worst}: "
    return f"with {len(cells)} of {total} arms{at_worst}: "
