"""Samples of a queue in a part of the run: sums of its counters, over the whole part or per bin."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aqmlab.metrics.measured import Measured, Samples, Window

Floats = npt.NDArray[np.float64]

DROPPED = ("dropped_by_law_packets", "dropped_not_by_law_packets")
"""The columns of ``queues`` that count drops; each drop is counted in one of the two."""
EDGE = 1e-6
"""Times are whole nanoseconds divided by 1e9, so differences below this fraction of a bin are ignored."""


def adds_bytes(run: Measured, queue: str) -> bool:
    """Return whether the link behind a queue adds bytes to each packet; samples do not include these."""
    return any(link.name == queue and link.overhead_bytes > 0 for link in run.run.plan.links)


def counted(run: Measured, queue: str, window: Window, *columns: str) -> float | None:
    """Sum of counters of ``queues`` over a part of the run; ``None`` if that part contains no sample.

    A counter's sample is the increase since the previous one. The sum is therefore exact if both edges are
    sampling instants, and otherwise off by at most the counts of two intervals.
    """
    parts = [run.samples("queues", column, queue).within(window).values for column in columns]
    return float(np.sum(parts)) if len(parts[0]) else None


def capacity(run: Measured, queue: str, window: Window) -> float:
    """Bytes that the link behind a queue could send in a part of the run, its own overhead included."""
    if run.run.changes(queue):
        return float(np.sum(run.samples("capacity", "capacity_bytes", queue).within(window).values))
    return run.run.rate_bps(queue) * window.length_s / 8


def capacity_by_bins(run: Measured, queue: str, window: Window, bin_s: float) -> Floats | float:
    """Return the capacity of each whole bin in bytes, like :func:`by_bins`; a number if it is constant."""
    if run.run.changes(queue):
        return by_bins(run, queue, window, bin_s, "capacity_bytes", table="capacity")
    return run.run.rate_bps(queue) * bin_s / 8


def by_bins(
    run: Measured, queue: str, window: Window, bin_s: float, *columns: str, table: str = "queues"
) -> Floats:
    """Return the sum of counters in each whole bin of a part of the run; the first bin begins with the part.

    Empty if bins are finer than the samples, or if there are no samples.
    """
    samples = [run.samples(table, column, queue).within(window) for column in columns]
    times = samples[0].t_s
    count = int(window.length_s / bin_s + EDGE)
    if not count or len(times) < 2 or float(times[1] - times[0]) > bin_s * (1 + EDGE):
        return np.zeros(0)
    # A sample at the end of a bin covers the time up to that instant.
    bins = np.ceil((times - window.from_s) / bin_s - EDGE).astype(np.int64) - 1
    values = np.sum([each.values for each in samples], axis=0)
    sums: Floats = np.bincount(bins, weights=values, minlength=count)[:count].astype(np.float64)
    return sums


def spreads_by_bins(values: Floats, times: Floats, begin_s: float, bin_s: float) -> Floats:
    """Standard deviation in each bin that has two values or more; the first bin begins at ``begin_s``."""
    bins = np.ceil((times - begin_s) / bin_s - EDGE).astype(np.int64) - 1
    number = np.bincount(bins)
    means = np.bincount(bins, weights=values) / np.maximum(number, 1)
    squares = np.bincount(bins, weights=(values - means[bins]) ** 2)
    spreads: Floats = np.sqrt(squares[number > 1] / number[number > 1])
    return spreads


def slow_at(run: Measured, queue: str, limit: float) -> Samples:
    """Return 1 at each sample at which more bytes wait than the link sends within ``limit`` seconds, else 0.

    Samples less than the limit before the last one are left out.
    """
    backlog = run.samples("queues", "backlog_bytes", queue)
    link = run.run.plan.link(queue)
    if link is not None and link.overhead_bytes:
        packets = run.samples("queues", "backlog_packets", queue)
        backlog = Samples(backlog.t_s, backlog.values + link.overhead_bytes * packets.values)
    known = backlog.t_s + limit <= backlog.t_s[-1:].max(initial=0.0) + 1e-9
    times, waiting = backlog.t_s[known], backlog.values[known]
    return Samples(times, (waiting > _sent_within(run, queue, times, limit)).astype(np.float64))


def _sent_within(run: Measured, queue: str, times: Floats, limit: float) -> Floats | float:
    """Bytes that the link can send from each of these times on, until ``limit`` later."""
    if not run.run.changes(queue):
        return run.run.rate_bps(queue) * limit / 8
    capacity = run.samples("capacity", "capacity_bytes", queue)
    ends = np.concatenate([[0.0], capacity.t_s])
    sums = np.concatenate([[0.0], np.cumsum(capacity.values)])
    # Within a sample, the rate is taken to be constant.
    sent: Floats = np.interp(times + limit, ends, sums) - np.interp(times, ends, sums)
    return sent
