"""The differences between the arms, case by case, and which of them are significant after correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from aqmlab.metrics import Metric
from aqmlab.results.answers import Answer
from aqmlab.results.cells import Cell
from aqmlab.stats import CONFIDENCE, Difference
from aqmlab.stats.multiple import MultipleComparisons, adjusted, multiple_comparisons


@dataclass(frozen=True)
class Contrast:
    """The difference between two arms in one case.

    Attributes
    ----------
    cell, other
        The difference is ``cell - other``.
    found
        The difference, paired by seed.
    stands
        Whether it differs significantly from zero after Holm's correction. The correction covers all
        comparisons in this metric that one heat map shows: all cases for one pair of arms or, if there is
        only one case, all pairs of arms.
    """

    cell: Cell
    other: Cell
    found: Difference
    stands: bool


@dataclass(frozen=True)
class Differences:
    """The differences in one metric between every pair of arms in every case.

    Attributes
    ----------
    metric
        The metric.
    pairs
        Pairs of arms; the one that comes later in the scenario is first.
    contrasts
        The cases of each pair, in their order; cases that lack one of the arms are left out.
    """

    metric: Metric
    pairs: tuple[tuple[str, str], ...]
    contrasts: tuple[tuple[Contrast, ...], ...]

    def between(self, arm: str, other: str) -> tuple[Contrast, ...]:
        """The cases of a pair."""
        return self.contrasts[self.pairs.index((arm, other))]


def differences(answer: Answer, metric: Metric) -> Differences:
    """Compare every pair of arms in every case by one metric."""
    pairs = tuple((later, earlier) for earlier, later in combinations(answer.arms, 2))
    found = [_of_pair(answer, metric, *pair) for pair in pairs]
    # A map shows one pair in all cases or, if there is only one case, all pairs.
    maps = [[contrast] for contrast in found] if answer.results.axes else [found]
    return Differences(metric, pairs, tuple(contrasts for shown in maps for contrasts in _standing(shown)))


def comparisons(of_metrics: Sequence[Differences]) -> MultipleComparisons:
    """Count a report's comparisons, and those that remain significant when all are taken together."""
    return multiple_comparisons(
        contrast.found.p_value
        for of_metric in of_metrics
        for of_pair in of_metric.contrasts
        for contrast in of_pair
    )


def _of_pair(answer: Answer, metric: Metric, arm: str, other: str) -> list[Contrast]:
    """Return the differences, not yet judged for joint significance."""
    there = {row.cell for row in answer.rows}
    contrasts = []
    for _, of_case in answer.cases:
        by_arm = {cell.arm: cell for cell in of_case if cell in there}
        if arm in by_arm and other in by_arm:
            first, second = by_arm[arm], by_arm[other]
            found = answer.contrast(first, second, metric.name)
            contrasts.append(Contrast(first, second, found, stands=False))
    return contrasts


def _standing(shown: Sequence[Sequence[Contrast]]) -> list[tuple[Contrast, ...]]:
    """Return the given differences, corrected for the number of comparisons shown together."""
    found = iter(adjusted([contrast.found.p_value for of_pair in shown for contrast in of_pair]))

    def stands(p: float | None) -> bool:
        return p is not None and p <= 1.0 - CONFIDENCE

    return [tuple(replace(one, stands=stands(next(found))) for one in of_pair) for of_pair in shown]
