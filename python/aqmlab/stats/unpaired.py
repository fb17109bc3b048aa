"""Differences between arms whose runs have nothing in common: other seeds, or other traffic.

Source: Welch, Biometrika 34 (1947); degrees of freedom of Satterthwaite, Biometrics Bulletin 2 (1946).
"""

from __future__ import annotations

import math
from collections.abc import Collection

from aqmlab.stats.intervals import CONFIDENCE, Estimate, Interval
from aqmlab.stats.paired import Difference, Values, defined, p_value
from aqmlab.stats.student import quantile


def unpaired_difference(a: Values, b: Values, confidence: float = CONFIDENCE) -> Difference:
    """Compare the means of two sets of independent runs, whose spreads may differ.

    Parameters
    ----------
    a, b
        Value by seed; equal seeds mean nothing here. The change is from ``b`` to ``a``.
    confidence
        Of the interval.
    """
    xs, ys = defined(a).values(), defined(b).values()
    sizes = (len(xs), len(ys))
    count = sum(sizes)
    nothing = Interval(None, None, None, count, confidence, reason="one of the two has no value")
    if 0 in sizes:
        return Difference(None, nothing, None, unpaired=sizes)
    (mean_x, error_x), (mean_y, error_y) = _mean_and_error(xs), _mean_and_error(ys)
    mean = mean_x - mean_y
    ratio = mean_x / mean_y - 1 if mean_y else None
    relative = Interval(ratio, None, None, count, confidence, reason="not paired: no interval of the ratio")
    if error_x is None or error_y is None:
        return Difference(Estimate(mean, None, count, confidence), relative, None, unpaired=sizes)
    square = error_x + error_y
    if square == 0:
        found, degrees = Estimate(mean, 0.0, count, confidence), 1.0
    else:
        degrees = square**2 / (error_x**2 / (len(xs) - 1) + error_y**2 / (len(ys) - 1))
        found = Estimate(mean, quantile(confidence, degrees) * math.sqrt(square), count, confidence)
    return Difference(found, relative, p_value(found, degrees), unpaired=sizes)


def _mean_and_error(values: Collection[float]) -> tuple[float, float | None]:
    """The mean and the square of its standard error, which a single value does not have."""
    mean, n = math.fsum(values) / len(values), len(values)
    if n == 1:
        return mean, None
    if min(values) == max(values):
        # No rounding of the mean is to look like a spread, or like a difference.
        return min(values), 0.0
    return mean, math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n
