"""Metrics of flows, alone and together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aqmlab.metrics.flow_totals import Flows, FlowTotals
from aqmlab.metrics.measured import EVERY_CLASS, Measured, Window
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import CLASS, FLOWS, QUEUE, ROUTER, WINDOW


def flow_goodput(run: Measured, flow: FlowTotals) -> float:
    """Goodput of one flow in bit/s: bytes that reached the receiver for the first time, in order or not."""
    return 8 * flow.measured_received_bytes / run.interval_s


def goodputs(run: Measured, flows: Flows, window: Window, *, in_order: bool = False) -> list[float] | None:
    """Goodputs of flows in a part of the run, in bit/s: exact in the measured interval, else from samples.

    ``None`` if they were not sampled; flows of datagrams never are.

    Parameters
    ----------
    run, flows, window
        The run, its flows, and the part of the run.
    in_order
        Whether to count bytes when they are delivered to the application, in order, rather than when
        they reach the receiver.
    """
    column = "delivered_bytes" if in_order else "received_bytes"
    if window == run.window:
        interval_s = run.interval_s
        return [8 * counted / interval_s for counted in flows.column(f"measured_{column}")]
    from aqmlab.metrics.synchronization import amounts_between

    amounts = amounts_between(run, flows, column, list(window))
    return (8 * amounts[0] / window.length_s).tolist() if len(amounts) else None


def jain_index(values: Sequence[float]) -> float | None:
    """Jain's fairness index, (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (all equal).

    ``None`` if all are zero: the formula is undefined, and nothing was shared.

    Raises
    ------
    ValueError
        If there are no values.
    """
    if not values:
        raise ValueError("Jain's index is not defined without flows")
    squares = math.fsum(x * x for x in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else None


def _sum(flows: Flows, count: str) -> float | None:
    """Return the sum of a count over flows; ``None`` if there are none, or if one has no count."""
    counts = flows.column(count)
    return float(sum(counts)) if counts and None not in counts else None


@metric(
    "goodput_bps",
    label="goodput",
    unit="bit/s",
    definition="bytes that reach the receivers for the first time, in order or not, per second of the"
    " measured interval; each packet counts as a whole when it arrives, so in an interval of n packets"
    " goodput may exceed the rate by one part in n",
    source="RFC 7928, section 2.5; RFC 2647, section 3.17 (forwarded bits minus those lost or retransmitted)",
    better="more",
    takes=FLOWS | CLASS | ROUTER | WINDOW,
)
def goodput(run: Measured, class_name: str, window: Window) -> float | None:
    """Sum of the goodputs of all flows in a class."""
    flows = run.flows_of(class_name)
    of_flows = goodputs(run, flows, window) if flows else None
    return None if of_flows is None else math.fsum(of_flows)


@metric(
    "in_order_goodput_bps",
    label="in-order goodput",
    unit="bit/s",
    definition="in-order bytes delivered to the applications, per second of the measured interval; it can"
    " exceed the link's rate, because it includes bytes that waited behind a hole at the"
    " beginning of the interval",
    source="as counted by ns-2's sinks; RFC 7928, section 2.5",
    better="more",
    takes=FLOWS | CLASS | WINDOW,
)
def in_order_goodput(run: Measured, class_name: str, window: Window) -> float | None:
    """Total rate in bit/s at which applications receive data."""
    flows = run.flows_of(class_name)
    of_flows = goodputs(run, flows, window, in_order=True) if flows else None
    return None if of_flows is None else math.fsum(of_flows)


@metric(
    "goodput_efficiency_percent",
    label="goodput efficiency",
    unit="%",
    definition="total goodput of the flows that cross the queue, divided by the rate of its link",
    source="sum of all goodputs divided by capacity: payload for TCP, payload and headers for datagrams",
    better="more",
    takes=QUEUE | CLASS | WINDOW,
)
def goodput_efficiency(run: Measured, queue: str, class_name: str, window: Window) -> float | None:
    """Goodput divided by the link's rate."""
    total = goodput(run, class_name, window)
    return None if total is None else 100.0 * total / run.run.rate_bps(queue)


@metric(
    "jain_index",
    label="Jain's index",
    unit="",
    definition="(sum x)^2 / (n sum x^2) of the goodputs of the flows that react to congestion; not defined if"
    " none of them received anything",
    source="Jain, Chiu, Hawe 1984, DEC-TR-301",
    better="more",
    takes=FLOWS | CLASS | WINDOW,
)
def fairness(run: Measured, class_name: str, window: Window) -> float | None:
    """Jain's index of the responsive flows (for a class: of all its flows)."""
    flows = run.flows_of(class_name)
    if class_name == EVERY_CLASS:
        flows = flows.of_classes(run.responsive.__contains__)
    of_flows = goodputs(run, flows, window) if flows else None
    return None if of_flows is None else jain_index(of_flows)


def _counted(name: str, label: str, definition: str, source: str, better: str = "") -> None:
    """Define a metric that is the sum of a count over the flows of a class."""

    @metric(
        name, label=label, unit="", definition=definition, source=source, better=better, takes=FLOWS | CLASS
    )
    def compute(run: Measured, class_name: str) -> float | None:
        return _sum(run.flows_of(class_name), f"measured_{name}")


_counted(
    "timeouts",
    "timeouts",
    "retransmission timeouts of all flows in the measured interval",
    "RFC 6298",
    "less",
)


@metric(
    "timeouts_per_flow",
    label="timeouts per flow",
    unit="",
    definition="retransmission timeouts of responsive flows in the measured interval, per flow",
    source="RFC 6298",
    better="less",
    takes=FLOWS | CLASS,
)
def timeouts_per_flow(run: Measured, class_name: str) -> float | None:
    """Mean number of timeouts of the flows that can have one."""
    flows = run.flows_of(class_name).of_classes(run.responsive.__contains__)
    total = _sum(flows, "measured_timeouts")
    return None if total is None else total / len(flows)


_counted(
    "fast_retransmits",
    "fast retransmits",
    "number of times that flows entered fast recovery in the measured interval",
    "RFC 5681, section 3.2",
    "less",
)
_counted(
    "spurious_retransmissions",
    "spurious retransmissions",
    "segments that arrived in the measured interval with data that the receiver already had in full",
    "RFC 4015, section 1 (spurious: the retransmitted data had already arrived)",
    "less",
)
_counted(
    "multiple_loss_windows",
    "windows with several losses",
    "windows of data from which two or more segments were retransmitted, in the measured interval",
    "Fall, Floyd 1996, section 1 (multiple losses in a window)",
    "less",
)
_counted(
    "ecn_reductions",
    "ECN reductions",
    "window reductions of all flows in response to an ECN echo in the measured interval",
    "RFC 3168, section 6.1.2",
)
_counted(
    "ce_received",
    "CE marks received",
    "packets marked CE that reached a receiver in the measured interval",
    "RFC 3168, section 6.1.3",
)


@metric(
    "lost_outside_queues",
    label="lost outside queues",
    unit="",
    definition="packets lost, in either direction, on flows' own links and in delay stages,"
    " not counting drops at queues",
    source="losses due to a rule of the scenario, like those in dummynet and DelayBox",
    takes=FLOWS | CLASS,
)
def lost_outside_queues(run: Measured, class_name: str) -> float | None:
    """Losses outside the queues."""
    return _sum(run.flows_of(class_name), "measured_lost_outside_queues_packets")
