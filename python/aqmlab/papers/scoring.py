"""Findings as claims, scored by the runs of their experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from aqmlab.claims import Claim, Names, Scored, score
from aqmlab.errors import ScenarioError
from aqmlab.papers.left_out import left_out
from aqmlab.papers.paper import Finding, Part
from aqmlab.results import Results
from aqmlab.stats.verdict import Verdict, all_of, undecided


@dataclass(frozen=True)
class ScoredFinding:
    """A finding with what our runs say of it.

    Attributes
    ----------
    verdict
        ``holds`` if all parts do.
    parts
        Each statement with its comparisons.
    explained
        For one that fails or is undecided: the same under each reading that is said to be the cause.
    """

    finding: Finding
    verdict: Verdict
    parts: tuple[Scored, ...]
    explained: tuple[Verdict, ...] = ()

    @property
    def status(self) -> str:
        """``"holds"``, ``"fails"`` or ``"undecided"``."""
        return self.verdict.status


@dataclass(frozen=True)
class Smaller:
    """That experiments were made smaller: a finding about what was left out is undecided, and not wrong.

    Attributes
    ----------
    by
        What has made them so: ``"--quick"``.
    whole
        What can be named of each whole experiment, by file, as far as it is known.
    """

    by: str
    whole: Mapping[str, Names] = field(default_factory=dict)


def score_finding(
    finding: Finding,
    results: Mapping[str, Results],
    names: Mapping[str, Names] = MappingProxyType({}),
    smaller: Smaller | None = None,
) -> ScoredFinding:
    """Score a finding by the results of its experiments.

    Parameters
    ----------
    finding
        Of the paper.
    results
        By file of the experiment.
    names
        What can be named of each experiment; what its runs have, where it is not given.
    smaller
        If experiments were made smaller.
    """
    parts: list[Scored] = []
    for part in finding.parts:
        of, claim = results[part.experiment], claim_of(finding, part)
        known = names.get(part.experiment) or Names.of_results(of)
        try:
            parts += score(of, [claim], known)
        except ScenarioError as error:
            if smaller is None:
                raise
            why = _why_left_out(claim, known, smaller, smaller.whole.get(part.experiment), error)
            parts.append(Scored(claim, undecided(why)))
    return ScoredFinding(finding, all_of([part.verdict for part in parts]), tuple(parts))


def _why_left_out(
    claim: Claim, names: Names, smaller: Smaller, whole: Names | None, error: ScenarioError
) -> str:
    lacking = left_out(claim, whole, names) if whole else ""
    if lacking:
        return f"{lacking}: left out by {smaller.by} (`keep` in paper.toml)"
    return f"what {smaller.by} keeps (`keep` in paper.toml) is not enough: {error}"


def claim_of(finding: Finding, part: Part) -> Claim:
    """A part of a finding as a claim."""
    origin = replace(part.origin, claim=finding.name)
    return Claim(
        finding.name, part.expect, finding.text, part.where, finding.strength, finding.source, origin
    )
