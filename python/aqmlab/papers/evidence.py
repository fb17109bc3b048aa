"""What decided a finding, and why it does not hold."""

from __future__ import annotations

from collections.abc import Iterable

from aqmlab.claims import Part, Scored, sentence
from aqmlab.papers.reproduce import ScoredFinding

MOST_PARTS = 6
"""Comparisons that are printed of a finding; the page says how many there are."""


def explanation(scored: ScoredFinding) -> str:
    """Why a finding does not hold, as far as it is known."""
    if scored.status == "holds":
        return ""
    finding = scored.finding
    said = [finding.note] if finding.note else []
    for cause, verdict in zip(finding.causes, scored.explained, strict=False):
        reading = ", ".join(f"{name}: {label}" for name, label in cause.items())
        said.append(f"With another reading ({reading}), all else the same, it {_verb(verdict.status)}.")
    return " ".join(said) or "No cause is known."


def _verb(status: str) -> str:
    return "stays undecided" if status == "undecided" else status


def evidence(scored: ScoredFinding) -> str:
    """The comparisons that decided a finding, in words."""
    parts = [part for each in scored.parts for part in _deciding(scored, each)]
    said = [_with_place(part) for part in parts[:MOST_PARTS]]
    if len(parts) > MOST_PARTS:
        said.append(f"and {len(parts) - MOST_PARTS} more")
    reasons = [each.verdict.reason for each in scored.parts if not each.parts and each.verdict.reason]
    return "; ".join([*said, *reasons])


def _deciding(scored: ScoredFinding, each: Scored) -> Iterable[Part]:
    """Of a finding that fails, what fails; otherwise everything."""
    return each.deciding() if each.status == scored.status else ()


def _with_place(part: Part) -> str:
    place = ", ".join(label for _, label in part.at)
    return f"{place}: {sentence(part)}" if place else sentence(part)
