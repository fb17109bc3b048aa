"""Distributions of queueing delay and of users' waiting times: the mean curve over seeds with its band."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, log10, sqrt

from aqmlab.metrics import EVERY_CLASS, Histogram
from aqmlab.metrics.waits import Waits
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.stats import CONFIDENCE, t_quantile

SHARES = (
    *(0.0, 0.001, 0.005),
    *(0.01 + 0.97 * i / 49 for i in range(50)),
    *(0.985, 0.99, 0.995, 0.999, 1.0),
)
"""The shares at which a curve has points: as many as a 300-pixel-wide panel can show, and the two tails."""


@dataclass(frozen=True)
class DelayCdf:
    """The distribution function of queueing delay in one cell.

    Attributes
    ----------
    delay_ms
        Upper limits of the bins, which are the same for all seeds.
    share
        The share of packets that wait no longer than the upper limit of the bin, as a mean over the seeds.
    low, high
        Pointwise 95 % Student t interval of that mean, within 0 and 1; the curve itself for a single seed.
    n
        Number of seeds.
    p99_ms
        Delay that 99 % of the packets of all seeds do not exceed.
    """

    delay_ms: Sequence[float]
    share: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    n: int
    p99_ms: float


def delay_cdf(
    results: Results, cell: Cell, queue: str | None = None, class_name: str = EVERY_CLASS
) -> DelayCdf | None:
    """The distribution at a queue, by default the cell's own; ``None`` if no packet of the class left it."""
    measured = results.measured(cell)
    if not measured:
        return None
    queue = results.queue_of(cell) if queue is None else queue
    totals = [run.queues.get((queue, class_name)) for run in measured]
    return cdf_of([entry.sojourn for entry in totals if entry is not None])


def cdf_of(histograms: Sequence[Histogram]) -> DelayCdf | None:
    """The distribution of delays in ns, given those of the seeds; ``None`` if all are empty."""
    of_seeds = [bins for bins in histograms if bins.total]
    if not of_seeds:
        return None
    merged = Histogram.merged(of_seeds)
    ends, share = merged.cdf()
    places = sorted({min(bisect_left(share, part), len(ends) - 1) for part in SHARES})
    grid = [0, *(ends[place] for place in places)]
    means, lows, highs = _band([_share_up_to(histogram, grid) for histogram in of_seeds])
    p99_ms = (merged.quantile(0.99) or 0.0) / 1e6
    return DelayCdf([end / 1e6 for end in grid], means, lows, highs, len(of_seeds), p99_ms)


@dataclass(frozen=True)
class WaitCdf:
    """The distribution function of response times, or of page times, in one cell.

    Attributes
    ----------
    time_s
        The times, from 0 to the longest time of any seed, or to the last at which the function is known for
        all seeds.
    share
        Mean over the seeds of the share of requests, or pages, that were completed within that
        time, as :mod:`aqmlab.metrics.response_times` defines it.
    low, high
        Pointwise 95 % Student t interval of that mean, within 0 and 1; the curve itself for a
        single seed.
    n
        Number of seeds.
    complete
        Whether the function is known after the last of these times, where it is constant. If not, requests
        were still in progress at greater ages than any that was seen to complete.
    """

    time_s: Sequence[float]
    share: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    n: int
    complete: bool = True


def wait_cdf(
    results: Results,
    cell: Cell,
    waits: Waits,
    class_name: str = EVERY_CLASS,
    *,
    shares: Sequence[float] = SHARES,
) -> WaitCdf | None:
    """Return the distribution of a class, or of all requests at the cell's queue.

    The distribution has a point at each of the ``shares`` of completed requests, and further points in the
    tail. A seed without a request, or of whose requests nothing is known, is left out. The result is ``None``
    if no request of the other seeds was completed.
    """
    measured = results.measured(cell)
    if not measured:
        return None
    queue = results.queue_of(cell, class_name)
    of_seeds = [waits.times(run.at(queue), class_name) for run in measured]
    known = [times for times in of_seeds if times.curve is not None]
    completed = Histogram.merged([times.completed for times in known])
    if not completed.total:
        return None
    known_to_ns = min(times.curve.known_to_ns for times in known if times.curve is not None)
    times_ns = _times(completed, shares, known_to_ns)
    of_known = [times.shares_within(times_ns) for times in known]
    means, lows, highs = _band([found.tolist() for found in of_known if found is not None])
    times_s = [ns / 1e9 for ns in times_ns]
    return WaitCdf(times_s, means, lows, highs, len(known), complete=known_to_ns == inf)


def _times(completed: Histogram, shares: Sequence[float], known_to_ns: float) -> list[float]:
    """Return the times within which these shares, and five more per decade of the tail, were completed.

    The last is the longest time, or the end of the known part if this is sooner.
    """
    tails = (1 - 10 ** (-i / 5) for i in range(10, int(5 * log10(completed.total)) + 1))
    found = {completed.quantile(part) or 0.0 for part in (*shares, *tails)}
    last = completed.high[-1] if known_to_ns == inf else known_to_ns
    return sorted({0.0, *(time for time in found if time < last), float(last)})


def _band(of_seeds: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float]]:
    """Return, for each point, the mean share over the seeds and the endpoints of its interval."""
    columns = list(zip(*of_seeds, strict=True))
    means = [fsum(column) / len(column) for column in columns]
    halves = [_half_width(column, mean) for column, mean in zip(columns, means, strict=True)]
    lows = [max(0.0, mean - half) for mean, half in zip(means, halves, strict=True)]
    highs = [min(1.0, mean + half) for mean, half in zip(means, halves, strict=True)]
    return means, lows, highs


def _half_width(values: Sequence[float], mean: float) -> float:
    n = len(values)
    if n == 1:
        return 0.0
    variance = fsum((value - mean) ** 2 for value in values) / (n - 1)
    return t_quantile(CONFIDENCE, n - 1) * sqrt(variance / n)


def _share_up_to(histogram: Histogram, ends_ns: Sequence[int]) -> list[float]:
    """Return the share of weight up to each bin limit; exact because all histograms have the same bins."""
    high, share = histogram.cdf()
    below = [0.0, *share]
    return [below[bisect_right(high, end)] for end in ends_ns]
