"""Distributions of queueing delay of single flows, from the packets that `packets` in `[record]` requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from aqmlab.errors import UsageError
from aqmlab.figures.delay_by_part import Curves, delay_panels
from aqmlab.figures.distributions import SHARES, DelayCdf
from aqmlab.figures.looks import dash_lengths
from aqmlab.figures.model import Figure, Look
from aqmlab.figures.view import View
from aqmlab.metrics.histograms import quoted
from aqmlab.recordings.recording import Run, Tables
from aqmlab.recordings.traces import FlowName, chosen, flow_names
from aqmlab.results.results import Results
from aqmlab.text.numbers import listed

MOST_FLOWS = 8


def flow_delay(results: Results, view: View, queue: str) -> Figure:
    """Distributions of queueing delay by flow: one plot per arm, for its first run.

    Raises
    ------
    UsageError
        If no packets were recorded at the queue, or a flow is unknown.
    """
    found = _found(results, view, queue)
    panels = delay_panels([(run.arm, curves) for run, curves in found], lambda i: Look(i, dash_lengths(i)))
    title = f"{results.title}: queueing delay by flow at {queue}, seed {found[0][0].seed}"
    return Figure(title, (tuple(panels),), wraps=True, share=("all", "all"))


def flow_delay_rows(results: Results, view: View, queue: str) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`flow_delay`."""
    yield ("arm", "flow", "delay_ms", "share")
    for run, curves in _found(results, view, queue):
        for name, cdf in curves.items():
            for delay, share in zip(cdf.delay_ms, cdf.share, strict=True):
                yield (run.arm, name, f"{delay:.9g}", f"{share:.9g}")


def _found(results: Results, view: View, queue: str) -> list[tuple[Run, Curves]]:
    allowed = ("`--arm`", "`--flow`")
    if given := [option for option in view.chosen() if option not in allowed]:
        raise UsageError(f"`flow-delay` shows flows in the measured interval; leave out {listed(given)}")
    found = []
    for run in view.runs(results):
        delays = _delays_ms(results.tables, run, queue, flow_names(results.tables, run, "packets"))
        flows = chosen(list(delays), view.flows, MOST_FLOWS)
        if flows:
            found.append((run, {str(flow): _distribution(delays[flow]) for flow in flows}))
    if not found:
        raise UsageError(
            f"no packet that left `{queue}` in the measured interval was recorded: name the link in `packets`"
            " of [record]"
        )
    return found


def _delays_ms(tables: Tables, run: Run, queue: str, flows: Sequence[FlowName]) -> dict[FlowName, Any]:
    """Return the sorted queueing delays of the packets that left a queue, by flow, without idle flows."""
    found = tables.arrays(
        "packets",
        "sent.flow AS flow, (sent.t_ns - came.t_ns) / 1e6 AS delay_ms",
        "sent JOIN packets came USING (place, flow, toward, number) WHERE sent.event = 'dequeue'"
        f" AND came.event = 'enqueue' AND place = {quoted(queue)}"
        f" AND sent.t_ns > {run.t0_ns} AND sent.t_ns <= {run.t1_ns} ORDER BY flow, delay_ms",
        [run],
    )
    numbers, delays = np.asarray(found["flow"]), np.asarray(found["delay_ms"])
    of_flows = {flow: delays[numbers == flow.flow] for flow in flows}
    return {flow: of_flow for flow, of_flow in of_flows.items() if len(of_flow)}


def _distribution(delays_ms: Any) -> DelayCdf:  # noqa: ANN401 (an array)
    """Return the distribution of sorted delays, of one run."""
    count = len(delays_ms)
    places = sorted({min(int(share * count), count - 1) for share in SHARES})
    ends = np.unique(delays_ms[places])
    share = (np.searchsorted(delays_ms, ends, side="right") / count).tolist()
    grid, shares = [0.0, *ends.tolist()], [float((delays_ms <= 0).mean()), *share]
    return DelayCdf(grid, shares, shares, shares, 1, float(delays_ms[int(0.99 * (count - 1))]))
