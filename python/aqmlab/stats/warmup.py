"""Where a series has forgotten how it began: MSER-5.

The truncation rule of White (Simulation 69, 1997), by groups of five as White, Cobb and Spratt made it
(Winter Simulation Conference 2000): of all truncation points take the one after which the mean is known
best, that is where the sum of squares about the mean of the rest, by the square of how many are left, is
least. Points in the second half of the series do not count: with little left the statistic is small by
chance. If the least value is found there or at its edge, the series is too short to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

GROUP = 5
LEAST_GROUPS = 10
"""Fewer groups say nothing (ours)."""


@dataclass(frozen=True)
class Truncation:
    """Where to begin to measure.

    Attributes
    ----------
    cut
        How many values of the series to leave out; a multiple of the group.
    settled
        Whether the cut lies within the first half: else the series shows no steady state.
    mean
        Of the groups after the cut.
    """

    cut: int
    settled: bool
    mean: float


def mser(series: npt.NDArray[np.float64], group: int = GROUP) -> Truncation | None:
    """The truncation point of a series by MSER.

    Parameters
    ----------
    series
        Equally spaced; what does not fill a last group is not looked at.
    group
        Values in a group: 5 is MSER-5, 1 the plain rule.

    Returns
    -------
    Truncation or None
        ``None`` for a series of less than ten groups.
    """
    import numpy as np

    count = len(series) // group
    if count < LEAST_GROUPS:
        return None
    groups = np.asarray(series[: count * group], dtype=np.float64).reshape(count, group).mean(axis=1)
    # Sums from each point to the end, about the overall mean so that no digits are lost.
    centre = groups.mean()
    about = (groups - centre)[::-1]
    left = np.arange(1, count + 1)
    sums, squares = np.cumsum(about), np.cumsum(about * about)
    statistic = np.maximum(squares - sums * sums / left, 0.0) / left**2
    by_cut = statistic[::-1]
    half = count // 2
    best = int(np.argmin(by_cut[: half + 1]))
    return Truncation(best * group, best < half, float(groups[best:].mean()))
