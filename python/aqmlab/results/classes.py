"""Classes of traffic, such as NewReno and SACK, short and long round-trip times, or UDP and TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.metrics import EVERY_QUEUE

if TYPE_CHECKING:
    from aqmlab.recordings.plan import Plan
    from aqmlab.results.results import Results

BY_CLASS = (
    "flows",
    "goodput_bps",
    "goodput_per_flow_bps",
    "goodput_share_percent",
    "jain_index",
    "drop_percent",
    "mark_percent",
    "timeouts_per_flow",
    "retransmissions",
    "round_trip_mean_s",
)
"""The default metrics of a class."""


def classes_of(results: Results) -> tuple[str, ...]:
    """Names of the classes of traffic in all cells, in the order of the scenario."""
    return tuple(dict.fromkeys(name for plan in results.plans for name in classes_at(plan)))


def classes_at(plan: Plan, queue: str = EVERY_QUEUE) -> list[str]:
    """Names of the classes of a plan whose data cross a queue."""
    left_out = frozenset[str]() if queue == EVERY_QUEUE else plan.elsewhere(queue)
    return [entry.name for entry in plan.classes if entry.name not in left_out]
