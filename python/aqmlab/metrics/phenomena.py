"""Metrics of effects that queue management should prevent: lockout, synchronisation, bias against long RTTs.

The values themselves are computed in :mod:`aqmlab.metrics.synchronization`; this module prepares their
inputs.
"""

from __future__ import annotations

from aqmlab.metrics.flow import flow_goodput, goodput
from aqmlab.metrics.flow_totals import FlowTotals
from aqmlab.metrics.measured import EVERY_CLASS, Measured, Window
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import CLASS, FLOWS, PATH, QUEUE, WINDOW


def long_lived(run: Measured, class_name: str, window: Window | None = None) -> list[FlowTotals]:
    """Return the responsive flows of a class (``*``: of all) that existed throughout a part of the run.

    Without a window, this part is the measured interval.
    """
    part = run.window if window is None else window
    begin_ns, end_ns = round(part.from_s * 1e9), round(part.until_s * 1e9)
    return [
        flow
        for flow in run.flows_of(class_name)
        if flow.class_name in run.responsive
        and flow.start_ns <= begin_ns
        and (flow.end_ns is None or flow.end_ns >= end_ns)
    ]


@metric(
    "lockout_percent",
    label="lockout",
    unit="%",
    definition="share of the 10 s windows of the measured interval in which Jain's index of the goodputs of"
    " the long-lived responsive flows is below 0.7; windows in which none of them receives anything do not"
    " count",
    source="lockout: RFC 2309, section 2 (a few flows monopolize queue space); window and bound are ours",
    better="less",
    takes=FLOWS | CLASS | WINDOW,
    from_samples=True,
)
def lockout(run: Measured, class_name: str, window: Window) -> float | None:
    """Share of windows in which a few flows receive nearly everything."""
    from aqmlab.metrics.synchronization import JAIN_OF_LOCKOUT, jain_by_window, shares_by_window

    flows = long_lived(run, class_name, window)
    index = jain_by_window(shares_by_window(run, flows, window))
    return 100.0 * float((index < JAIN_OF_LOCKOUT).mean()) if len(flows) > 1 and len(index) else None


@metric(
    "starved_percent",
    label="starved",
    unit="%",
    definition="share of (flow, window) pairs in which the flow's goodput is less than a tenth of the mean"
    " goodput of all long-lived responsive flows in that window; the windows are the 10 s windows of the"
    " measured interval, without those in which none of these flows receives anything",
    source="lockout: RFC 2309, section 2 (others get no room in the queue); window and bound are ours",
    better="less",
    takes=FLOWS | CLASS | WINDOW,
    from_samples=True,
)
def starved(run: Measured, class_name: str, window: Window) -> float | None:
    """Share of flows with a negligible goodput in a window."""
    from aqmlab.metrics.synchronization import shares_by_window, starved_share

    flows = long_lived(run, class_name, window)
    share = starved_share(shares_by_window(run, flows, window)) if len(flows) > 1 else None
    return None if share is None else 100.0 * share


@metric(
    "synchronisation_percent",
    label="flows that lose together",
    unit="%",
    definition="share of the long-lived responsive flows that lose a packet or have one marked in a loss"
    " event at the queue, averaged over the events; an event lasts one RTT (mean base RTT plus mean queueing"
    " delay) from its first loss; needs the queue's drops and marks in `packets` of [record]",
    source="global synchronization ratio: RFC 7928, section 2.4",
    better="less",
    takes=QUEUE | CLASS,
    from_samples=True,
)
def synchronisation(run: Measured, queue: str, class_name: str) -> float | None:
    """Share of the flows that a loss event hits."""
    from aqmlab.metrics.queue import queueing_delay_mean
    from aqmlab.metrics.synchronization import synchronisation_ratio

    flows, losses = long_lived(run, class_name), run.losses(queue)
    if losses is None or len(flows) < 2:
        return None
    waiting = queueing_delay_mean(run, queue, EVERY_CLASS) or 0.0
    rtt_s = sum(flow.base_rtt_ns for flow in flows) / len(flows) / 1e9 + waiting
    ratio = synchronisation_ratio(*losses, [flow.flow for flow in flows], rtt_s)
    return None if ratio is None else 100.0 * ratio


