"""Metrics that distinguish classes of traffic: number of flows, goodput, length of the path."""

from __future__ import annotations

from aqmlab.metrics.flow import goodput, jain_index
from aqmlab.metrics.measured import EVERY_CLASS, Measured, Window, is_of
from aqmlab.metrics.queue import queueing_delay_mean
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import CLASS, FLOWS, WINDOW
from aqmlab.recordings.plan import TrafficClass


@metric(
    "flows",
    label="flows",
    unit="",
    definition="number of flows in the run",
    source="rows of `flows` in the recording",
    takes=FLOWS | CLASS,
)
def flows(run: Measured, class_name: str) -> float | None:
    """Number of flows."""
    return float(len(run.flows_of(class_name))) or None


@metric(
    "goodput_per_flow_bps",
    label="goodput per flow",
    unit="bit/s",
    definition="total goodput of the flows divided by their number",
    source="mean of the goodputs",
    better="more",
    takes=FLOWS | CLASS | WINDOW,
)
def goodput_per_flow(run: Measured, class_name: str, window: Window) -> float | None:
    """Mean goodput per flow."""
    total = goodput(run, class_name, window)
    return None if total is None else total / len(run.flows_of(class_name))


@metric(
    "jain_index_of_classes",
    label="Jain's index of classes",
    unit="",
    definition="(sum x)^2 / (n sum x^2) of the total goodputs of the classes whose flows react to congestion,"
    " or of the classes named; not defined for fewer than two classes. In live runs, a class has a host on"
    " each side, so this is the fairness between hosts",
    source="Jain, Chiu, Hawe 1984, DEC-TR-301; fairness between hosts: Høiland-Jørgensen et al. 2018, section"
    " III-C",
    better="more",
    takes=FLOWS | CLASS | WINDOW,
)
def fairness_of_classes(run: Measured, class_name: str, window: Window) -> float | None:
    """Jain's index over classes, however many flows each has."""
    names = [
        entry.name
        for entry in run.run.plan.classes
        if entry.name not in run.left_out
        and (entry.over_tcp if class_name == EVERY_CLASS else is_of(entry.name, class_name))
    ]
    found = [goodput(run, name, window) for name in names]
    known = [value for value in found if value is not None]
    return jain_index(known) if len(known) == len(names) > 1 else None


@metric(
    "retransmissions",
    label="retransmissions",
    unit="",
    definition="segments retransmitted by responsive flows in the measured interval",
    source="RFC 4898, tcpEStatsPerfSegsRetrans",
    better="less",
    takes=FLOWS | CLASS,
)
def retransmissions(run: Measured, class_name: str) -> float | None:
    """Segments that were retransmitted."""
    flows = run.flows_of(class_name).of_classes(run.responsive.__contains__)
    counts = flows.column("measured_retransmitted_segments")
    known = [count for count in counts if count is not None]
    return float(sum(known)) if known and len(known) == len(counts) else None


@metric(
    "round_trip_mean_s",
    label="RTT, mean",
    unit="s",
    definition="RTT without queueing plus the mean queueing delays of the class's packets at the queues in"
    " both directions, averaged over the responsive flows",
    source="sum of the parts of a round trip, without the transmission time of packets",
    better="less",
    takes=FLOWS | CLASS,
)
def rtt_mean(run: Measured, class_name: str) -> float | None:
    """Duration of a round trip."""
    chosen = run.flows_of(class_name).of_classes(run.responsive.__contains__)
    names = chosen.column("class_name")
    known = set(names)
    waits = {entry.name: _waiting_s(run, entry) for entry in run.run.plan.classes if entry.name in known}
    total = 0.0
    for name, base_rtt_ns in zip(names, chosen.column("base_rtt_ns"), strict=True):
        wait_s = waits.get(name)
        if wait_s is None:
            return None
        total += base_rtt_ns / 1e9 + wait_s
    return total / len(chosen) if chosen else None


def _waiting_s(run: Measured, entry: TrafficClass) -> float | None:
    """Return a class's queueing delay per round trip; ``None`` if a queue forwarded none of its packets."""
    total = 0.0
    for queue in (*entry.path, *entry.return_path):
        wait_s = queueing_delay_mean(run, queue, entry.name)
        if wait_s is None:
            return None
        total += wait_s
    return total
