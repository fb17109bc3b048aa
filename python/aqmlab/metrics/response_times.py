"""The distribution function of response times, including the information from incomplete requests.

F(t) is the share of requests that are completed within t, as :mod:`aqmlab.stats.survival` estimates it from
all requests that end in the measured interval or have not ended at its end. A failed request is never
completed; one that has not ended counts until the age that it has reached; one that began before the measured
interval counts from the age that it had at the beginning of this interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from aqmlab.metrics.histograms import EMPTY_HISTOGRAM, Histogram
from aqmlab.metrics.measured import RequestTotals

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from aqmlab.stats.survival import Ages

    Floats = npt.NDArray[np.float64]

UNKNOWN = 0.01
"""The largest share of requests whose outcome after a time may be unknown without F being unknown there."""
_ROUNDING = 1e-9
"""Shares that differ by less are equal: F is a product of as many factors as there are bins."""


class Curve(NamedTuple):
    """F as straight lines between points; it is constant after the last of them.

    Attributes
    ----------
    t_ns, share
        The points, by ascending time; at the first, which is before time 0, F is 0.
    known_to_ns
        The time up to which F is known; infinite if it always is.
    """

    t_ns: Floats
    share: Floats
    known_to_ns: float


@dataclass(frozen=True)
class ResponseTimes:
    """Response times of one run's requests; all histograms have the same bins.

    Attributes
    ----------
    completed
        Distribution of the response times in ns of the completed requests.
    waited
        Distribution of the ages in ns, at the end of the run, of those that had not ended by then.
    failed
        Distribution of the ages in ns at which requests failed.
    entered
        Distribution of the ages in ns, at the beginning of the measured interval, of those of the above that
        had begun before it.
    """

    completed: Histogram
    waited: Histogram = EMPTY_HISTOGRAM
    failed: Histogram = EMPTY_HISTOGRAM
    entered: Histogram = EMPTY_HISTOGRAM

    @staticmethod
    def of(parts: Iterable[RequestTotals]) -> ResponseTimes:
        """Return the times of several classes and size bands, combined."""
        parts = tuple(parts)
        return ResponseTimes(
            Histogram.merged([totals.response_time for totals in parts]),
            Histogram.merged([totals.waited for totals in parts]),
            Histogram.merged([totals.failed_after for totals in parts]),
            Histogram.merged([totals.entered for totals in parts]),
        )

    @cached_property
    def curve(self) -> Curve | None:
        """F; ``None`` if nothing is known about it, because no request began in the measured interval.

        Completions are spread evenly over their bin. Otherwise, all requests of a bin enter at its low end
        and end at its high end, where completions and failures come first.
        """
        import numpy as np

        from aqmlab.stats.survival import incidence

        ended = (_ages(of.high, of) for of in (self.completed, self.waited, self.failed))
        found = incidence(next(ended), next(ended), next(ended), _ages(self.entered.low, self.entered))
        if found is None:
            return None
        high = np.asarray(self.completed.high, dtype=np.float64)
        low = np.asarray(self.completed.low, dtype=np.float64)
        # A bin of one value is a step of F, so it has a point just before it.
        low = np.where(low == high, np.nextafter(low, -1.0), low)
        known = high <= found.at[-1]
        low, high = low[known], high[known]
        place = np.searchsorted(found.at, high)
        shares = np.concatenate([[0.0], found.share])
        t_ns = np.column_stack([low, high]).ravel()
        share = np.column_stack([shares[place], shares[place + 1]]).ravel()
        # The outcome of the few requests that are left may be unknown, and F is then too low by at most that.
        known_to_ns = found.known_to if found.left[-1] > UNKNOWN else np.inf
        return Curve(np.concatenate([[-1.0], t_ns]), np.concatenate([[0.0], share]), float(known_to_ns))

    def shares_within(self, t_ns: npt.ArrayLike) -> Floats | None:
        """F at several times; ``None`` if it is not known at all of them."""
        import numpy as np

        times = np.asarray(t_ns, dtype=np.float64)
        if self.curve is None or (times > self.curve.known_to_ns).any():
            return None
        shares: Floats = np.interp(times, self.curve.t_ns, self.curve.share)
        return shares

    def share_within(self, t_ns: float) -> float | None:
        """F(t); ``None`` if it is not known."""
        shares = self.shares_within([t_ns])
        return None if shares is None else float(shares[0])

    def area(self, until_ns: float) -> float | None:
        """The mean of F from 0 to a time; it would be 1 if every request were completed immediately."""
        import numpy as np

        times = self.turns(until_ns)
        shares = self.shares_within(times)
        return None if shares is None else float(np.trapezoid(shares, times)) / until_ns

    def gap(self, other: ResponseTimes, until_ns: float) -> float | None:
        """The largest distance between F and the other F, up to a time (the Kolmogorov-Smirnov statistic)."""
        found = self._beside(other, until_ns)
        return None if found is None else float(abs(found[1] - found[2]).max())

    def crossing(self, other: ResponseTimes, until_ns: float) -> float | None:
        """The share of requests that take longer than the time at which F falls behind the other function.

        This is the time up to which the lead of F, integrated over the logarithm of time, is largest, so
        short-lived leads do not affect it. The result is the mean of the two shares of requests that take
        longer, one per function; it is 1 if F never leads, and ``None`` if the two functions are the same.
        """
        import numpy as np

        found = self._beside(other, until_ns)
        if found is None:
            return None
        times, a, b = (of[found[0] > 0] for of in found)
        if (a == b).all():
            return None
        lead = _integral(a - b, np.log(times))
        ahead = np.flatnonzero((a >= b) & (lead > 0))
        if not len(ahead):
            return 1.0
        last = ahead[np.flatnonzero(lead[ahead] == lead[ahead].max())[-1]]
        return float(1 - (a[last] + b[last]) / 2)

    def time_of(self, share: float) -> float | None:
        """The shortest time [ns] in which at least this share was completed; ``None`` if there is none."""
        import numpy as np

        if self.curve is None or not 0 < share <= 1:
            return None
        t_ns, shares, _ = self.curve
        after = int(np.searchsorted(shares, share - _ROUNDING))
        if after == len(shares):
            return None
        (begin, end), (low, high) = t_ns[after - 1 : after + 1], shares[after - 1 : after + 1]
        return float(begin + (end - begin) * min(1.0, (share - low) / (high - low)))

    def turns(self, until_ns: float) -> Sequence[float]:
        """The times, up to and including a given one, between which F is linear."""
        times = [] if self.curve is None else self.curve.t_ns.tolist()
        return [0.0, *(t_ns for t_ns in times if 0 < t_ns < until_ns), until_ns]

    def _beside(self, other: ResponseTimes, until_ns: float) -> tuple[Floats, Floats, Floats] | None:
        """Return the times up to a given one between which both functions are linear, and their values."""
        import numpy as np

        times = np.unique([*self.turns(until_ns), *other.turns(until_ns)])
        a, b = self.shares_within(times), other.shares_within(times)
        return None if a is None or b is None else (times, a, b)


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


def _ages(ends: Sequence[int], histogram: Histogram) -> Ages:
    import numpy as np

    from aqmlab.stats.survival import Ages

    return Ages(np.asarray(ends, dtype=np.float64), np.asarray(histogram.weight, dtype=np.int64))


def _integral(values: Floats, over: Floats) -> Floats:
    """Return the integral of straight lines from the first point to each."""
    import numpy as np

    steps = np.diff(over) * (values[1:] + values[:-1]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share
