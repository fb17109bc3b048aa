"""Checks that flows are limited by the network, and not by their own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.metrics import EVERY_CLASS
from aqmlab.plan import TrafficClass, quantity_text
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.metrics import FlowTotals, Measured
    from aqmlab.results import Results

FILLED = 0.85
"""A flow counts as limited by its window if at least this share of the window is in flight on average.

The share is our choice. Delayed acknowledgments leave one or two segments of the limit unused; a window that
is halved at each loss averages three quarters of its maximum.
"""


def limited_by_windows(results: Results) -> Check:
    """Check for window-limited flows, which do not react to the queue and make it look good."""
    kind, findings = "window", []
    for cell in results.cells:
        limited, greedy, largest = 0, 0, ""
        for run in results.measured(cell):
            for entry in run.run.plan.greedy:
                window = _window_bytes(entry)
                delay_s = _queueing_delay_s(run, entry)
                flows = [flow for flow in run.flows if flow.class_name == entry.name]
                greedy += len(flows)
                held = sum(_under_way(flow, run, delay_s) >= FILLED * window for flow in flows)
                limited += held
                if held:
                    largest = f"{_window_text(entry)} of `{entry.name}`"
        if limited:
            percent = 100.0 * limited / greedy
            sentence = (
                f"{limited} of {greedy} greedy flows ({percent:.0f} %, over all runs) are limited by"
                f" their window, {largest}, not by the network"
            )
            remedy = "raise `tcp.max_window` and `tcp.receive_window`, unless the window limit is intended"
            findings.append(CellDoubt(cell, "warning", sentence, remedy, percent))
    finding = "no greedy flow reaches its window limit"
    return Check(kind, "flows are limited by the network", finding, merged(kind, results, findings))


def _window_bytes(entry: TrafficClass) -> float:
    """Return the most bytes that can be in flight; only whole segments are sent (RFC 9293, 3.8.6.2.1)."""
    tcp = entry.tcp or {}
    mss = int(tcp["mss_bytes"])
    return mss * min(int(tcp["max_window"]), max(1, int(tcp["receive_window_bytes"]) // mss))


def _window_text(entry: TrafficClass) -> str:
    tcp = entry.tcp or {}
    if tcp["max_window"] * tcp["mss_bytes"] <= tcp["receive_window_bytes"]:
        return f"the {tcp['max_window']} segments"
    return f"the {quantity_text(tcp['receive_window_bytes'], 'bytes')}"


def _under_way(flow: FlowTotals, run: Measured, queueing_delay_s: float) -> float:
    """Return a flow's mean bytes in flight by Little's law: its goodput times its round-trip time."""
    measured_s = (run.run.t1_ns - max(run.run.t0_ns, flow.start_ns)) / 1e9
    if measured_s <= 0:
        return 0.0
    return flow.measured_received_bytes / measured_s * (flow.base_rtt_ns / 1e9 + queueing_delay_s)


def _queueing_delay_s(run: Measured, entry: TrafficClass) -> float:
    """Mean time that packets wait in queues, summed over the two directions."""
    path = [*entry.path, *entry.return_path]
    total = 0.0
    for name in path:
        totals = run.queues.get((name, EVERY_CLASS))
        if totals is not None and totals["sojourn_count"]:
            total += totals["sojourn_sum_ns"] / totals["sojourn_count"] / 1e9
    return total
