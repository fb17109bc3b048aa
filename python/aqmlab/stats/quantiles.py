"""Medians and other quantiles over seeds, with distribution-free intervals.

For every continuous distribution, the number of values below the true quantile is binomial.
Two of the sorted values therefore enclose it with an exactly known probability. With ties, the
coverage is higher, never lower.

Source: David and Nagaraja, Order Statistics, 3rd edition, section 7.1; Conover, Practical
Nonparametric Statistics, section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from aqmlab.stats.beta import share_below
from aqmlab.stats.intervals import CONFIDENCE, Interval, present

_METHOD = "order statistics"


def quantile(values: Iterable[float | None], q: float, confidence: float = CONFIDENCE) -> Interval:
    """A quantile and the order statistics that enclose it.

    Parameters
    ----------
    values
        One value per seed; ``None`` and NaN stand for seeds for which the metric is not defined.
    q
        Between 0 and 1: 0.5 is the median.
    confidence
        Minimum coverage. The interval's own ``confidence`` is its actual coverage, which is higher
        because ranks are whole numbers.

    Returns
    -------
    Interval
        An interval; it has no endpoints if even the smallest and the largest value do not reach the coverage.
    """
    if not 0.0 < q < 1.0:
        raise ValueError(f"the quantile {q:g} is not between 0 and 1")
    ordered = sorted(present(values))
    n = len(ordered)
    if n == 0:
        return Interval(None, None, None, 0, confidence, _METHOD, "no seed has a value")
    middle = interpolated(ordered, q)
    ranks = covering_ranks(n, q, confidence)
    if ranks is None:
        reason = f"a quantile of {q:g} needs more than {n} value{'' if n == 1 else 's'} for an interval"
        return Interval(middle, None, None, n, confidence, _METHOD, reason)
    low, high, coverage = ranks
    return Interval(middle, ordered[low - 1], ordered[high - 1], n, coverage, _METHOD)


def median(values: Iterable[float | None], confidence: float = CONFIDENCE) -> Interval:
    """Return the median and its interval; see :func:`quantile`. An interval at 95 % requires six values."""
    return quantile(values, 0.5, confidence)


def covering_ranks(n: int, q: float, confidence: float) -> tuple[int, int, float] | None:
    """Return the ranks, from 1, of the two sorted values that enclose the ``q`` quantile, and their coverage.

    The lower rank is the largest, and the upper rank the smallest, that cuts off a probability of at most
    ``(1 - confidence) / 2``.
    """
    tail = (1.0 - confidence) / 2.0
    # The value of rank r is above the quantile if fewer than r values are below it. Their number is
    # binomial, and its tails are those of a beta distribution.
    above = {r: share_below(1.0 - q, n - r + 1, r) for r in range(1, n + 1)}
    below = {r: share_below(q, r, n - r + 1) for r in range(1, n + 1)}
    low = max((r for r in above if above[r] <= tail), default=None)
    high = min((r for r in below if below[r] <= tail), default=None)
    if low is None or high is None:
        return None
    return low, high, 1.0 - above[low] - below[high]


def interpolated(ordered: list[float], q: float) -> float:
    """The quantile of sorted values, by linear interpolation between the two nearest ranks.

    This is definition 7 of Hyndman and Fan, The American Statistician 50 (1996), the default of NumPy and R.
    """
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
