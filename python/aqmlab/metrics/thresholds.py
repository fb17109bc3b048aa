"""Metrics of RED's average queue between its thresholds.

The average comes from the law's samples, each of which covers the time up to it. The backlog comes
from its exact distribution in the recording. Averages and thresholds are in packets; for a law that
measures bytes, they are divided by its mean packet size.
"""

from __future__ import annotations

from dataclasses import dataclass

from aqmlab.metrics.measured import EVERY_CLASS, Measured, Samples, Window
from aqmlab.metrics.registry import Parameter, metric
from aqmlab.metrics.scope import QUEUE, WINDOW

HOLD_S = 10.0
"""Time between the thresholds after which the average counts as converged: forty RTTs of 250 ms."""

_MISKOVIC = (
    "Miskovic, Petrovic, Trajkovic, Implementation and performance analysis of AQM mechanisms, section VII"
)
_BAND = (
    Parameter("low", "packets", "lower end of the band; the law's min_th if not given"),
    Parameter("high", "packets", "upper end of the band; the law's max_th if not given"),
)


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a law on the average queue, in packets.

    Attributes
    ----------
    min_th, max_th
        The thresholds, in packets of mean size where the law measures bytes.
    units_a_packet
        Number of units of the average per packet: 1 where the law measures packets, otherwise the size of its
        mean packet in bytes.
    """

    min_th: float
    max_th: float
    units_a_packet: float


def thresholds(run: Measured, queue: str) -> Thresholds | None:
    """The thresholds of a queue's law; ``None`` if it has none."""
    link = run.run.plan.link(queue)
    if link is None or "measure" not in link.settings:
        return None
    low, high = link.packets("min_th"), link.packets("max_th")
    return None if low is None or high is None else Thresholds(low, high, link.units_a_packet)


def average(run: Measured, queue: str) -> Samples | None:
    """Samples of the average queue in packets over the whole run; ``None`` where there are none."""
    of_law = thresholds(run, queue)
    if of_law is None:
        return None
    samples = run.samples("law", "avg", queue)
    return Samples(samples.t_s, samples.values / of_law.units_a_packet) if len(samples.t_s) else None


def _within(run: Measured, queue: str, window: Window) -> Samples | None:
    samples = average(run, queue)
    return None if samples is None else samples.within(window)


@metric(
    "average_mean_packets",
    label="RED's average, mean",
    unit="packets",
    definition="mean of the samples of the law's average queue",
    source="average queue: Floyd, Jacobson 1993, section 4",
    takes=QUEUE | WINDOW,
    from_samples=True,
)
def average_mean(run: Measured, queue: str, window: Window) -> float | None:
    """Mean of the average queue."""
    samples = _within(run, queue, window)
    return None if samples is None else samples.mean()


@metric(
    "average_sd_packets",
    label="RED's average, sd",
    unit="packets",
    definition="standard deviation of the samples of the law's average queue",
    source=f"variation of the average: {_MISKOVIC}",
    better="less",
    takes=QUEUE | WINDOW,
    from_samples=True,
)
def average_sd(run: Measured, queue: str, window: Window) -> float | None:
    """Variation of the average queue."""
    samples = _within(run, queue, window)
    return None if samples is None else samples.sd()


@metric(
    "average_in_band_percent",
    label="RED's average in its band",
    unit="%",
    definition="share of the law's samples whose average queue is between min_th and max_th, both included",
    source=f"time within the thresholds: {_MISKOVIC}",
    better="more",
    takes=QUEUE | WINDOW,
    parameters=_BAND,
    from_samples=True,
)
def average_in_band(
    run: Measured,
    queue: str,
    window: Window,
    *,
    low: float | None,
    high: float | None,
) -> float | None:
    """Share of the time for which the average is in the range that the law controls."""
    of_law, samples = thresholds(run, queue), _within(run, queue, window)
    if of_law is None or samples is None or not len(samples.values):
        return None
    values = samples.values
    least, most = of_law.min_th if low is None else low, of_law.max_th if high is None else high
    return 100.0 * float(((values >= least) & (values <= most)).mean())


