"""Interval arithmetic: computing with numbers for which only bounds are known.

Moore, Interval Analysis, 1966. If each input interval contains its true value, so does the result,
however the inputs depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``; both are NaN where nothing is known."""

    low: float
    high: float

    @staticmethod
    def of(value: float | Range) -> Range:
        """A number as a range without width."""
        return value if isinstance(value, Range) else Range(value, value)

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __add__(self, other: float | Range) -> Range:
        other = Range.of(other)
        return Range(self.low + other.low, self.high + other.high)

    def __radd__(self, other: float) -> Range:
        return self + other

    def __sub__(self, other: float | Range) -> Range:
        return self + -Range.of(other)

    def __rsub__(self, other: float) -> Range:
        return -self + other

    def __mul__(self, other: float | Range) -> Range:
        other = Range.of(other)
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return _spanning(corners)

    def __rmul__(self, other: float) -> Range:
        return self * other

    def __truediv__(self, other: float | Range) -> Range:
        other = Range.of(other)
        if other.low <= 0 <= other.high:
            return UNKNOWN
        return _spanning([a / b for a in (self.low, self.high) for b in (other.low, other.high)])

    def __rtruediv__(self, other: float) -> Range:
        return Range.of(other) / self

    def absolute(self) -> Range:
        """Return the range of the absolute value."""
        if self.low <= 0 <= self.high:
            return Range(0.0, max(-self.low, self.high))
        return _spanning([abs(self.low), abs(self.high)])

    def rising(self, function: Callable[[float], float]) -> Range:
        """Apply an increasing function; the result is unknown if any part of the range is undefined."""
        try:
            return Range(function(self.low), function(self.high))
        except ValueError:
            return UNKNOWN

    def least(self, other: float | Range) -> Range:
        """Return the range of the smaller of two numbers."""
        other = Range.of(other)
        return _joined(self, other, min)

    def greatest(self, other: float | Range) -> Range:
        """Return the range of the larger of two numbers."""
        return _joined(self, Range.of(other), max)


UNKNOWN = Range(math.nan, math.nan)


def _spanning(corners: list[float]) -> Range:
    return UNKNOWN if any(map(math.isnan, corners)) else Range(min(corners), max(corners))


def _joined(a: Range, b: Range, choose: Callable[[float, float], float]) -> Range:
    if any(map(math.isnan, (a.low, b.low))):
        return UNKNOWN
    return Range(choose(a.low, b.low), choose(a.high, b.high))
