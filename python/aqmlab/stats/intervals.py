"""Means and intervals over seeds.

Every seed is one independent replication, so the interval is Student's t over the values of the seeds. A
single run has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from aqmlab.stats.student import quantile

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate with the endpoints of its interval, which need not be symmetric about the estimate.

    Attributes
    ----------
    estimate
        The estimate, in the unit of the values; ``None`` without values.
    low, high
        The endpoints; ``None`` if there is no interval.
    n
        Number of values.
    confidence
        The minimum probability that such an interval covers the true value, exact or approximate:
        see ``method``.
    method
        The method: ``"Student t"``, ``"Clopper-Pearson"``, ...
    reason
        Why there is no interval; empty if there is one.
    """

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    confidence: float = CONFIDENCE
    method: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes
    ----------
    mean
        The arithmetic mean, in the unit of the values.
    half_width
        Half the width of the interval around it; ``None`` where there are fewer than two values.
    n
        Number of values.
    confidence
        The probability that such an interval covers the true mean.
    """

    mean: float
    half_width: float | None
    n: int
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        from aqmlab.text.numbers import estimate_text

        return estimate_text(self, "")

    def _repr_html_(self) -> str:
        seen = "no interval" if self.half_width is None else f"{100 * self.confidence:g} % interval"
        return f"{self} <span style='opacity:0.75'>({seen}, n = {self.n})</span>"

    @property
    def low(self) -> float | None:
        """Lower endpoint of the interval."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper endpoint of the interval."""
        return None if self.half_width is None else self.mean + self.half_width

    def interval(self) -> Interval:
        """The same estimate as an :class:`Interval`."""
        reason = "" if self.half_width is not None else "one value has no interval"
        return Interval(self.mean, self.low, self.high, self.n, self.confidence, "Student t", reason)

    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero; false if there is no interval."""
        return self.half_width is not None and abs(self.mean) > self.half_width


def estimate(values: Iterable[float | None], confidence: float = CONFIDENCE) -> Estimate | None:
    """Mean and t interval of the existing values.

    Parameters
    ----------
    values
        One value per seed; ``None`` and NaN stand for seeds for which the metric is not defined.
    confidence
        Coverage of the interval.

    Returns
    -------
    Estimate or None
        ``None`` if there is no value; an estimate without an interval if there is only one.
    """
    there = present(values)
    n = len(there)
    if n == 0:
        return None
    middle = math.fsum(there) / n
    if n == 1:
        return Estimate(middle, None, 1, confidence)
    if min(there) == max(there):
        # Rounding errors of the mean must not appear as a spread.
        return Estimate(there[0], 0.0, n, confidence)
    variance = math.fsum((value - middle) ** 2 for value in there) / (n - 1)
    half_width = quantile(confidence, n - 1) * math.sqrt(variance / n)
    return Estimate(middle, half_width, n, confidence)


def mean(values: Iterable[float | None], confidence: float = CONFIDENCE) -> Interval:
    """Like :func:`estimate`, but returns an :class:`Interval`; its estimate is ``None`` without values."""
    found = estimate(values, confidence)
    if found is None:
        return Interval(None, None, None, 0, confidence, "Student t", "no seed has a value")
    return found.interval()


def present(values: Iterable[float | None]) -> list[float]:
    """The existing values: neither ``None`` nor NaN."""
    return [value for value in values if value is not None and not math.isnan(value)]
