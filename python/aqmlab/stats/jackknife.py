"""Standard deviations and smooth functions of means: the jackknife over the seeds.

Miller, Biometrika 61, 1974; with logarithms, Annals of Mathematical Statistics 39, 1968.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from aqmlab.stats.intervals import Interval
from aqmlab.stats.student import quantile as t_quantile


def deviation(values: npt.NDArray[np.float64]) -> float:
    """Return the standard deviation over the seeds; NaN for fewer than two."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def spread(seeds: Sequence[float], confidence: float) -> Interval:
    """Return the standard deviation over the seeds; its interval comes from a jackknife of the logarithm."""
    values = np.asarray(seeds)
    whole = deviation(values)
    if whole == 0:
        return Interval(0.0, 0.0, 0.0, len(values), confidence, "no spread at all")
    without = [deviation(np.delete(values, i)) for i in range(len(values))]
    return jackknife(np.array([whole, *without]), confidence, logarithmic=True)


def jackknife(
    replicates: npt.NDArray[np.float64], confidence: float, *, logarithmic: bool = False
) -> Interval:
    """Return the interval of a figure from its value for all seeds and its values without each seed in turn.

    Parameters
    ----------
    replicates
        The values; one more than there are seeds.
    confidence
        Approximate coverage.
    logarithmic
        Whether the logarithm is assumed to be approximately normally distributed; if so, there is an
        interval only if all values are positive.
    """
    n = len(replicates) - 1
    method = "jackknife of the logarithm" if logarithmic else "jackknife"
    used = np.log(replicates) if logarithmic and (replicates > 0).all() else replicates
    if np.isnan(used).any() or (logarithmic and used is replicates):
        return Interval(
            None, None, None, n, confidence, method, "whether it is defined depends on a single seed"
        )
    pseudo = n * used[0] - (n - 1) * used[1:]
    middle = float(used[0])
    if n < 2:
        return Interval(float(replicates[0]), None, None, n, confidence, method, "one value has no interval")
    reach = t_quantile(confidence, n - 1) * float(pseudo.std(ddof=1)) / math.sqrt(n)
    if np.ptp(used) <= 1e-12 * abs(middle):
        reach = 0.0  # rounding errors must not look like a spread
    low, high = middle - reach, middle + reach
    back: Callable[[float], float] = math.exp if logarithmic else float
    return Interval(float(replicates[0]), back(low), back(high), n, confidence, method)
