"""A scenario's claims on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aqmlab.claims import ClaimComparison, Scored, counts
from aqmlab.claims.comparisons import where_text
from aqmlab.claims.text import MOST_SHOWN, effect_text, side_text
from aqmlab.text.numbers import listed

SIGNS = {"holds": "✓", "fails": "✗", "undecided": "?"}


def claims_context(scored: Sequence[Scored]) -> dict[str, Any]:
    """Return every claim with its comparisons, and how many claims hold."""
    return {"claims": [_claim(each) for each in scored], "claims_summary": _summary(scored)}


def _claim(scored: Scored) -> dict[str, Any]:
    claim = scored.claim
    deciding = scored.deciding()
    # The decisive comparisons come first, which matters for a claim over many cells.
    parts = [*deciding, *(part for part in scored.parts if part not in deciding)]
    remarks = [claim.strength, claim.source, scored.verdict.reason]
    return {
        "name": claim.name,
        "text": claim.text,
        "expect": claim.expect,
        "where": where_text(claim.where.items()),
        "status": scored.status,
        "sign": SIGNS[scored.status],
        "remarks": " · ".join(remark for remark in remarks if remark),
        "tables": _tables(parts[:MOST_SHOWN]),
        "others": _tables(parts[MOST_SHOWN:]),
        "others_count": max(len(parts) - MOST_SHOWN, 0),
    }


def _tables(parts: Sequence[ClaimComparison]) -> list[dict[str, Any]]:
    """Return a table per pair of expressions, with one row per comparison."""
    alike: dict[tuple[str, ...], list[ClaimComparison]] = {}
    for part in parts:
        alike.setdefault(_heads(part), []).append(part)
    return [{"heads": heads, "rows": [_row(part) for part in of]} for heads, of in alike.items()]


def _heads(part: ClaimComparison) -> tuple[str, ...]:
    """Return the column headers of a comparison."""
    sides = [side.text for side in part.measured]
    return (*sides, part.effect) if part.effect != "value" else tuple(sides)


def _row(part: ClaimComparison) -> dict[str, Any]:
    figures = [side_text(side, part) for side in part.measured]
    if part.effect != "value":
        figures.append(effect_text(part))
    return {
        "status": part.verdict.status,
        "sign": SIGNS[part.verdict.status],
        "where": where_text(part.at),
        "figures": figures,
        "n": part.found.n,
    }


def _summary(scored: Sequence[Scored]) -> str:
    """Return how many claims hold, fail and are undecided, separately for firm and soft ones."""
    sentences = []
    for strength, found in counts(scored).items():
        total = sum(found.values())
        if total:
            parts = [f"{count} {_verb(status, count)}" for status, count in found.items() if count]
            sentences.append(f"{total} {strength} {'claim' if total == 1 else 'claims'}: {listed(parts)}")
    text = "; ".join(sentences)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _verb(status: str, count: int) -> str:
    if status == "undecided":
        return "is undecided" if count == 1 else "are undecided"
    return status if count == 1 else status.removesuffix("s")
