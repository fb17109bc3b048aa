"""Metrics of a queue and its link.

Over the measured interval, all come from exact counts and time integrals, none from samples. For
another part of the run, some are computed from samples. Percentiles come from histograms with bins up to 1 %
wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from aqmlab.metrics.histograms import quoted
from aqmlab.metrics.measured import EVERY_CLASS, Measured, QueueTotals, Window
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import CLASS, KIND, PATH, QUEUE, WINDOW

_RFC7928 = "RFC 7928"


def _percentage(part: float, whole: float) -> float | None:
    return 100.0 * part / whole if whole else None


def _by_arrivals(
    run: Measured, queue: str, class_name: str, part: Callable[[QueueTotals], int], whole: str = "arrivals"
) -> float | None:
    """Packets with a given fate as a percentage of arrivals."""
    totals = run.at_queue(queue, class_name)
    return None if totals is None else _percentage(part(totals), totals[f"{whole}_packets"])


@metric(
    "throughput_bps",
    label="throughput",
    unit="bit/s",
    definition=(
        "bits that the link sent in the measured interval, including network-layer headers, divided by the"
        " interval; of a packet in transmission at its beginning or end, the part that was sent within it, so"
        " the throughput never exceeds the rate"
    ),
    source="RFC 7928, section 2.5",
    better="more",
    takes=QUEUE | CLASS,
)
def throughput(run: Measured, queue: str, class_name: str) -> float | None:
    """Bits sent, divided by the measured interval."""
    totals = run.at_queue(queue, class_name)
    return None if totals is None else 8 * totals["sent_bytes"] / run.interval_s


@metric(
    "utilisation_percent",
    label="utilisation",
    unit="%",
    definition=(
        "share of the measured interval in which the link was busy sending; if its rate changes, bits that"
        " it sent, divided by those that it could have sent"
    ),
    source=(
        "busy time, exact even if packets take less than a nanosecond; equals throughput divided by rate"
        " where the link layer adds no bytes"
    ),
    better="more",
    takes=QUEUE | WINDOW,
)
def utilisation(run: Measured, queue: str, window: Window) -> float | None:
    """Busy time divided by the measured interval, or bytes sent divided by capacity."""
    if window != run.window:
        from aqmlab.metrics.queue_samples import adds_bytes, capacity, counted

        sent = None if adds_bytes(run, queue) else counted(run, queue, window, "departures_bytes")
        full = capacity(run, queue, window)
        return None if sent is None or not full else 100.0 * sent / full
    if (sums := _of_link(run, queue, "used_bytes, capacity_bytes")) is not None:
        return 100.0 * sums[0] / sums[1] if sums[1] else None
    totals = run.at_queue(queue, EVERY_CLASS)
    return None if totals is None or not totals.has_link else _percentage(totals["busy_ns"], run.interval_ns)


def _of_link(run: Measured, queue: str, columns: str) -> tuple[float, ...] | None:
    """Return columns of ``links`` for a link whose rate changes; ``None`` for any other."""
    if run.tables is None or not run.run.changes(queue):
        return None
    rows = run.tables.rows("links", columns, f"WHERE queue = {quoted(queue)}", [run.run])
    return tuple(map(float, rows[0])) if rows else None


@metric(
    "queueing_delay_by_capacity_s",
    label="queueing delay by capacity",
    unit="s",
    definition=(
        "mean over bytes of what the link could have sent between enqueue and dequeue, divided by its mean"
        " rate: the delay without the part that a slow link adds; not defined if the rate is constant"
    ),
    source="Little's law with the capacity in place of time; the definition is ours",
    better="less",
    takes=QUEUE,
)
def queueing_delay_by_capacity(run: Measured, queue: str) -> float | None:
    """Integral of the waiting bytes over the capacity, divided by the bytes sent, at the mean rate."""
    found = _of_link(run, queue, "backlog_bytes_by_capacity::DOUBLE")
    totals = run.at_queue(queue, EVERY_CLASS)
    if found is None or totals is None or not totals["departures_bytes"]:
        return None
    return 8 * found[0] / totals["departures_bytes"] / run.run.rate_bps(queue)


@metric(
    "drop_percent",
    label="drops",
    unit="%",
    definition="packets dropped at the queue for any reason, divided by packets that arrived at it",
    source=f"{_RFC7928}, section 2.2",
    better="less",
    takes=QUEUE | PATH | CLASS | KIND | WINDOW,
)
def drop_percentage(run: Measured, queue: str, class_name: str, window: Window) -> float | None:
    """Packets dropped, divided by arrivals; for a class, in the measured interval only."""
    if window != run.window:
        from aqmlab.metrics.queue_samples import DROPPED, counted

        dropped = counted(run, queue, window, *DROPPED) if class_name == EVERY_CLASS else None
        arrived = counted(run, queue, window, "arrivals_packets")
        return None if dropped is None or arrived is None else _percentage(dropped, arrived)
    return _by_arrivals(run, queue, class_name, lambda totals: totals.sum_over_reasons("dropped"))


def _drops_for(reason: str, meaning: str) -> None:
    @metric(
        f"drop_{reason}_percent",
        label=f"{reason} drops",
        unit="%",
        definition=f"packets dropped {meaning}, divided by packets that arrived at the queue",
        source=f"{_RFC7928}, section 2.2",
        better="less",
        takes=QUEUE | PATH | CLASS | KIND,
    )
    def compute(run: Measured, queue: str, class_name: str) -> float | None:
        return _by_arrivals(run, queue, class_name, lambda totals: totals[f"dropped_{reason}_packets"])


_drops_for("early", "by the law's random choice")
_drops_for("forced", "above the law's upper threshold")
_drops_for("overflow", "because the buffer was full")
_drops_for("injected", "by a rule of the scenario")


@metric(
    "drop_rate_bps",
    label="drop rate",
    unit="bit/s",
    definition="bits of the packets dropped at the queue for any reason, network-layer headers included,"
    " divided by the measured interval",
    source="dropped bits per unit of time: Miskovic, Petrovic, Trajkovic, Implementation and performance"
    " analysis of AQM mechanisms, Table III",
    better="less",
    takes=QUEUE | PATH | CLASS | KIND,
)
def drop_rate(run: Measured, queue: str, class_name: str) -> float | None:
    """Bits dropped, divided by the measured interval."""
    totals = run.at_queue(queue, class_name)
    return None if totals is None else 8 * totals.sum_over_reasons("dropped", "bytes") / run.interval_s


@metric(
    "mark_percent",
    label="marks",
    unit="%",
    definition="packets that this queue marked CE, divided by ECN-capable packets that arrived at it",
    source="RFC 3168, section 5",
    takes=QUEUE | PATH | CLASS | KIND,
)
def mark_percentage(run: Measured, queue: str, class_name: str) -> float | None:
    """Packets marked, divided by ECN-capable packets that arrived; not defined if none arrived."""
    return _by_arrivals(run, queue, class_name, lambda of: of.sum_over_reasons("marked"), "ect_arrivals")


@metric(
    "backlog_mean_packets",
    label="backlog, mean",
    unit="packets",
    definition="time-weighted mean number of waiting packets, excluding the packet in transmission",
    source="integral of the backlog over time",
    better="less",
    takes=QUEUE | WINDOW,
)
def backlog_mean(run: Measured, queue: str, window: Window) -> float | None:
    """Time-weighted mean of the backlog; for a part of the run, the mean of the backlog samples."""
    if window != run.window:
        return run.samples("queues", "backlog_packets", queue).within(window).mean()
    totals = run.at_queue(queue, EVERY_CLASS)
    return None if totals is None else totals["backlog_packets_integral_ns"] / run.interval_ns


@metric(
    "backlog_sd_packets",
    label="backlog, sd",
    unit="packets",
    definition="time-weighted standard deviation of the number of waiting packets",
    source="integrals of the backlog and of its square over time",
    better="less",
    takes=QUEUE | WINDOW,
)
def backlog_sd(run: Measured, queue: str, window: Window) -> float | None:
    """Time-weighted standard deviation of the backlog; for a part of the run, that of the backlog samples."""
    if window != run.window:
        return run.samples("queues", "backlog_packets", queue).within(window).sd()
    totals = run.at_queue(queue, EVERY_CLASS)
    if totals is None:
        return None
    span = run.interval_ns
    # We use whole numbers until the last step, because the difference of the two terms would lose
    # digits in floats.
    variance_by_span_sq = (
        totals["backlog_packets_sq_integral_ns"] * span - totals["backlog_packets_integral_ns"] ** 2
    )
    return math.sqrt(max(variance_by_span_sq, 0)) / span


@metric(
    "queueing_delay_mean_s",
    label="queueing delay, mean",
    unit="s",
    definition="mean over packets of the time from enqueue to dequeue",
    source="RFC 7928, section 2.6",
    better="less",
    takes=QUEUE | CLASS,
)
def queueing_delay_mean(run: Measured, queue: str, class_name: str) -> float | None:
    """Mean time from enqueue to dequeue."""
    totals = run.at_queue(queue, class_name)
    if totals is None:
        return None
    if class_name == EVERY_CLASS:
        count = totals["sojourn_count"]
        return totals["sojourn_sum_ns"] / count / 1e9 if count else None
    # Sums are recorded only for all classes together; for a class, the histogram is exact to half a bin.
    mean_ns = totals.sojourn_mean_ns
    return None if mean_ns is None else mean_ns / 1e9


def _delay_percentile(percent: int) -> None:
    @metric(
        f"queueing_delay_p{percent}_s",
        label=f"queueing delay, p{percent}",
        unit="s",
        definition=f"time from enqueue to dequeue that {percent} % of the packets do not exceed",
        source="RFC 7928, section 2.6; histogram with bins up to 1 % wide",
        better="less",
        takes=QUEUE | CLASS,
    )
    def compute(run: Measured, queue: str, class_name: str) -> float | None:
        totals = run.at_queue(queue, class_name)
        value = None if totals is None else totals.sojourn.quantile(percent / 100)
        return None if value is None else value / 1e9


_delay_percentile(50)
_delay_percentile(95)
_delay_percentile(99)
