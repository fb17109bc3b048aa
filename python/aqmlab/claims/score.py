"""Scoring: which claims hold, which fail, and which the runs cannot tell."""

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
from aqmlab.claims.units import PURE, Unit
from aqmlab.errors import ScenarioError
from aqmlab.figures import counted
from aqmlab.files import CLAIMS_FILE, save
from aqmlab.results import Results
from aqmlab.stats import CONFIDENCE, Interval
from aqmlab.stats.verdict import FAILS, HOLDS, UNDECIDED, Verdict, undecided

FORMAT_VERSION = 1
_SCENARIO = "scenario.toml"
"""What a recording calls the file that its claims stand in: it lies beside them."""
STATUSES = (HOLDS, FAILS, UNDECIDED)


@dataclass(frozen=True, repr=False)
class Scored:
    """A claim with what the runs say of it.

    Attributes
    ----------
    claim
        The claim: ``name``, ``text``, ``expect``, ``where``, ``strength``, ``source``.
    verdict
        What the runs say.
    parts
        Every comparison that was made for it.
    """

    claim: Claim
    verdict: Verdict
    parts: tuple[ClaimComparison, ...] = ()

    def __repr__(self) -> str:
        return f"<Scored {self.claim.name!r}: {self.status}; {counted(len(self.parts), 'comparison')}>"

    def _repr_html_(self) -> str:
        from aqmlab.notebook import block, note, said, title

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
        """Whether it is firm and fails: what a command ends with 1 for."""
        return self.claim.strength == "firm" and self.status == FAILS

    def deciding(self) -> tuple[ClaimComparison, ...]:
        """The parts that go with the verdict, what decides first: all that share its status, or all."""
        same = tuple(part for part in self.parts if part.verdict.status == self.status)
        return foremost(same or self.parts, self.status)


def foremost(parts: Iterable[ClaimComparison], status: str) -> tuple[ClaimComparison, ...]:
    """Parts in the order in which they matter.

    Of a claim that fails the clearest failures come first; of one that holds, what is nearest to failing.
    What is equally clear, and all of one that is undecided, stays in its order.
    """
    if status == UNDECIDED:
        return tuple(parts)
    return tuple(sorted(parts, key=lambda part: part.verdict.margin, reverse=status == FAILS))


def score(
    results: Results, claims: Iterable[Claim] | None = None, names: Names | None = None
) -> tuple[Scored, ...]:
    """Score claims by the runs that there are.

    Parameters
    ----------
    results
        Of a sweep or an experiment.
    claims
        Those of its scenario if not given. Of these one that cannot be scored with the runs that there are,
        because an arm was left out, is undecided.
    names
        What they may speak of; queues and classes are those of the runs that there are, if not given.

    Raises
    ------
    ScenarioError
        If one of the given ``claims`` is wrong.
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
    """How many hold, fail and are undecided, firm and soft apart."""
    return {
        strength: {
            status: sum(s.claim.strength == strength and s.status == status for s in scored)
            for status in STATUSES
        }
        for strength in ("firm", "soft")
    }


def to_json(scored: Sequence[Scored]) -> dict[str, Any]:
    """The content of ``claims.json``; ``docs/claims.md`` describes it."""
    return {
        "format_version": FORMAT_VERSION,
        "confidence": CONFIDENCE,
        "counts": counts(scored),
        "claims": [scored_json(each) for each in scored],
    }


def to_text(scored: Sequence[Scored]) -> str:
    """The text of ``claims.json``: the same for the same runs, whenever and wherever."""
    return json.dumps(to_json(scored), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_claims(scored: Sequence[Scored], path: Path) -> Path:
    """Write ``claims.json`` into a directory.

    Raises
    ------
    HostError
        If it cannot be written.
    """
    file = path / CLAIMS_FILE
    save(file, to_text(scored))
    return file


def scored_json(scored: Scored) -> dict[str, Any]:
    """A claim with every comparison, as plain data."""
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
