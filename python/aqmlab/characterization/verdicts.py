"""Verdicts on a section: comparisons paired by seed, corrected for their number, and their words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from aqmlab.characterization.arms import Arm
from aqmlab.metrics import Metric, find
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results, Value
from aqmlab.stats import CONFIDENCE, Difference, difference
from aqmlab.stats.differences import defined
from aqmlab.stats.multiple import adjusted, multiple_comparisons
from aqmlab.stats.sentence import sentence, spoken
from aqmlab.text.numbers import counted, decimal_places, display_unit, display_value, fixed, listed

Outcome = Literal["better", "worse", "lower", "higher", "same", "open", "untested"]
"""``lower`` and ``higher`` are those of a metric of which neither is better; ``same``: the interval lies
within :data:`MARGIN` of the reference; ``open``: no difference found; ``untested``: no interval, because too
few seeds have both values."""

MARGIN = 0.01
"""Share of the reference's mean within which a difference does not matter (ours)."""

BRANCH_SHARE = 0.6
"""Share of the range of the values that the gap between two branches takes at least (ours). Of ten
independent normal values, one sample in a thousand has such a gap, and of ten exponential ones, one in
seventy."""
BRANCH_LEAST = 2
"""Smallest number of seeds in a branch (ours)."""
BRANCH_SEEDS = 10
"""Smallest number of seeds with which branches are looked for (ours): with six, one normal sample in 28 would
look as if it had two."""
BRANCH_RELATIVE = 0.2
"""Smallest gap relative to the mean (ours): smaller ones do not matter."""


@dataclass(frozen=True)
class Comparison:
    """An arm against the one with which it is compared, in one case and one metric.

    Attributes
    ----------
    cell
        The arm's cell.
    arm
        The arm.
    metric
        The metric.
    found
        The paired difference, arm minus reference.
    reference
        The reference's mean over the seeds that have a value; NaN without one.
    defined_in
        For the arm and the reference: the seeds that have a value, all seeds, and the arm's name.
    stands
        Whether the difference is significant after Holm's correction over the section.
    """

    cell: Cell
    arm: Arm
    metric: Metric
    found: Difference
    reference: float
    defined_in: tuple[tuple[int, int, str], tuple[int, int, str]]
    stands: bool

    @property
    def outcome(self) -> Outcome:
        """What the interval says."""
        estimate = self.found.estimate
        if self.found.p_value is None or estimate is None or estimate.half_width is None:
            return "untested"
        if abs(estimate.mean) + estimate.half_width <= MARGIN * abs(self.reference):
            return "same"
        if not self.stands:
            return "open"
        less = estimate.mean < 0
        if not self.metric.better:
            return "lower" if less else "higher"
        return "better" if less == (self.metric.better == "less") else "worse"


@dataclass(frozen=True)
class Branches:
    """A cell whose seeds fall into two groups far from each other.

    Attributes
    ----------
    cell, metric
        The cell and the metric.
    low, high
        The values of the two groups, ascending.
    """

    cell: Cell
    metric: Metric
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def text(self) -> str:
        """The shares and the means of the two groups."""
        n = len(self.low) + len(self.high)
        unit = self.metric.unit
        low, high = (display_value(sum(group) / len(group), unit) for group in (self.low, self.high))
        places = decimal_places((high - low) / 10)
        groups = [
            f"{len(group)} of {n} seeds near {fixed(mean, places)} {display_unit(unit)}".rstrip()
            for group, mean in ((self.low, low), (self.high, high))
        ]
        return f"{self.cell}: {spoken(self.metric.label)} has two branches, {listed(groups)}"


