"""Differences between arms: seed by seed, or between runs that share neither seeds nor traffic.

Arms share their arrivals seed by seed (common random numbers), so their differences vary less than their
values. The interval therefore belongs to the mean of the differences, not to the difference of two means.

The size of an effect is given in the unit of the metric and as a **relative change**. A standardised
difference (Cohen's d_z, Hedges' g_z) is divided by the spread between seeds, which shrinks as runs get
longer, so it would describe the length of the simulation, not the difference between the arms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from aqmlab.stats.intervals import CONFIDENCE, Estimate, Interval, estimate
from aqmlab.stats.student import quantile, within

Values = Mapping[int, float | None]
"""Value by seed; ``None`` or NaN where the metric is not defined."""


@dataclass(frozen=True)
class Difference:
    """The difference between the values ``a`` of one arm and the values ``b`` of another.

    Attributes
    ----------
    estimate
        Mean of ``a - b`` with its t interval; ``None`` if no seed has both values.
    relative
        ``mean(a) / mean(b) - 1`` with Fieller's interval: -0.25 is a decrease of a quarter.
    p_value
        P value of the paired t test of the hypothesis that the mean difference is zero; ``None`` where there
        is no interval.
    alone
        Seeds for which only one of the arms has a value: they are left out.
    unpaired
        Number of values of each arm, if seeds do not form pairs.
    """

    estimate: Estimate | None
    relative: Interval
    p_value: float | None
    alone: tuple[int, ...] = ()
    unpaired: tuple[int, int] | None = None

    @property
    def counted(self) -> str:
        """What the difference is based on: ``10 pairs``, ``10 and 8 runs, not paired``."""
        if self.unpaired is not None:
            first, second = self.unpaired
            return f"{first} and {second} run{'' if second == 1 else 's'}, not paired"
        n = self.estimate.n if self.estimate is not None else 0
        return "1 pair" if n == 1 else f"{n} pairs"

    @property
    def seen(self) -> bool:
        """Whether the interval of the difference excludes zero."""
        return self.estimate is not None and self.estimate.excludes_zero()


def difference(a: Values, b: Values, confidence: float = CONFIDENCE) -> Difference:
    """Compare two arms over the seeds for which both have a value.

    Parameters
    ----------
    a, b
        Value by seed; the change is from ``b`` to ``a``.
    confidence
        Confidence of both intervals.
    """
    of_a, of_b = defined(a), defined(b)
    seeds = sorted(of_a.keys() & of_b.keys())
    xs, ys = [of_a[seed] for seed in seeds], [of_b[seed] for seed in seeds]
    found = estimate((x - y for x, y in zip(xs, ys, strict=True)), confidence)
    alone = tuple(sorted(of_a.keys() ^ of_b.keys()))
    return Difference(
        found, _relative(xs, ys, confidence), p_value(found, found.n - 1) if found else None, alone
    )


def defined(values: Values) -> dict[int, float]:
    """The seeds that have a value."""
    return {seed: x for seed, x in values.items() if x is not None and not math.isnan(x)}


def p_value(found: Estimate, degrees: float) -> float | None:
    """Return the two-sided p value of the hypothesis that the mean is zero, from the mean's interval.

    The half-width of the interval is a known multiple of the standard error.

    Parameters
    ----------
    found
        The mean.
    degrees
        Degrees of freedom of its interval.
    """
    if found.half_width is None:
        return None
    if found.half_width == 0:
        return 1.0 if found.mean == 0 else 0.0
    t = abs(found.mean) * quantile(found.confidence, degrees) / found.half_width
    return max(0.0, 1.0 - within(t, degrees))


def _relative(xs: Sequence[float], ys: Sequence[float], confidence: float) -> Interval:
    """Return the relative change and its interval: all r at which ``x - r y`` may have a zero mean.

    The method is that of Fieller, Journal of the Royal Statistical Society B 16 (1954), for pairs. It is
    exact for normal pairs, unlike the delta method, even if the denominator varies widely. The ratios are the
    solutions of a quadratic inequality; they form a bounded interval if the mean of the denominator differs
    significantly from zero.
    """
    n, method = len(xs), "Fieller"
    if n == 0:
        return Interval(None, None, None, 0, confidence, method, "no seed has both values")
    mean_x, mean_y = math.fsum(xs) / n, math.fsum(ys) / n
    if mean_y == 0:
        return Interval(None, None, None, n, confidence, method, "a change relative to zero is undefined")
    change = mean_x / mean_y - 1
    if n == 1:
        return Interval(change, None, None, n, confidence, method, "one pair: no interval")
    if len(set(xs)) == len(set(ys)) == 1:
        return Interval(change, change, change, n, confidence, method)
    weight = quantile(confidence, n - 1) ** 2 / (n * (n - 1))
    xx = weight * math.fsum((x - mean_x) ** 2 for x in xs)
    yy = weight * math.fsum((y - mean_y) ** 2 for y in ys)
    xy = weight * math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    square, half, rest = mean_y**2 - yy, mean_x * mean_y - xy, mean_x**2 - xx
    if square <= 0:
        reason = "the reference does not differ significantly from zero"
        return Interval(change, None, None, n, confidence, method, reason)
    reach = math.sqrt(max(half * half - square * rest, 0.0))
    return Interval(change, (half - reach) / square - 1, (half + reach) / square - 1, n, confidence, method)


def unpaired_difference(a: Values, b: Values, confidence: float = CONFIDENCE) -> Difference:
    """Compare the means of two sets of independent runs, whose spreads may differ.

    Parameters
    ----------
    a, b
        Value by seed; equal seeds do not form pairs here. The change is from ``b`` to ``a``.
    confidence
        Confidence of the interval.
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
    relative = Interval(ratio, None, None, count, confidence, reason="not paired: no interval for the ratio")
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
    """Return the mean and the square of its standard error, which is ``None`` for a single value."""
    mean, n = math.fsum(values) / len(values), len(values)
    if n == 1:
        return mean, None
    if min(values) == max(values):
        # Rounding errors of the mean must not appear as a spread or a difference.
        return min(values), 0.0
    return mean, math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n
