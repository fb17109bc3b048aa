"""How the arms of a sweep differ, case by case, and which differences stand when they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from aqmlab.answers import Answer
from aqmlab.metrics import Metric
from aqmlab.results import Cell
from aqmlab.stats import CONFIDENCE
from aqmlab.stats.differences import Difference, difference
from aqmlab.stats.multiple import MultipleComparisons, holm, multiple_comparisons


@dataclass(frozen=True)
class Contrast:
    """The difference of two arms in one case.

    Attributes
    ----------
    cell, other
        The difference is ``cell - other``.
    found
        Paired by seed.
    stands
        Whether it differs significantly from zero after correction for the number of cases (Holm, over the
        cases of these two arms and this metric, which is what one heat map shows).
    """

    cell: Cell
    other: Cell
    found: Difference
    stands: bool


@dataclass(frozen=True)
class Differences:
    """Of one metric: every two arms in every case.

    Attributes
    ----------
    metric
        Which.
    pairs
        Two arms, the later one of the scenario first.
    contrasts
        By pair, the cases in their order; cases that lack one of the arms are left out.
    """

    metric: Metric
    pairs: tuple[tuple[str, str], ...]
    contrasts: tuple[tuple[Contrast, ...], ...]

    def between(self, arm: str, other: str) -> tuple[Contrast, ...]:
        """The cases of a pair."""
        return self.contrasts[self.pairs.index((arm, other))]


def differences(answer: Answer, metric: Metric) -> Differences:
    """Every two arms of every case, by one metric."""
    pairs = tuple((later, earlier) for earlier, later in combinations(answer.results.arms, 2))
    return Differences(metric, pairs, tuple(_of_pair(answer, metric, *pair) for pair in pairs))


def comparisons(of_metrics: Sequence[Differences]) -> MultipleComparisons:
    """How many comparisons a report shows, and what remains of them together."""
    p_values = [
        contrast.found.p_value
        for of_metric in of_metrics
        for of_pair in of_metric.contrasts
        for contrast in of_pair
        if contrast.found.p_value is not None
    ]
    return multiple_comparisons(p_values)


def _of_pair(answer: Answer, metric: Metric, arm: str, other: str) -> tuple[Contrast, ...]:
    both = []
    for _, of_case in answer.cases:
        by_arm = {cell.arm: cell for cell in of_case}
        if arm in by_arm and other in by_arm:
            both.append((by_arm[arm], by_arm[other]))
    found = [
        difference(answer.by_seed(cell, metric.name), answer.by_seed(versus, metric.name))
        for cell, versus in both
    ]
    tested = [i for i, one in enumerate(found) if one.p_value is not None]
    adjusted = holm([found[i].p_value or 0.0 for i in tested])
    standing = {i for i, p in zip(tested, adjusted, strict=True) if p <= 1.0 - CONFIDENCE}
    return tuple(
        Contrast(cell, versus, one, i in standing)
        for i, ((cell, versus), one) in enumerate(zip(both, found, strict=True))
    )
