"""The end of the initial transient of a series: MSER-5.

This is the truncation rule of White (Simulation 69, 1997), applied to groups of five as in White, Cobb and
Spratt (Winter Simulation Conference 2000). It selects the truncation point that gives the most precise mean
of the remaining values. The statistic that it minimises is the sum of squares of these values about their
mean, divided by the square of their number. Points in the second half of the series are excluded because the
statistic of few values can be small by chance. If the statistic is smallest at the last of the other points,
in the middle of the series, the series is too short for a decision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GROUP = 5
LEAST_GROUPS = 10
"""Smallest number of groups that gives a result (our choice, not the paper's)."""


@dataclass(frozen=True)
class Truncation:
    """Where measurement should begin.

    Attributes
    ----------
    cut
        Number of values of the series to leave out; a multiple of the group size.
    settled
        Whether the cut is in the first half; otherwise the series shows no steady state.
    mean
        Mean of the groups after the cut.
    """

    cut: int
    settled: bool
    mean: float


def mser(series: Sequence[float], group: int = GROUP) -> Truncation | None:
    """Return the truncation point of a series by MSER.

    Parameters
    ----------
    series
        Equally spaced values; an incomplete last group is ignored.
    group
        Number of values in a group: 5 for MSER-5, 1 for the plain rule.

    Returns
    -------
    Truncation or None
        ``None`` for a series of fewer than ten groups.
    """
    count = len(series) // group
    if count < LEAST_GROUPS:
        return None
    groups = [math.fsum(series[i * group : (i + 1) * group]) / group for i in range(count)]
    # Sums from each point to the end; values are taken relative to the overall mean so that no digits are
    # lost.
    centre = math.fsum(groups) / count
    best, least, total, squares = count, math.inf, 0.0, 0.0
    half = count // 2
    for cut in range(count - 1, -1, -1):
        about, left = groups[cut] - centre, count - cut
        total += about
        squares += about * about
        statistic = max(squares - total * total / left, 0.0) / left**2
        if cut <= half and statistic <= least:
            best, least = cut, statistic
    rest = groups[best:]
    return Truncation(best * group, best < half, math.fsum(rest) / len(rest))
