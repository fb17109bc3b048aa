"""The load as a function of the value, its variation between seeds, and the limits set by a heavy tail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab.calibration.trials import Loads
from aqmlab.stats import CONFIDENCE, Estimate, estimate, t_quantile
from aqmlab.stats.quantiles import interpolated

SHARES = (0.01, 0.03)
"""Accuracies of the mean load for which the number of runs required is computed."""
NOTICEABLE = 0.02
"""The load per unit of the value may change by this share without a remark."""
_NEARLY_NORMAL = 1000
"""Degrees of freedom above which Student's t and the normal distribution agree to one part in a thousand."""


@dataclass(frozen=True)
class Fit:
    """A line through the origin, fitted seed by seed, and the value at which it reaches the target.

    Attributes
    ----------
    slope
        Mean over the seeds of the load per unit, in bit/s.
    value, low, high
        The value at which the line reaches the target, and the limits of its interval; ``high`` is
        ``None`` if the slope's interval reaches zero.
    least, most
        The smallest and the largest value that the fit includes.
    change
        Difference between the load per unit at the largest and at the smallest value, relative to
        the slope.
    """

    slope: Estimate
    value: float
    low: float | None
    high: float | None
    least: float
    most: float
    change: Estimate

    @property
    def half_width(self) -> float:
        """Half-width of the slope's interval, relative to the slope."""
        return math.inf if self.slope.half_width is None else self.slope.half_width / self.slope.mean

    @property
    def proportional(self) -> bool:
        """Whether the load is proportional to the value, without a noticeable deviation."""
        return not (self.change.excludes_zero() and abs(self.change.mean) > NOTICEABLE)


def fit(loads: Loads, target_bps: float) -> Fit:
    """Fit load = slope x value to the loads of each seed; the interval is over seeds.

    A seed's slope is the sum of its loads divided by the sum of the values. This is the best linear estimate
    if the variance of a load is proportional to the value, as it is for sums over independent connections.

    Raises
    ------
    ZeroDivisionError
        If no load is above zero.
    """
    values = sorted(loads)
    least, most = values[0], values[-1]
    seeds = list(loads[least])
    slopes = [sum(loads[value][seed] for value in values) / sum(values) for seed in seeds]
    slope = _of(slopes)
    changes = [(loads[most][seed] / most - loads[least][seed] / least) / slope.mean for seed in seeds]
    low = None if slope.high is None else target_bps / slope.high
    high = None if slope.low is None or slope.low <= 0 else target_bps / slope.low
    return Fit(slope, target_bps / slope.mean, low, high, least, most, _of(changes))


@dataclass(frozen=True)
class Spread:
    """How much the load of a single run varies between seeds.

    Attributes
    ----------
    mean
        Mean of the loads in bit/s, with its interval.
    variation
        Standard deviation divided by the mean.
    least, p10, median, p90, most
        Extremes and quantiles of the loads, in bit/s.
    """

    mean: Estimate
    variation: float
    least: float
    p10: float
    median: float
    p90: float
    most: float


def spread(loads: Sequence[float]) -> Spread:
    """Return the spread of the loads of at least two seeds."""
    found, ordered = _of(loads), sorted(loads)
    variance = math.fsum((load - found.mean) ** 2 for load in ordered) / (len(ordered) - 1)
    p10, median, p90 = (interpolated(ordered, q) for q in (0.1, 0.5, 0.9))
    return Spread(found, math.sqrt(variance) / found.mean, ordered[0], p10, median, p90, ordered[-1])


@dataclass(frozen=True)
class Needed:
    """The cost of knowing the mean load to a given relative accuracy.

    Attributes
    ----------
    share
        Half-width of the mean load's interval, relative to the mean.
    seeds
        Number of runs of the present length that this accuracy takes.
    seconds
        Measured time that a single run would need instead.
    """

    share: float
    seeds: int
    seconds: float


def needed(share: float, spread: Spread, interval_s: float, tail: float | None) -> Needed:
    """Return the cost of knowing the mean load to a given relative accuracy.

    The load of runs of a given length has a finite variance, because no connection can carry more than its
    links can carry in that time. An interval over seeds therefore narrows with the square root of their
    number. The interval of a single run narrows with the square root of its length only if the sizes have a
    finite variance. With a Pareto tail of index a < 2, the mean of n sizes differs from its limit by an
    amount of the order of n^(1/a - 1) (Samorodnitsky and Taqqu, Stable Non-Gaussian Random Processes, 1994,
    section 1.8).

    Parameters
    ----------
    share
        Half-width of the interval, relative to the mean.
    spread
        The spread between runs.
    interval_s
        Measured time of one run.
    tail
        Index of a Pareto tail with infinite variance, if there is one.
    """
    times = t_quantile(CONFIDENCE, _NEARLY_NORMAL) * spread.variation / share
    exponent = narrowing(tail)
    # The answer is never shorter than one of the present runs.
    return Needed(share, _seeds(share, spread.variation), interval_s * max(times, 1.0) ** (1 / exponent))


def narrowing(tail: float | None) -> float:
    """Return the exponent with which a run's confidence interval narrows as its measured time grows."""
    return 0.5 if tail is None else 1 - 1 / tail


def _seeds(share: float, variation: float) -> int:
    """Return the smallest number of runs whose t interval has at most this relative half-width."""

    def wide(n: int) -> bool:
        return t_quantile(CONFIDENCE, min(n - 1, _NEARLY_NORMAL)) * variation / math.sqrt(n) > share

    high = 2
    while wide(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(middle) else (low, middle)
    return high


def _of(values: Sequence[float]) -> Estimate:
    found = estimate(values)
    assert found is not None, "there is a seed"
    return found
