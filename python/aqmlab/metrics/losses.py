"""Metrics of congestion signals, which are drops and marks, and of a class's losses on all its paths."""

from __future__ import annotations

from collections.abc import Callable

from aqmlab.metrics.measured import Measured
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import CLASS, FLOWS, KIND, PATH, QUEUE
from aqmlab.recordings.plan import TrafficClass

_WEIGLE = "Weigle, Vembar, Du, Assessing the Impact of Multiple Active Queue Management Routers"


@metric(
    "notification_percent",
    label="notifications",
    unit="%",
    definition="packets that the queue dropped for any reason or marked CE, divided by packets"
    " that arrived at it",
    source="RFC 3168, section 5 (a mark has the meaning of a drop); RFC 7928, section 2.2",
    takes=QUEUE | PATH | CLASS | KIND,
)
def notification_percentage(run: Measured, queue: str, class_name: str) -> float | None:
    """Drops and marks divided by arrivals."""
    totals = run.at_queue(queue, class_name)
    if totals is None or not totals["arrivals_packets"]:
        return None
    notified = totals.sum_over_reasons("dropped") + totals.sum_over_reasons("marked")
    return 100.0 * notified / totals["arrivals_packets"]


@metric(
    "congestion_notifications",
    label="congestion notifications",
    unit="",
    definition="packets that the queue marked CE or that its law dropped (early and forced drops) in the"
    " measured interval; packets that found the buffer full do not count",
    source=f"marks plus early drops: {_WEIGLE}, section III",
    takes=QUEUE | PATH | CLASS | KIND,
)
def congestion_notifications(run: Measured, queue: str, class_name: str) -> float | None:
    """Number of congestion notifications."""
    totals = run.at_queue(queue, class_name)
    if totals is None:
        return None
    by_law = totals["dropped_early_packets"] + totals["dropped_forced_packets"]
    return float(totals.sum_over_reasons("marked") + by_law)


def _loss(
    name: str, label: str, which: str, ways: Callable[[TrafficClass], tuple[tuple[str, ...], ...]]
) -> None:
    @metric(
        name,
        label=label,
        unit="%",
        definition=f"packets of the class dropped at any queue of {which}, divided by those that arrived at"
        " the first queue of each path; if no class is named, for all classes whose data cross the queue",
        source=f"loss of a class over several congested links, as in Table I of {_WEIGLE}",
        better="less",
        takes=FLOWS | CLASS | KIND,
    )
    def compute(run: Measured, class_name: str) -> float | None:
        totals = run.over(class_name, ways)
        if totals is None or not totals["arrivals_packets"]:
            return None
        return 100.0 * totals.sum_over_reasons("dropped") / totals["arrivals_packets"]


_loss("loss_percent", "loss", "its paths in both directions", lambda entry: (entry.path, entry.return_path))
_loss(
    "loss_there_percent",
    "loss, forward path",
    "the path from its senders or clients",
    lambda entry: (entry.path,),
)
_loss(
    "loss_back_percent",
    "loss, return path",
    "the path back to its senders or clients",
    lambda entry: (entry.return_path,),
)
