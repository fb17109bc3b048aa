"""Doubts, and how the same doubt about several cells becomes one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from aqmlab.figures import listed

if TYPE_CHECKING:
    from aqmlab.cells import Cell
    from aqmlab.results import Results

Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")
_NAMED = 3
"""So many arms are named one by one."""


@dataclass(frozen=True)
class Doubt:
    """Why not to trust a result.

    Attributes
    ----------
    cells
        Which part of the results it is about.
    severity
        ``"serious"``, ``"warning"`` or ``"note"``.
    kind
        Of which check: ``"bottleneck"``, ``"warm-up"``, ...
    sentence
        What was found, with figures, of the worst of the cells.
    remedy
        What to do about it.
    """

    cells: tuple[Cell, ...]
    severity: Severity
    kind: str
    sentence: str
    remedy: str

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
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
    """A question, and what was found.

    Attributes
    ----------
    kind
        Its short name.
    question
        What should be so: "all runs finished".
    finding
        What was seen, where there is no doubt.
    doubts
        What is wrong; empty if nothing is.
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
        The greatest of those that are alike is the one that is told.
    """

    cell: Cell
    severity: Severity
    sentence: str
    remedy: str
    badness: float = 0.0


def merged(kind: str, results: Results, findings: Iterable[CellDoubt]) -> tuple[Doubt, ...]:
    """One doubt for all findings of the same severity and remedy, in the words of the worst of them."""
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
    """Of which cells a sentence is: ``in 8 of 24 cells, at worst in RED, rate 5Mbit: ``.

    Nothing where the same holds for all.
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


def counted(count: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