def branches_of(values: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Split values at their widest gap, if it is as wide as :data:`BRANCH_SHARE` asks for."""
    ordered = sorted(values)
    n = len(ordered)
    if n < BRANCH_SEEDS:
        return None
    splits = range(BRANCH_LEAST, n - BRANCH_LEAST + 1)
    at = max(splits, key=lambda i: ordered[i] - ordered[i - 1])
    gap, reach = ordered[at] - ordered[at - 1], ordered[-1] - ordered[0]
    if reach == 0 or gap < BRANCH_SHARE * reach or gap < BRANCH_RELATIVE * abs(sum(ordered)) / n:
        return None
    return tuple(ordered[:at]), tuple(ordered[at:])


def compare(results: Results, arms: Sequence[Arm]) -> tuple[Comparison, ...]:
    """Compare each arm with its reference, in each case and each metric of the scenario."""
    by_place = {(cell.settings, cell.arm): cell for cell in results.cells}
    found = []
    for arm in arms:
        for cell in results.cells if arm.against else ():
            other = by_place.get((cell.settings, arm.against))
            if cell.arm != arm.name or other is None:
                continue
            for name in results.metrics:
                a, b = values_of(results, cell, name), values_of(results, other, name)
                if defined(a) or defined(b):
                    there = list(defined(b).values())
                    mean = math.fsum(there) / len(there) if there else math.nan
                    counts = ((len(defined(a)), len(a), arm.name), (len(there), len(b), arm.against))
                    found.append((cell, arm, find(name), difference(a, b), mean, counts))
    corrected = adjusted([one.p_value for *_, one, _, _ in found])
    return tuple(
        Comparison(*one, stands=p is not None and p <= 1.0 - CONFIDENCE)
        for one, p in zip(found, corrected, strict=True)
    )


def values_of(results: Results, cell: Cell, metric: str) -> Mapping[int, Value]:
    """The values of a metric by seed."""
    return results.values(metric, cell)


def find_branches(results: Results) -> tuple[Branches, ...]:
    """Return the cells with two branches, in the metrics of the scenario."""
    found = []
    for cell in results.cells:
        for name in results.metrics:
            parts = branches_of(list(defined(values_of(results, cell, name)).values()))
            if parts is not None:
                found.append(Branches(cell, find(name), *parts))
    return tuple(found)


def word(comparisons: Sequence[Comparison]) -> str:
    """The verdict on an AQM in a section, in one or two words."""
    outcomes = {one.outcome for one in comparisons}
    if not outcomes:
        return "not measured"
    if outcomes == {"untested"}:
        return "no interval"
    if outcomes == {"same"}:
        return "same"
    better, worse = (_groups(comparisons, of).keys() for of in ("better", "worse"))
    if better and worse:
        return _trade(better, worse)
    if better or worse:
        return "better" if better else "worse"
    return "differs" if outcomes & {"lower", "higher"} else "no difference found"


_GROUPS = {
    "delay": ("queueing_delay", "round_trip", "slow", "backlog"),
    "completion": ("response_time", "page_time"),
    "calls": ("frame", "encoded_rate"),
    "fairness": ("jain", "starved"),
    "efficiency": ("goodput_efficiency",),
    "rate": ("goodput", "utilisation"),
    "loss": ("drop", "loss", "retransmissions", "timeouts"),
    "needless retransmissions": ("spurious",),
}
"""What metrics are about, by the beginning of their names."""


_WAITING = {"delay", "completion", "calls"}
_SENDING = {"rate", "efficiency"}
_LOSING = {"loss", "needless retransmissions"}


def _trade(better: Set[str], worse: Set[str]) -> str:
    """Name what is given for what, in the terms of RFC 7928, 2.7: latency against goodput.

    Losses alone are no such price (2.3): they are how an AQM signals, and what they do to flows is in the
    other groups.
    """
    if worse <= _LOSING:
        return "better with more loss"
    if better <= _LOSING:
        return "worse with less loss"
    waits, sends = better & _WAITING, better & _SENDING
    if waits and not sends and worse & _SENDING and not worse & _WAITING:
        return "goodput for delay"
    if sends and not waits and worse & _WAITING and not worse & _SENDING:
        return "delay for goodput"
    return "mixed"


def _groups(comparisons: Sequence[Comparison], outcome: Outcome) -> dict[str, list[Comparison]]:
    """The comparisons with an outcome, by what they are about."""
    groups: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.outcome == outcome:
            name = one.metric.name
            about = next((group for group, heads in _GROUPS.items() if name.startswith(heads)), name)
            groups.setdefault(about, []).append(one)
    return groups


def detail(comparisons: Sequence[Comparison]) -> str:
    """Say what is better and what is worse, and by how much: ``better: delay −87 %; worse: rate −3 %``.

    Each number is the median of the significant differences of its group, relative to the reference; of
    percentages, in points. Empty if nothing is better or worse.
    """
    said = []
    for outcome in ("better", "worse"):
        groups = _groups(comparisons, outcome)
        if groups:
            said.append(f"{outcome}: {', '.join(about + _amount(of) for about, of in groups.items())}")
    return "; ".join(said)


def _amount(of: Sequence[Comparison]) -> str:
    """The median difference with its sign: relative where a metric is no percentage, else in points."""
    means = [(one, one.found.estimate.mean) for one in of if one.found.estimate is not None]
    relative = [
        100 * mean / one.reference for one, mean in means if one.metric.unit != "%" and one.reference != 0
    ]
    points = [mean for one, mean in means if one.metric.unit == "%"]
    values, unit = (relative, "%") if relative else (points, "points")
    if not values:
        return ""
    middle = statistics.median(values)
    places = 0 if abs(middle) >= 10 else 1
    return f" {middle:+.{places}f} {unit}".replace("-", "−")


def sentences(comparisons: Sequence[Comparison], silent: str = "") -> list[str]:
    """Say what the comparisons of one AQM found, a sentence per metric.

    Parameters
    ----------
    comparisons
        The comparisons of one AQM in one section.
    silent
        What to say instead if no packet was marked.
    """
    if silent:
        return [silent]
    by_metric: dict[str, list[Comparison]] = {}
    for one in comparisons:
        by_metric.setdefault(one.metric.name, []).append(one)
    return [_said(of) for of in by_metric.values()]


def _said(of: Sequence[Comparison]) -> str:
    metric = of[0].metric
    if len(of) == 1:
        (one,) = of
        if one.outcome == "untested" and one.found.alone:
            return f"{spoken(metric.label)}: {_seeds(one)}"
        text = sentence(one.found, one.arm.name, one.arm.against, metric)
        if one.outcome == "same":
            text += f"; within {MARGIN:.0%} of {one.arm.against}".replace("%", " %")
        elif one.found.seen and not one.stands:
            text += "; it does not stand when all comparisons of the section are taken together (Holm)"
        return text + _alone(one)
    counts: dict[Outcome, list[Comparison]] = {}
    for one in of:
        counts.setdefault(one.outcome, []).append(one)
    names = {"open": "no difference found", "same": "the same within 1 %", "untested": "not comparable"}
    parts = [
        f"{names.get(outcome, outcome)} in {len(having)}{_range(having)}"
        for outcome, having in counts.items()
    ]
    return f"{spoken(metric.label)}: of {counted(len(of), 'case')}, {', '.join(parts)}"


def _alone(one: Comparison) -> str:
    """Say that only some seeds have a value, as of the time to something that may not happen."""
    return f"; {_seeds(one)}" if one.found.alone else ""


def _seeds(one: Comparison) -> str:
    """The numbers of seeds that have a value."""
    first, second = (f"{having} of {of} seeds with {name}" for having, of, name in one.defined_in)
    return f"it has a value in {first}, and in {second}"


def _range(having: Sequence[Comparison]) -> str:
    """The smallest and the largest mean difference; empty if the differences are not significant."""
    if having[0].outcome in ("same", "open", "untested"):
        return ""
    unit = having[0].metric.unit
    means = [display_value(one.found.estimate.mean, unit) for one in having if one.found.estimate is not None]
    low, high = min(means), max(means)
    places = decimal_places(max(abs(low), abs(high)) / 10)
    ends = list(dict.fromkeys(fixed(end, places).replace("-", "−") for end in (low, high)))
    shown = display_unit(unit).replace("%", "points")
    return f" ({' to '.join(ends)} {shown})".replace(" )", ")")


_SEEN = ("better", "worse", "lower", "higher")
"""The outcomes that are differences."""


def matters(comparisons: Sequence[Comparison]) -> tuple[list[str], list[str]]:
    """For arms that change one parameter: a sentence per arm that makes a difference, and the other arms."""
    by_arm: dict[str, list[Comparison]] = {}
    for one in comparisons:
        by_arm.setdefault(one.arm.name, []).append(one)
    said, others = [], []
    for arm, of in by_arm.items():
        parts = [
            f"{spoken(one.metric.label)} {one.outcome}{_range([one])}" for one in of if one.outcome in _SEEN
        ]
        if parts:
            said.append(f"{arm}: {', '.join(parts)}")
        else:
            others.append(arm)
    return said, others


def note(comparisons: Sequence[Comparison]) -> str:
    """One sentence on the number of comparisons."""
    return multiple_comparisons(one.found.p_value for one in comparisons).note
