"""The share of seeds in which something happens, with an interval."""

from __future__ import annotations

from collections.abc import Iterable

from aqmlab.stats.beta import quantile
from aqmlab.stats.intervals import CONFIDENCE, Interval


def share(outcomes: Iterable[bool | None], confidence: float = CONFIDENCE) -> Interval:
    """Share of the seeds for which a condition was true, with its Clopper-Pearson interval.

    Parameters
    ----------
    outcomes
        One value per seed; ``None`` where unknown.
    confidence
        Minimum coverage of the interval.
    """
    known = [outcome for outcome in outcomes if outcome is not None]
    return clopper_pearson(sum(known), len(known), confidence)


def clopper_pearson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the exact interval, which covers the true share with *at least* its confidence.

    Each endpoint is the share at which the binomial tail beyond the observation has probability
    ``(1 - confidence) / 2``.

    Source: Clopper and Pearson, Biometrika 26 (1934); computed from quantiles of the beta distribution.
    """
    if n == 0:
        return Interval(None, None, None, 0, confidence, "Clopper-Pearson", "no seed has a value")
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if successes == 0 else quantile(tail, successes, n - successes + 1)
    high = 1.0 if successes == n else quantile(1.0 - tail, successes + 1, n - successes)
    return Interval(successes / n, low, high, n, confidence, "Clopper-Pearson")
