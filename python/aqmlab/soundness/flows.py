"""Checks of flows.

The network limits them, not their own settings; chance decides which of them lose packets, not their starts;
and one packet is a small part of what they receive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from aqmlab.metrics import EVERY_CLASS
from aqmlab.recordings.plan import TrafficClass, quantity_text
from aqmlab.soundness.doubt import CellDoubt, Check, merged
from aqmlab.text.numbers import listed

if TYPE_CHECKING:
    from aqmlab.metrics import FlowTotals, Measured
    from aqmlab.results.results import Results

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


def out_of_step(results: Results) -> Check:
    """Check for constant sources whose packets meet a queue in the same order during the whole run.

    Sources in lockstep share losses by their phases: with equal gaps, the one whose packet always comes
    second finds the last place taken each time.
    """
    kind, findings, found = "lockstep", [], 0
    for cell in results.cells:
        runs = results.measured(cell)
        for link in runs[0].run.plan.links if runs else ():
            sources = [entry for entry in runs[0].run.plan.classes if _keeps_phase(entry, link.name)]
            together = _in_step(sources)
            lost = [run.queues[link.name, entry.name] for run in runs for entry in together]
            found += len(together)
            if sum(totals.sum_over_reasons("dropped") for totals in lost):
                names = listed([f"`{entry.name}`" for entry in together])
                sentence = (
                    f"the packets of {sum(entry.count for entry in together)} constant sources ({names}) meet"
                    f" the queue of `{link.name}` in the same order during the whole run: their starts decide"
                    " who loses packets, not the discipline or chance"
                )
                findings.append(CellDoubt(cell, "warning", sentence, _OUT_OF_STEP, len(together)))
    finding = "lockstep has no losses" if found else "there are none with gaps in a fixed ratio"
    return Check(kind, "constant sources are not in lockstep", finding, merged(kind, results, findings))


_OUT_OF_STEP = "write `random_gaps = true`, or draw the sources' `start` at random and use several seeds"


def _keeps_phase(entry: TrafficClass, link: str) -> bool:
    """Whether the packets of a class come at constant gaps, in every seed at the same instants."""
    if entry.kind != "cbr" or entry.workload.get("random_gaps") or link not in entry.path:
        return False
    fixed = not isinstance(entry.workload["size_bytes"], Mapping)
    return fixed and (not isinstance(entry.start_ns, Mapping) or set(entry.start_ns) <= {"spread", "list"})


def _in_step(sources: Sequence[TrafficClass]) -> list[TrafficClass]:
    """Return the classes, with two flows or more, whose gaps are whole multiples of the shortest gap."""
    gaps = {
        entry.name: Fraction(8 * int(entry.workload["size_bytes"]), int(entry.workload["rate_bps"]))
        for entry in sources
    }
    shortest = min(gaps.values(), default=Fraction(1))
    together = [entry for entry in sources if (gaps[entry.name] / shortest).denominator == 1]
    return together if sum(entry.count for entry in together) > 1 else []


SHORT = 500
"""Measured intervals in which a link sends fewer packets than this are reported.

One packet more or less then changes goodput by more than 0.2 %; the number is our choice.
"""


def many_packets(results: Results) -> Check:
    """Check that the measured interval holds many packets, because goodput counts whole ones."""
    kind, findings, fewest = "short", [], math.inf
    for cell in results.cells:
        for run in results.measured(cell):
            plan, name = run.run.plan, results.queue_of(cell)
            link = plan.link(name)
            if link is None or not link.mean_packet_bytes:
                continue
            packets = link.rate_bps * run.interval_s / 8 / link.mean_packet_bytes
            fewest = min(fewest, packets)
            if packets < SHORT:
                sentence = (
                    f"`{name}` can send only {packets:.0f} packets in the measured interval: goodput counts"
                    f" whole packets, so it is accurate only to {100 / max(packets, 1):.1f} %"
                )
                remedy = (
                    "make the run longer, or use the throughput of the queue, which counts parts of packets"
                )
                findings.append(CellDoubt(cell, "note", sentence, remedy, -packets))
    finding = f"{fewest:.0f} or more" if math.isfinite(fewest) else "packet sizes are not in the plan"
    return Check(kind, "the measured interval holds many packets", finding, merged(kind, results, findings))
