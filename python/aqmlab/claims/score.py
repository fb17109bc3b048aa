"""Scoring: which claims hold, which fail, and which the runs leave undecided."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab.claims.claim import Claim
from aqmlab.claims.comparisons import ClaimComparison
from aqmlab.claims.decide import Decider
from aqmlab.claims.names import Names
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.text import MOST_SHOWN, placed_sentence, sentence
from aqmlab.errors import ScenarioError
from aqmlab.results.results import Results
from aqmlab.stats import CONFIDENCE, Interval
from aqmlab.stats.verdict import FAILS, HOLDS, UNDECIDED, Verdict, undecided
from aqmlab.system.files import CLAIMS_FILE, save
from aqmlab.text.numbers import counted
from aqmlab.text.units import PURE, Unit

FORMAT_VERSION = 1
_SCENARIO = "scenario.toml"
"""The name of the scenario's file in a recording's directory; the claims to be scored are in it."""
STATUSES = (HOLDS, FAILS, UNDECIDED)


@dataclass(frozen=True, repr=False)
class Scored:
    """A claim with the verdict of the runs.

    Attributes
    ----------
    claim
        The claim: ``name``, ``text``, ``expect``, ``where``, ``strength``, ``source``.
    verdict
        The verdict.
    parts
        All its comparisons.
    """

    claim: Claim
    verdict: Verdict
    parts: tuple[ClaimComparison, ...] = ()

    def __repr__(self) -> str:
        return f"<Scored {self.claim.name!r}: {self.status}; {counted(len(self.parts), 'comparison')}>"

    def _repr_html_(self) -> str:
        from aqmlab.text.notebook import block, note, said, title

        sentences = [placed_sentence(part) for part in self.deciding()[:MOST_SHOWN]]
        head = f"{self.status}: {self.claim.name}"
        reason = [self.verdict.reason] if self.status == "undecided" and self.verdict.reason else []
        return block(
            title(head), said(self.claim.text or self.claim.expect), *map(note, [*reason, *sentences])
        )

    @property
    def status(self) -> str:
        """``"holds"``, ``"fails"`` or ``"undecided"``."""
        return self.verdict.status

    @property
    def failed(self) -> bool:
        """Whether the claim is firm and fails, so that a command exits with 1."""
        return self.claim.strength == "firm" and self.status == FAILS

    def deciding(self) -> tuple[ClaimComparison, ...]:
        """Return the parts with the verdict's status, or else all parts, with the most decisive first."""
        same = tuple(part for part in self.parts if part.verdict.status == self.status)
        return foremost(same or self.parts, self.status)


def foremost(parts: Iterable[ClaimComparison], status: str) -> tuple[ClaimComparison, ...]:
    """Return the parts in order of importance.

    For a failing claim, the clearest failures come first; for one that holds, the parts nearest to
    failing. Equally clear parts, and all parts of an undecided claim, keep their order.
    """
    if status == UNDECIDED:
        return tuple(parts)
    return tuple(sorted(parts, key=lambda part: part.verdict.margin, reverse=status == FAILS))


def score(
    results: Results, claims: Iterable[Claim] | None = None, names: Names | None = None
) -> tuple[Scored, ...]:
    """Score claims against the existing runs.

    Parameters
    ----------
    results
        Results of a sweep or an experiment.
    claims
        By default, the claims of the scenario. A given claim is undecided if the existing runs cannot score
        it because an arm was left out.
    names
        The names that the claims may use; by default those of ``results``, with the queues and classes
        of the existing runs.

    Raises
    ------
    ScenarioError
        If one of the given ``claims`` is invalid.
    RecordingError
        If a recording cannot be read.
    """
    names = Names.of_results(results) if names is None else names
    own = claims is None
    chosen = (
        [Claim.of_entry(entry, _SCENARIO) for entry in results.claims] if claims is None else list(claims)
    )
    return tuple(_scored(claim, results, names, own=own) for claim in chosen)


def _scored(claim: Claim, results: Results, names: Names, *, own: bool) -> Scored:
    decider = Decider(results, names)
    try:
        claim.check(names)
        verdict = decider.decide(claim.tree, claim.bound(names))
    except MisplacedError as error:
        wrong = claim.error(error.at, str(error))
        if not own:
            raise wrong from error
        return Scored(claim, undecided(str(wrong)))
    except ScenarioError as error:
        if not own:
            raise
        return Scored(claim, undecided(str(error)))
    return Scored(claim, verdict, tuple(decider.parts))


def counts(scored: Sequence[Scored]) -> dict[str, dict[str, int]]:
    """Return how many claims hold, fail and are undecided, separately for firm and soft claims."""
    return {
        strength: {
            status: sum(s.claim.strength == strength and s.status == status for s in scored)
            for status in STATUSES
        }
        for strength in ("firm", "soft")
    }


def to_json(scored: Sequence[Scored]) -> dict[str, Any]:
    """Return the contents of ``claims.json``, whose format ``docs/claims.md`` describes."""
    return {
        "format_version": FORMAT_VERSION,
        "confidence": CONFIDENCE,
        "counts": counts(scored),
        "claims": [scored_json(each) for each in scored],
    }


def to_text(scored: Sequence[Scored]) -> str:
    """Return the text of ``claims.json``, which depends only on the runs."""
    return json.dumps(to_json(scored), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_claims(scored: Sequence[Scored], path: Path) -> Path:
    """Write ``claims.json`` into a directory.

    Raises
    ------
    HostError
        If the file cannot be written.
    """
    file = path / CLAIMS_FILE
    save(file, to_text(scored))
    return file


def scored_json(scored: Scored) -> dict[str, Any]:
    """Return a claim with all its comparisons, as plain data."""
    claim, verdict = scored.claim, scored.verdict
    return {
        "name": claim.name,
        "text": claim.text,
        "expect": claim.expect,
        "where": dict(claim.where),
        "strength": claim.strength,
        "source": claim.source,
        "status": verdict.status,
        "reason": verdict.reason,
        "parts": [_part_json(part) for part in scored.parts],
    }


def _part_json(part: ClaimComparison) -> dict[str, Any]:
    found_unit = PURE if part.effect == "ratio" else part.unit
    sides = {"left": part.left, "right": part.right}
    return {
        "text": part.text,
        "at": dict(part.at),
        **{
            name: side and {"text": side.text, **_interval_json(side.estimate, part.unit)}
            for name, side in sides.items()
        },
        "effect": part.effect,
        "found": _interval_json(part.found, found_unit),
        "unit": part.unit.written(),
        "status": part.verdict.status,
        "reason": part.verdict.reason,
        "sentence": sentence(part),
    }


def _interval_json(found: Interval, unit: Unit) -> dict[str, Any]:
    def number(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else unit.written_value(value)

    return {
        "estimate": number(found.estimate),
        "low": number(found.low),
        "high": number(found.high),
        "n": found.n,
        "confidence": found.confidence,
        "method": found.method,
    }
