"""Metrics of an oscillating queue: seconds with losses or an idle link, and a varying probability.

They describe how the run evolves and are computed from samples, except for the spread of the backlog over the
whole measured interval, which is exact.
"""

from __future__ import annotations

from aqmlab.metrics.measured import Measured, Window
from aqmlab.metrics.queue import backlog_mean, backlog_sd
from aqmlab.metrics.registry import Parameter, metric
from aqmlab.metrics.scope import QUEUE, WINDOW

_BLUE = "Feng, Kandlur, Saha, Shin, BLUE: An Alternative Approach to Active Queue Management, 2001"
_BIN = Parameter("bin", "s", "length of a bin; bins must be no finer than the samples", 1.0)
SHORT_PACKETS = 2.0
"""Number of packets of mean size by which a link that is never idle may fall short of its rate in a bin.

One packet may be in transmission at each edge of the bin."""


@metric(
    "loss_bins_percent",
    label="seconds with loss",
    unit="%",
    definition="share of the bins (1 s each by default) in which the queue drops a packet",
    source=f"oscillation between loss and underutilisation: {_BLUE}; bins are ours",
    better="less",
    takes=QUEUE | WINDOW,
    parameters=(_BIN,),
    from_samples=True,
)
def loss_bins(run: Measured, queue: str, window: Window, *, bin: float | None) -> float | None:
    """Share of the bins with losses."""
    from aqmlab.metrics.queue_samples import DROPPED, by_bins

    drops = by_bins(run, queue, window, bin or 1.0, *DROPPED)
    return 100.0 * float((drops > 0).mean()) if len(drops) else None


@metric(
    "idle_bins_percent",
    label="seconds with an idle link",
    unit="%",
    definition="share of the bins (1 s each by default) in which the link sends less than its rate allows,"
    " by at least two packets of mean size; not defined if the link layer adds bytes to packets",
    source=f"oscillation between loss and underutilisation: {_BLUE}; bins are ours",
    better="less",
    takes=QUEUE | WINDOW,
    parameters=(_BIN,),
    from_samples=True,
)
def idle_bins(run: Measured, queue: str, window: Window, *, bin: float | None) -> float | None:
    """Share of the bins in which the link is idle for part of the time."""
    from aqmlab.metrics.queue_samples import adds_bytes, by_bins, capacity_by_bins

    bin_s = bin or 1.0
    sent = by_bins(run, queue, window, bin_s, "departures_bytes")
    arrived = run.samples("queues", "arrivals_packets", queue).within(window).values.sum()
    if not len(sent) or not arrived or adds_bytes(run, queue):
        return None
    mean_packet = run.samples("queues", "arrivals_bytes", queue).within(window).values.sum() / arrived
    full = capacity_by_bins(run, queue, window, bin_s)
    return 100.0 * float((sent <= full - SHORT_PACKETS * mean_packet).mean())


@metric(
    "probability_mean",
    label="p, mean",
    unit="",
    definition="mean of the samples of the law's probability",
    source=f"marking probability against time: {_BLUE}",
    takes=QUEUE | WINDOW,
    from_samples=True,
)
def probability_mean(run: Measured, queue: str, window: Window) -> float | None:
    """Mean of the probability."""
    return run.samples("law", "p", queue).within(window).mean()


@metric(
    "probability_short_sd",
    label="p, sd over a second",
    unit="",
    definition="mean over bins (1 s each by default) of the standard deviation of the law's"
    " probability in a bin",
    source=f"marking probability over short times: {_BLUE}; bins are ours",
    better="less",
    takes=QUEUE | WINDOW,
    parameters=(_BIN,),
    from_samples=True,
)
def probability_short_sd(run: Measured, queue: str, window: Window, *, bin: float | None) -> float | None:
    """Short-term variation of the probability."""
    from aqmlab.metrics.queue_samples import spreads_by_bins

    samples = run.samples("law", "p", queue).within(window)
    spreads = spreads_by_bins(samples.values, samples.t_s, window.from_s, bin or 1.0)
    return float(spreads.mean()) if len(spreads) else None


@metric(
    "backlog_spread_percent",
    label="backlog, sd / mean",
    unit="%",
    definition="standard deviation of the number of waiting packets, divided by the mean of that number",
    source="coefficient of variation of the queue",
    better="less",
    takes=QUEUE | WINDOW,
)
def backlog_spread(run: Measured, queue: str, window: Window) -> float | None:
    """Oscillation of the queue."""
    mean = backlog_mean(run, queue, window)
    spread = backlog_sd(run, queue, window)
    return 100.0 * spread / mean if mean and spread is not None else None


@metric(
    "mark_gaps_p_value",
    label="marks against a geometric distribution",
    unit="",
    definition="p-value of a chi-square test that compares the number of arrivals from one mark to the next"
    " with the geometric distribution whose parameter is the share of arrivals that were marked; arrivals,"
    " drops and marks of the queue must be recorded one by one; not defined for fewer than 100 marks, or if"
    " nearly all arrivals are marked",
    source=f"marks spaced evenly and randomly: {_BLUE}; Pearson's test, with at least 20 gaps expected in"
    " each class, is ours",
    takes=QUEUE | WINDOW,
    from_samples=True,
)
def mark_gaps(run: Measured, queue: str, window: Window) -> float | None:
    """Whether each arrival is marked independently of the others."""
    from aqmlab.metrics.geometric_test import geometric_p_value

    marked = run.marks_of_arrivals(queue, window)
    return None if marked is None else geometric_p_value(marked)
