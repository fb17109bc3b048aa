"""Goodput against round-trip time: the cost of a longer path, with one mark per flow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import fsum

from aqmlab.metrics import EVERY_CLASS, Measured, find, flow_goodput
from aqmlab.metrics.flow_totals import LEAST_RTT_SPREAD
from aqmlab.metrics.phenomena import long_lived
from aqmlab.text.numbers import display_value

Points = dict[tuple[str, str], tuple[list[float], list[float]]]
"""RTTs in ms and goodputs in Mbit/s, one value per flow, by arm and class."""


def rtt_points(runs: Sequence[Measured], arms: Sequence[str], queue: str) -> Points:
    """Return goodput, and RTT without queueing, of the long-lived responsive flows that cross a queue.

    There is one point per flow and RTT: the flow's mean goodput over the seeds in which it has that RTT.
    """
    of_flow: dict[tuple[str, str], dict[tuple[int, int], list[float]]] = {}
    classes = dict.fromkeys(flow.class_name for run in runs for flow in run.at(queue).flows_of(EVERY_CLASS))
    for arm in arms:
        for name in classes:
            of_flow[arm, name] = defaultdict(list)
    for run in runs:
        if run.run.arm not in arms or not run.interval_ns:
            continue
        for flow in long_lived(run.at(queue), EVERY_CLASS):
            key = (flow.flow, flow.base_rtt_ns)
            of_flow[run.run.arm, flow.class_name][key].append(flow_goodput(run, flow))
    goodput = find("goodput_bps")
    return {
        key: (
            [rtt_ns / 1e6 for _, rtt_ns in flows],
            [display_value(fsum(values) / len(values), goodput.unit) for values in flows.values()],
        )
        for key, flows in of_flow.items()
        if flows
    }


def rtts_differ(points: Mapping[tuple[str, str], tuple[Sequence[float], Sequence[float]]]) -> bool:
    """Return whether RTTs vary enough for a dependence of goodput on them to be measured."""
    rtts = [rtt for of_class, _ in points.values() for rtt in of_class]
    return bool(rtts) and min(rtts) > 0 and max(rtts) >= LEAST_RTT_SPREAD * min(rtts)


def class_names(points: Points) -> list[str]:
    """The classes that have at least one point, in order."""
    return list(dict.fromkeys(name for _, name in points))
