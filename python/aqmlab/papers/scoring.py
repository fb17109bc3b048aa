"""Findings as claims: their scores, the decisive comparisons, and the parts that smaller versions lack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from aqmlab.claims import Claim, Names, Scored, score
from aqmlab.claims.names import CLASS, FROM, QUEUE, UNTIL, WINDOW
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.score import foremost
from aqmlab.claims.text import first_of
from aqmlab.claims.tree import BestIs, Choice, Label, Matcher, Node, Pick, children, label
from aqmlab.claims.words import worded
from aqmlab.errors import ScenarioError
from aqmlab.papers.paper import Finding, Part
from aqmlab.results.results import Results
from aqmlab.stats.verdict import Verdict, all_of, undecided


@dataclass(frozen=True)
class ScoredFinding:
    """A finding with the verdict of our runs.

    Attributes
    ----------
    verdict
        ``holds`` if all parts hold.
    parts
        Each statement with its comparisons.
    """

    finding: Finding
    verdict: Verdict
    parts: tuple[Scored, ...]

    @property
    def status(self) -> str:
        """``"holds"``, ``"fails"`` or ``"undecided"``."""
        return self.verdict.status


@dataclass(frozen=True)
class Smaller:
    """How experiments were made smaller; a finding about an omitted part is then undecided, not false.

    Attributes
    ----------
    by
        What made them smaller: ``"--quick"``.
    whole
        Returns the names that a whole experiment defines, by file.
    """

    by: str
    whole: Callable[[str], Names]


def score_finding(
    finding: Finding,
    results: Mapping[str, Results],
    names: Mapping[str, Names] = MappingProxyType({}),
    smaller: Smaller | None = None,
) -> ScoredFinding:
    """Score a finding from the results of its experiments.

    Parameters
    ----------
    finding
        A finding of the paper.
    results
        The results, by the experiment's file.
    names
        The names that each experiment defines; by default those in its runs.
    smaller
        How experiments were made smaller; ``None`` if they were not.
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
            why = _why_left_out(claim, known, smaller, smaller.whole(part.experiment), error)
            parts.append(Scored(claim, undecided(why)))
    return ScoredFinding(finding, all_of([part.verdict for part in parts]), tuple(parts))


def _why_left_out(claim: Claim, names: Names, smaller: Smaller, whole: Names, error: ScenarioError) -> str:
    if lacking := missing_labels(claim, whole, names):
        return f"{lacking}: left out by {smaller.by} (`keep` in paper.toml)"
    return f"what {smaller.by} keeps (`keep` in paper.toml) is not enough: {error}"


def claim_of(finding: Finding, part: Part) -> Claim:
    """A part of a finding as a claim."""
    origin = replace(part.origin, claim=finding.name)
    return Claim(
        finding.name, part.expect, finding.text, part.where, finding.strength, finding.source, origin
    )


def claims_of(findings: Sequence[Finding], file: str) -> list[Claim]:
    """Return the statements that findings make about an experiment."""
    return [claim_of(f, part) for f in findings for part in f.parts if part.experiment == file]


def missing_labels(claim: Claim, whole: Names, small: Names) -> str:
    """Return the labels in a claim that only the whole experiment has, such as ```48` of `buffer```."""
    named = [*_labels_of(claim.where), *_named(claim.tree)]
    return _lacking(named, whole, small)


def missing_labels_of(where: Mapping[str, str], whole: Names, small: Names) -> str:
    """Return the labels in ``where`` that only the whole experiment has, in the same form."""
    return _lacking(_labels_of(where), whole, small)


def _labels_of(where: Mapping[str, str]) -> list[tuple[Label, Label]]:
    return [(label(axis), label(of)) for axis, of in where.items()]


def _named(node: Node) -> Iterator[tuple[Label, Label]]:
    """Yield each label together with the word before it, such as an axis; the word comes first."""
    match node:
        case Matcher():
            yield node.key, node.value
        case Choice():
            for pick in node.picks:
                if isinstance(pick, Pick):
                    yield from ((node.axis, end) for end in (pick.first, pick.last) if end is not None)
        case BestIs():
            yield from ((node.best.over[0].axis, of) for of in node.labels)
    for child in children(node):
        yield from _named(child)


def _lacking(named: list[tuple[Label, Label]], whole: Names, small: Names) -> str:
    lacking = []
    for axis, of in named:
        if axis.text in (FROM, UNTIL, WINDOW, QUEUE, CLASS):
            continue
        try:
            key = whole.key(axis)
        except MisplacedError:
            continue  # a parameter of a metric
        if of.text in whole.labels(key) and of.text not in small.labels(key):
            lacking.append(f"`{of.text}` of `{whole.short(key)}`")
    return ", ".join(dict.fromkeys(lacking))


def evidence(scored: ScoredFinding) -> tuple[str, ...]:
    """Return the decisive comparisons of a finding, one sentence each, and the number of further ones.

    For a failing finding, these are the clearest failures; for a finding that holds, the parts nearest to
    failing; for an undecided finding, the reason comes first.
    """
    deciding = [each for each in scored.parts if each.status == scored.status]
    reasons = [
        each.verdict.reason
        for each in deciding
        if each.verdict.reason and (scored.status == "undecided" or not each.parts)
    ]
    parts = foremost([part for each in deciding for part in each.deciding()], scored.status)
    # Two bounds on one value, such as `x > 0 and x <= 1`, yield the same text, which is kept only once.
    measured = list(dict.fromkeys(map(worded, parts)))
    return (*dict.fromkeys(reasons), *first_of(measured, str))


def explanation(finding: Finding, status: str, explained: Sequence[Mapping[str, Any]]) -> str:
    """Return why a finding does not hold, as far as known.

    Parameters
    ----------
    finding
        The finding.
    status
        Its score.
    explained
        For each reading that was tried as a cause: the ``reading``, and the finding's ``status`` under it.
    """
    if status == "holds":
        return ""
    said = [" ".join(finding.note.split())] if finding.note else []
    tried = [(reading_text(one["reading"]), _verb(one["status"])) for one in explained]
    if len(tried) == 1:
        said += [
            f"With another reading ({reading}), all else the same, it {outcome}."
            for reading, outcome in tried
        ]
    elif tried:
        outcomes = "; ".join(f"with {reading}, it {outcome}" for reading, outcome in tried)
        said.append(f"Other settings, all else the same: {outcomes}.")
    return " ".join(said) or "No cause is known."


def reading_text(reading: Mapping[str, str]) -> str:
    """``least RTO: 200 ms, window: 64 KB``."""
    return ", ".join(f"{name}: {label}" for name, label in reading.items())


def _verb(status: str) -> str:
    return "stays undecided" if status == "undecided" else status
