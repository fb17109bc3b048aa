"""An interval from a single long run: batch means.

The values of one run depend on each other, so their spread says little about the uncertainty of the mean.
Means of long stretches are nearly independent and nearly normal, so Student's t applies to them. There are
twenty batches: with more, each would be shorter and depend more on its neighbours, and beyond about ten the
interval hardly narrows (Schmeiser, Operations Research 30, 1982). Von Neumann's ratio shows whether they are
long enough. It is the mean square of the differences between successive batches, divided by the variance of
the batches, and is close to two if the batches are independent.

Several seeds are better where they are available, because they are certainly independent.

Sources: Law, Simulation Modeling and Analysis, section 9.5.3; von Neumann, and Young, Annals of
Mathematical Statistics 12 (1941); Fishman, Management Science 24 (1978), who uses the ratio to judge batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from aqmlab.stats.intervals import CONFIDENCE, Estimate, Interval, estimate

BATCHES = 20
LEAST_IN_A_BATCH = 5
_Z_OF_LEVEL = 1.6448536269514722
"""The 0.95 quantile of the normal distribution: batches are tested for independence, one-sided, at 5 %."""


@dataclass(frozen=True)
class BatchMeans:
    """Batches of one run.

    Attributes
    ----------
    estimate
        Mean and t interval over the batches; ``None`` for a series that is too short for them.
    batches
        Number of batches.
    values
        Number of values in each.
    lag1
        Correlation of each batch with the next one, from the von Neumann ratio: ``1 - ratio / 2``.
    independent
        Whether the batches can be considered independent: if not, the interval is too narrow.
    """

    estimate: Estimate | None
    batches: int
    values: int
    lag1: float
    independent: bool

    @property
    def interval(self) -> Interval:
        """The interval; unless the batches are independent, it has no endpoints, and ``reason`` says why."""
        method = "batch means"
        if self.estimate is None:
            reason = f"{self.batches} batches need at least {self.batches * LEAST_IN_A_BATCH} values"
            return Interval(None, None, None, 0, CONFIDENCE, method, reason)
        if not self.independent:
            reason = f"the batches depend on each other (correlation {self.lag1:.2f}): the run is too short"
            return Interval(
                self.estimate.mean, None, None, self.batches, self.estimate.confidence, method, reason
            )
        found = self.estimate
        return Interval(found.mean, found.low, found.high, found.n, found.confidence, method)


def batch_means(
    series: Sequence[float], batches: int = BATCHES, confidence: float = CONFIDENCE
) -> BatchMeans:
    """Return the mean over one run's measured time, with an interval from batches.

    Parameters
    ----------
    series
        Equally spaced values after the warm-up. If they do not divide evenly into batches, the first few are
        left out.
    batches
        Number of batches.
    confidence
        Nominal coverage.
    """
    size = len(series) // batches
    if size < LEAST_IN_A_BATCH:
        return BatchMeans(None, batches, size, 0.0, False)
    begin = len(series) - size * batches
    means = [math.fsum(series[i : i + size]) / size for i in range(begin, len(series), size)]
    middle = math.fsum(means) / batches
    squares = math.fsum((mean - middle) ** 2 for mean in means)
    if min(means) == max(means):
        return BatchMeans(estimate(means, confidence), batches, size, 0.0, True)
    steps = math.fsum((after - before) ** 2 for before, after in pairwise(means))
    lag1 = 1.0 - steps / (2.0 * squares)
    independent = lag1 <= _greatest_by_chance(batches)
    return BatchMeans(estimate(means, confidence), batches, size, lag1, independent)


def _greatest_by_chance(count: int) -> float:
    """Return the bound below which the correlation of independent normal values lies with 95 % probability.

    The correlation is nearly normal about zero, with variance ``(count - 2) / (count^2 - 1)`` (Young 1941).
    """
    return _Z_OF_LEVEL * math.sqrt((count - 2) / (count**2 - 1))
