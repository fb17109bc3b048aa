"""The load as a function of the value, what seeds do to it, and how far a heavy tail limits it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab.calibration.trials import Loads
from aqmlab.stats import CONFIDENCE, Estimate, estimate, t_quantile
from aqmlab.stats.quantiles import interpolated

SHARES = (0.01, 0.03)
"""Accuracies of the mean load whose price is computed."""
NOTICEABLE = 0.02
"""A change of the load per unit that is worth a word."""
_NEARLY_NORMAL = 1000
"""Degrees of freedom from which Student's t is normal to a part in a thousand."""


@dataclass(frozen=True)
class Fit:
    """A line through the origin, by seed, and the value at which it reaches the target.

    Attributes
    ----------
    slope
        Load per unit in bit/s, over seeds.
    value, low, high
        Where the line reaches the target, and the ends of the interval of that; ``None`` if the slope's
        interval reaches zero.
    least, most
        The values from which to which it was fitted.
    change
        By how much the load per unit differs at the greatest from that at the least, relative to the slope.
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
        """Of the slope's interval, relative to the slope."""
        return math.inf if self.slope.half_width is None else self.slope.half_width / self.slope.mean

    @property
    def proportional(self) -> bool:
        """Whether nothing noticeable speaks against a load in proportion to the value."""
        return not (self.change.excludes_zero() and abs(self.change.mean) > NOTICEABLE)


def fit(loads: Loads, target_bps: float) -> Fit:
    """Fit load = slope x value to the loads of each seed; the interval is over seeds.

    A seed's slope is the sum of its loads by that of the values: the best linear estimate where the variance
    of a load grows with the value, as that of sums of independent connections does.

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
    """How much the load of one run differs between seeds.

    Attributes
    ----------
    mean
        Of the loads in bit/s, with its interval.
    variation
        Standard deviation by mean.
    least, p10, median, p90, most
        Of the loads, in bit/s.
    """

    mean: Estimate
    variation: float
    least: float
    p10: float
    median: float
    p90: float
    most: float


def spread(loads: Sequence[float]) -> Spread:
    """The spread of the loads of some seeds, at least two."""
    found, ordered = _of(loads), sorted(loads)
    variance = math.fsum((load - found.mean) ** 2 for load in ordered) / (len(ordered) - 1)
    p10, median, p90 = (interpolated(ordered, q) for q in (0.1, 0.5, 0.9))
    return Spread(found, math.sqrt(variance) / found.mean, ordered[0], p10, median, p90, ordered[-1])


@dataclass(frozen=True)
class Needed:
    """What the mean load takes to be known to a share of it.

    Attributes
    ----------
    share
        Half-width of its interval, relative.
    seeds
        Runs of the present length.
    seconds
        Measured time of one run in their place.
    """

    share: float
    seeds: int
    seconds: float


def needed(share: float, spread: Spread, interval_s: float, tail: float | None) -> Needed:
    """What it takes to know the mean load to a share of it.

    Runs of one length have a finite variance, for no connection carries more than its links do in that time:
    an interval over seeds narrows with the square root of their number. One longer run does the same only if
    sizes have a variance. With a Pareto tail of index a < 2, the mean of n sizes differs from its limit by
    n^(1/a - 1) (Samorodnitsky and Taqqu, Stable Non-Gaussian Random Processes, 1994, section 1.8).

    Parameters
    ----------
    share
        Half-width of the interval, relative to the mean.
    spread
        Between runs.
    interval_s
        Measured time of one run.
    tail
        Index of a Pareto tail with infinite variance, if there is one.
    """
    times = t_quantile(CONFIDENCE, _NEARLY_NORMAL) * spread.variation / share
    exponent = narrowing(tail)
    # Shorter runs than these are not what is asked for.
    return Needed(share, _seeds(share, spread.variation), interval_s * max(times, 1.0) ** (1 / exponent))


def narrowing(tail: float | None) -> float:
    """The exponent by which the interval of a run narrows as its measured time grows."""
    return 0.5 if tail is None else 1 - 1 / tail


def _seeds(share: float, variation: float) -> int:
    """The least number of runs whose t interval is as narrow."""

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
