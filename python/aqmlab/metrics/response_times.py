"""The distribution function of response times, including the information from incomplete requests.

F(t) is the share of requests that were completed within t, among those for which this is known. A failed
request is never completed, and one that had not ended at the end of the run counts only for times no longer
than it had waited by then (the reduced sample of Kaplan and Meier, Journal of the American Statistical
Association 53, 1958, section 1).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import log, nextafter
from typing import NamedTuple

from aqmlab.metrics.histograms import EMPTY_HISTOGRAM, Histogram
from aqmlab.metrics.measured import RequestTotals


@dataclass(frozen=True)
class ResponseTimes:
    """Response times of one run's requests.

    Attributes
    ----------
    completed
        Distribution of the response times in ns of the completed requests.
    waited
        Distribution of the waiting times in ns of those that had not ended at the end of the run.
    failed
        Number of failed requests.
    """

    completed: Histogram
    waited: Histogram = EMPTY_HISTOGRAM
    failed: int = 0

    @staticmethod
    def of(parts: Iterable[RequestTotals]) -> ResponseTimes:
        """Return the times of several classes and size bands, combined."""
        parts = tuple(parts)
        return ResponseTimes(
            Histogram.merged([totals.response_time for totals in parts]),
            Histogram.merged([totals.waited for totals in parts]),
            sum(totals.failed for totals in parts),
        )

    def share_within(self, t_ns: float) -> float | None:
        """F(t); ``None`` if there is no request whose state at t is known."""
        waiting = self.waited.total - self.waited.up_to(t_ns)
        known = self.completed.total + self.failed + waiting
        return self.completed.up_to(t_ns) / known if known else None

    def area(self, until_ns: float) -> float | None:
        """The mean of F from 0 to a time; it would be 1 if every request were completed immediately."""
        times = self.turns(until_ns)
        shares = [self.share_within(t_ns) for t_ns in times]
        if None in shares:
            return None
        known = [share for share in shares if share is not None]
        steps = zip(pairwise(times), pairwise(known), strict=True)
        return sum((end - begin) * (a + b) / 2 for (begin, end), (a, b) in steps) / until_ns

    def gap(self, other: ResponseTimes, until_ns: float) -> float | None:
        """The largest distance between F and the other F, up to a time (the Kolmogorov-Smirnov statistic)."""
        times = sorted({*self.turns(until_ns), *other.turns(until_ns)})
        found = 0.0
        for t_ns in times:
            a, b = self.share_within(t_ns), other.share_within(t_ns)
            if a is None or b is None:
                return None
            found = max(found, abs(a - b))
        return found

    def crossing(self, other: ResponseTimes, until_ns: float) -> float | None:
        """The share of requests that take longer than the time at which F falls behind the other function.

        This is the time up to which the lead of F, integrated over the logarithm of time, is largest, so
        short-lived leads do not affect it. The result is the mean of the two shares of requests that take
        longer, one per function; it is 1 if F never leads, and ``None`` if the two functions are the same.
        """
        lead = greatest = 0.0
        crossing = 1.0
        before: tuple[float, float] | None = None
        same = True
        for t_ns in sorted({*self.turns(until_ns), *other.turns(until_ns)} - {0.0}):
            a, b = self.share_within(t_ns), other.share_within(t_ns)
            if a is None or b is None:
                return None
            same = same and a == b
            if before is not None:
                lead += (before[1] + a - b) / 2 * (log(t_ns) - before[0])
            if lead >= greatest and a >= b and lead > 0:
                greatest, crossing = lead, 1 - (a + b) / 2
            before = log(t_ns), a - b
        return None if same else crossing

    def time_of(self, share: float) -> float | None:
        """The shortest time [ns] in which at least this share was completed; ``None`` if there is none."""
        times = sorted({0.0, *self._ends})
        after = bisect_left(times, share, key=lambda t_ns: self.share_within(t_ns) or 0.0)
        if not 0 < share <= 1 or after == len(times):
            return None
        # At time 0, no request is completed.
        begin, end = times[after - 1], times[after]
        low, high = (self.share_within(t_ns) or 0.0 for t_ns in (begin, end))
        return begin + (end - begin) * (share - low) / (high - low)

    def turns(self, until_ns: float) -> Sequence[float]:
        """The times, up to and including a given one, between which F is nearly linear."""
        return sorted({0.0, *(end for end in self._ends if end < until_ns), until_ns})

    @cached_property
    def _ends(self) -> frozenset[float]:
        found: set[float] = set()
        for of in (self.completed, self.waited):
            found.update(map(float, of.low), map(float, of.high))
            # A bin of one value is a step of F, so there is another point just before it.
            steps = (low for low, high in zip(of.low, of.high, strict=True) if low == high > 0)
            found.update(nextafter(low, 0.0) for low in steps)
        return frozenset(found)


class CdfUntil(NamedTuple):
    """The distribution function of response times up to a given time."""

    times: ResponseTimes
    until_ns: float

    def gap(self, other: CdfUntil) -> float | None:
        """The largest distance to another function up to that time, in percent."""
        return _percent(self.times.gap(other.times, self.until_ns))

    def crossing(self, other: CdfUntil) -> float | None:
        """The share of requests [%] that take longer than the time when this curve falls behind another."""
        return _percent(self.times.crossing(other.times, self.until_ns))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share