@metric(
    "average_longest_stay_s",
    label="RED's average in its band, longest stay",
    unit="s",
    definition="longest time during which all samples of the law's average queue are between min_th and"
    " max_th, both excluded; 0 if no sample is",
    source=f"average brought within the thresholds: {_MISKOVIC}; the requirement that it stay there is ours",
    better="more",
    takes=QUEUE | WINDOW,
    from_samples=True,
)
def average_longest_stay(run: Measured, queue: str, window: Window) -> float | None:
    """Longest time for which the law keeps its average in this range."""
    from aqmlab.metrics.settling import stretches_between

    of_law, samples = thresholds(run, queue), average(run, queue)
    if of_law is None or samples is None or len(samples.t_s) < 2:
        return None
    step = float(samples.t_s[1] - samples.t_s[0])
    stays = stretches_between(samples.within(window).values, of_law.min_th, of_law.max_th)
    return step * max((length for _, length in stays), default=0)


@metric(
    "average_converged_s",
    label="RED's average converged after",
    unit="s",
    definition="time from the start of the run to the beginning of the first 10 s interval in which all"
    " samples of the law's average queue are between min_th and max_th, both excluded; not defined if there"
    " is no such interval",
    source=f"convergence of Adaptive RED: {_MISKOVIC}-C; the 10 s are ours",
    better="less",
    takes=QUEUE,
    parameters=(Parameter("hold", "s", "required time without interruption", HOLD_S),),
    from_samples=True,
)
def average_converged(run: Measured, queue: str, *, hold: float = HOLD_S) -> float | None:
    """Time at which the law has brought its average into this range."""
    from aqmlab.metrics.settling import stretches_between

    of_law, samples = thresholds(run, queue), average(run, queue)
    if of_law is None or samples is None or len(samples.t_s) < 2:
        return None
    step = float(samples.t_s[1] - samples.t_s[0])
    stays = stretches_between(samples.values, of_law.min_th, of_law.max_th)
    first = next((begin for begin, length in stays if length * step >= hold - 1e-6), None)
    # A sample covers the time up to it.
    return None if first is None else float(samples.t_s[first]) - step


def _backlog_share(run: Measured, queue: str, *, above: bool) -> float | None:
    """Share of time, in %, with a backlog above max_th, or below min_th; for laws that measure packets."""
    of_law, totals = thresholds(run, queue), run.queues.get((queue, EVERY_CLASS))
    if of_law is None or of_law.units_a_packet != 1 or totals is None:
        return None
    backlog = totals.backlog
    bins = zip(backlog.low, backlog.high, backlog.weight, strict=True)
    # A bin that contains a threshold is not counted, so the error is below the width of that bin, 1 %.
    outside = sum(w for low, high, w in bins if (low > of_law.max_th if above else high < of_law.min_th))
    return 100.0 * outside / backlog.total if backlog.total else None


@metric(
    "backlog_below_min_th_percent",
    label="backlog below min_th",
    unit="%",
    definition="share of time in which the number of waiting packets is below the law's min_th",
    source=f"underflow of the range: {_MISKOVIC}",
    takes=QUEUE,
)
def backlog_below(run: Measured, queue: str) -> float | None:
    """Underflow: how much of the time the queue itself is below the band of its average."""
    return _backlog_share(run, queue, above=False)


@metric(
    "backlog_above_max_th_percent",
    label="backlog above max_th",
    unit="%",
    definition="share of time in which the number of waiting packets is above the law's max_th",
    source=f"overflow of the range: {_MISKOVIC}",
    takes=QUEUE,
)
def backlog_above(run: Measured, queue: str) -> float | None:
    """Overflow: how much of the time the queue itself is above the band of its average."""
    return _backlog_share(run, queue, above=True)
