"""What decided a finding, and why it does not hold."""

from __future__ import annotations

from aqmlab.claims import Part
from aqmlab.claims.score import foremost
from aqmlab.claims.text import MOST_SHOWN, placed_sentence
from aqmlab.papers.scoring import ScoredFinding


def evidence(scored: ScoredFinding) -> tuple[str, ...]:
    """The comparisons that decided a finding, a sentence each, and how many more of them there are.

    Of a finding that fails the clearest failures, of one that holds what is nearest to failing; for one that
    is undecided the reason comes first.
    """
    deciding = [each for each in scored.parts if each.status == scored.status]
    reasons = [
        each.verdict.reason
        for each in deciding
        if each.verdict.reason and (scored.status == "undecided" or not each.parts)
    ]
    parts = foremost([part for each in deciding for part in each.deciding()], scored.status)
    said = [*dict.fromkeys(reasons), *map(placed_sentence, parts[:MOST_SHOWN])]
    more = len(parts) - MOST_SHOWN
    return (*said, f"and {more} more") if more > 0 else tuple(said)


def comparisons(scored: ScoredFinding) -> tuple[Part, ...]:
    """Every comparison that was made for a finding, in the order of its statements."""
    return tuple(part for each in scored.parts for part in each.parts)


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
