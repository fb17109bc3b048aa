"""Metrics of queues that contain others: shares of inner queues, and queues per flow.

An inner queue has rows of its own in the recorded tables (``link/inner``), so every metric of a queue accepts
its name. These metrics need more than those rows.
"""

from __future__ import annotations

from aqmlab.metrics.measured import Measured, QueueTotals, Samples, Window
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import CLASS, QUEUE, WINDOW

_IN_USE = (("queues",), ("new", "old"), ("sparse", "bulk"))
"""The samples of a law whose sum is the number of flow queues in use: of SFQ; of FQ-CoDel and FQ-PIE; of
CAKE."""


@metric(
    "queue_share_percent",
    label="share of the queue",
    unit="%",
    definition="bytes that left the inner queue divided by the bytes that left all inner queues of the same"
    " queue; defined only for inner queues",
    source="share of the scheduler's service: RFC 9332, section 2.4 (L and C); RFC 8290, section 4.2 (sparse"
    " flows)",
    takes=QUEUE | CLASS,
)
def queue_share(run: Measured, queue: str, class_name: str) -> float | None:
    """Share of the bytes, of all traffic or of a class."""
    outer = queue.rpartition("/")[0]
    siblings = [run.at_queue(name, class_name) for name in run.inner_queues(outer)] if outer else []
    total = sum(totals["departures_bytes"] for totals in siblings if totals is not None)
    own: QueueTotals | None = run.at_queue(queue, class_name) if siblings else None
    return None if own is None or not total else 100.0 * own["departures_bytes"] / total


@metric(
    "flow_queues_mean",
    label="flow queues in use, mean",
    unit="",
    definition="mean over the samples of the number of queues of flows that the scheduler has on its lists"
    " (FQ-CoDel, FQ-PIE: new and old; CAKE: sparse and bulk) or that hold packets (SFQ)",
    source="active flows: RFC 8290, section 4.2; samples of the law",
    takes=QUEUE | WINDOW,
    from_samples=True,
)
def flow_queues(run: Measured, queue: str, window: Window) -> float | None:
    """Mean number of flow queues in use; not defined for a discipline without queues per flow."""
    for names in _IN_USE:
        of_names = [run.samples("law", name, queue).within(window) for name in names]
        if len(of_names[0].values):
            return sum(float(samples.values.mean()) for samples in of_names)
    return None


@metric(
    "flow_collision_percent",
    label="collisions of flows",
    unit="%",
    definition="packets that the discipline counts as collisions, divided by packets that arrived at the"
    " queue: those that arrived behind packets of another flow (FQ-CoDel, FQ-PIE, SFQ) or found all queues of"
    " their set taken (CAKE)",
    source="hash collisions: RFC 8290, section 4.1.1; samples of the law",
    better="less",
    takes=QUEUE | WINDOW,
    from_samples=True,
)
def flow_collisions(run: Measured, queue: str, window: Window) -> float | None:
    """Share of packets in a queue that they share with another flow."""
    from aqmlab.metrics.queue_samples import counted  # with NumPy, which few metrics need

    collisions = run.samples("law", "collisions", queue)
    arrived = counted(run, queue, window, "arrivals_packets")
    if not len(collisions.values) or not arrived:
        return None
    return 100.0 * (_up_to(collisions, window.until_s) - _up_to(collisions, window.from_s)) / arrived


def _up_to(counter: Samples, at_s: float) -> float:
    """Return the last sample of a counter that begins at zero, up to and including an instant."""
    found = counter.within(Window(-1.0, at_s)).values
    return float(found[-1]) if len(found) else 0.0
