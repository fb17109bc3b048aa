"""Verdicts on comparisons, and their combination.

A comparison ``holds`` if the estimate satisfies it and the interval around the estimate does not
straddle the threshold; it ``fails`` if the opposite is equally certain; otherwise it is
``undecided``. Verdicts combine by the strong three-valued logic of Kleene (Introduction to
Metamathematics, 1952, section 64): an undecided part makes the whole undecided unless the other
parts decide it.

A conjunction of parts that hold at 95 % each holds at 95 %, whatever their number (intersection-union test:
Berger, Technometrics 24, 1982). A conjunction that *fails* because one of its many parts fails has a greater
probability of error than a single comparison: see :mod:`aqmlab.stats.multiple`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from aqmlab.stats.intervals import Interval

Status = Literal["holds", "fails", "undecided"]
Relation = Literal["<", "<=", ">", ">=", "=="]

HOLDS: Status = "holds"
FAILS: Status = "fails"
UNDECIDED: Status = "undecided"

LEAST_SEEDS = 5
"""With fewer seeds, nothing is decided (our choice): the t quantile is 12.7 at two seeds, 2.8 at five."""

_OPPOSITE: dict[Status, Status] = {HOLDS: FAILS, FAILS: HOLDS, UNDECIDED: UNDECIDED}


@dataclass(frozen=True)
class Verdict:
    """The verdict of the data on one statement.

    Attributes
    ----------
    status
        ``"holds"``, ``"fails"`` or ``"undecided"``.
    estimate, low, high
        The quantity compared, with its interval; ``None`` if there is none.
    threshold
        The reference: a number, or the lower and upper limits of a range.
    n
        Number of values (seeds, pairs) on which the interval is based.
    reason
        Why the statement is undecided, or which part decided a combination; empty if the figures suffice.
    """

    status: Status
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | tuple[float, float] | None = None
    n: int = 0
    reason: str = ""

    @property
    def margin(self) -> float:
        """The distance of the estimate from the threshold in half-widths of its interval.

        At least 1 if the interval does not straddle the threshold; infinite if it has no width; 0 if there is
        no interval.
        """
        if self.estimate is None or self.low is None or self.high is None or self.threshold is None:
            return 0.0
        middle = self.estimate
        ends = self.threshold if isinstance(self.threshold, tuple) else (self.threshold,)
        nearest = min(ends, key=lambda end: abs(middle - end))
        reach = self.high - middle if nearest > middle else middle - self.low
        return math.inf if reach == 0 else abs(middle - nearest) / reach


def undecided(reason: str, n: int = 0) -> Verdict:
    """Return an undecided verdict that has no figures, only a reason."""
    return Verdict(UNDECIDED, n=n, reason=reason)


def judge(found: Interval, relation: Relation, threshold: float, *, least_n: int = LEAST_SEEDS) -> Verdict:
    """Compare an estimate with a threshold.

    Parameters
    ----------
    found
        The estimate and its interval; for a comparison of two quantities, their paired difference.
    relation
        ``"<"``, ``"<="``, ``">"``, ``">="``, or ``"=="``, which only an interval without width can
        satisfy.
    threshold
        The threshold in the unit of the estimate; 0 for a difference.
    least_n
        Number of values below which nothing is decided.
    """
    ends = _ends(found, least_n)
    if isinstance(ends, Verdict):
        return replace(ends, threshold=threshold)
    low, high = ends
    holds, fails = {
        "<": (high < threshold, low >= threshold),
        "<=": (high <= threshold, low > threshold),
        ">": (low > threshold, high <= threshold),
        ">=": (low >= threshold, high < threshold),
        "==": (low == threshold == high, not low <= threshold <= high),
    }[relation]
    return _decided(found, threshold, holds=holds, fails=fails)


def judge_range(found: Interval, first: float, last: float, *, least_n: int = LEAST_SEEDS) -> Verdict:
    """Judge whether a quantity is within ``[first, last]``: its interval is inside, outside, or neither."""
    ends = _ends(found, least_n)
    if isinstance(ends, Verdict):
        return replace(ends, threshold=(first, last))
    low, high = ends
    inside = first <= low and high <= last
    outside = high < first or low > last
    return _decided(found, (first, last), holds=inside, fails=outside)


def _ends(found: Interval, least_n: int) -> tuple[float, float] | Verdict:
    """Return the interval's endpoints, or a verdict if the estimate is too uncertain for any comparison."""
    bare = Verdict(UNDECIDED, found.estimate, found.low, found.high, n=found.n)
    if found.estimate is None:
        return replace(bare, reason=found.reason or "no seed has a value")
    if found.n < least_n:
        return replace(
            bare, reason=f"{found.n} value{'' if found.n == 1 else 's'}, fewer than the {least_n} required"
        )
    if found.low is None or found.high is None:
        return replace(bare, reason=found.reason or "there is no interval")
    return found.low, found.high


def _decided(found: Interval, threshold: float | tuple[float, float], *, holds: bool, fails: bool) -> Verdict:
    status = HOLDS if holds else FAILS if fails else UNDECIDED
    percent = f"{100 * found.confidence:g} %"
    reason = "" if status != UNDECIDED else f"the {percent} interval contains the threshold"
    return Verdict(status, found.estimate, found.low, found.high, threshold, found.n, reason)


def negated(verdict: Verdict) -> Verdict:
    """Negate a verdict: holds becomes fails, fails becomes holds, undecided stays undecided."""
    return replace(verdict, status=_OPPOSITE[verdict.status])


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine verdicts by "and": the result fails if any part fails, and holds only if every part holds."""
    parts = tuple(verdicts)
    return at_least(len(parts), parts)


def at_least(count: int, parts: Sequence[Verdict]) -> Verdict:
    """Judge whether at least ``count`` parts hold, whatever the truth of the undecided parts.

    The verdict takes its numbers from the decisive part: of the parts whose status equals that of the
    combination, the least certain one. The combination cannot be more certain than that part. An empty
    combination is undecided, not true.
    """
    if not parts:
        return undecided("there is nothing to judge")
    held = sum(part.status == HOLDS for part in parts)
    failed = sum(part.status == FAILS for part in parts)
    if held >= count:
        status = HOLDS
    elif len(parts) - failed < count:
        status = FAILS
    else:
        status = UNDECIDED
    if len(parts) == 1:
        return parts[0]
    deciding = min((part for part in parts if part.status == status), key=lambda part: part.margin)
    number = sum(part.status == status for part in parts)
    verb = {HOLDS: ("holds", "hold"), FAILS: ("fails", "fail"), UNDECIDED: ("is undecided", "are undecided")}
    counted = f"{number} of {len(parts)} parts {verb[status][number != 1]}"
    why = f": {deciding.reason}" if deciding.reason else ""
    return replace(deciding, reason=counted + why)