@metric(
    "window_correlation",
    label="correlation of windows",
    unit="",
    definition="(variance of the sum of the congestion windows / sum of their variances - 1) / (n - 1) over"
    " the samples of the n long-lived responsive flows in the measured interval: the mean covariance of two"
    " windows divided by the mean variance; 1 if all windows move together, 0 if they move independently",
    source="variance of a sum; synchronised and desynchronised windows: Appenzeller, Keslassy, McKeown 2004,"
    " section 3",
    better="less",
    takes=FLOWS | CLASS | WINDOW,
    from_samples=True,
)
def window_correlation(run: Measured, class_name: str, window: Window) -> float | None:
    """Whether windows rise and fall together."""
    from aqmlab.metrics.synchronization import common_samples, mean_correlation

    samples = common_samples(run, long_lived(run, class_name, window), "cwnd_segments", window)
    return mean_correlation(samples) if len(samples) > 1 else None


@metric(
    "rtt_bias_exponent",
    label="bias against long RTTs",
    unit="",
    definition="the exponent a in goodput = c / RTT^a, fitted by least squares to the logarithms over the"
    " long-lived responsive flows, where RTT excludes queueing; 0 means no bias, 1 means equal windows; not"
    " defined if all RTTs are equal within 10 %",
    source="Lakshman, Madhow 1997, section 1 (throughput is proportional to RTT^-a, a from 1 to"
    " 2 for DropTail)",
    better="less",
    takes=FLOWS | CLASS,
)
def rtt_bias(run: Measured, class_name: str) -> float | None:
    """How strongly goodput falls as the RTT grows."""
    from aqmlab.metrics.synchronization import power_law_exponent

    flows = long_lived(run, class_name)
    return power_law_exponent(
        [flow.base_rtt_ns / 1e9 for flow in flows], [flow_goodput(run, flow) for flow in flows]
    )


@metric(
    "goodput_share_percent",
    label="share of goodput",
    unit="%",
    definition="goodput of the flows of a class divided by that of all flows that cross the queue",
    source="RFC 7928, section 2.5, applied to groups of flows",
    takes=QUEUE | PATH | CLASS | WINDOW,
)
def goodput_share(run: Measured, _queue: str, class_name: str, window: Window) -> float | None:
    """A group's share of the total goodput; all traffic together has no share."""
    if class_name == EVERY_CLASS:
        return None
    own, total = goodput(run, class_name, window), goodput(run, EVERY_CLASS, window)
    return 100.0 * own / total if own is not None and total else None


@metric(
    "ack_width_percent",
    label="width of cumulative ACKs",
    unit="%",
    definition="difference between the largest and the smallest number of bytes acknowledged to a long-lived"
    " responsive flow in the measured interval, divided by the mean over these flows",
    source="width of the cumulative ACK diagram: Miskovic, Petrovic, Trajkovic, Implementation and"
    " performance analysis of AQM mechanisms; dividing by the mean is ours",
    better="less",
    takes=FLOWS | CLASS | WINDOW,
    from_samples=True,
)
def ack_width(run: Measured, class_name: str, window: Window) -> float | None:
    """Range of the bytes that were acknowledged to the flows, relative to their mean."""
    from aqmlab.metrics.synchronization import amounts_between

    flows = long_lived(run, class_name, window)
    if len(flows) < 2:
        return None
    amounts = amounts_between(run, flows, "acked_bytes", list(window))
    mean = float(amounts.mean()) if amounts.size else 0.0
    return 100.0 * float(amounts.max() - amounts.min()) / mean if mean else None
