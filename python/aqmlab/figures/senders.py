"""Figures of senders over time: windows with the causes of reductions, round-trip times and timers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from aqmlab.figures.looks import DASHED, MUTED, PALETTE
from aqmlab.figures.model import THRESHOLD, Figure, Line, Look, Mark, over_time, warmup
from aqmlab.figures.view import View
from aqmlab.recordings.recording import Run
from aqmlab.recordings.traces import Trace, chosen, flow_names, trace
from aqmlab.results.results import Results

MOST_FLOWS = 2
"""Default number of flows, each in a row of panels; such a figure fits on a page with text."""

# The name, mark and colour of each event; the mark is at the height of the window just before the event.
_MARKS = {
    "timeout": ("timeout", "cross", PALETTE[3]),
    "fast_retransmit": ("fast retransmit", "inverted_triangle", PALETTE[1]),
    "ecn_reduction": ("ECN reduction", "diamond", PALETTE[2]),
}


def traces_of(results: Results, run: Run, view: View) -> list[Trace]:
    """Return the traces of a run that are to be drawn."""
    flows = chosen(flow_names(results.tables, run, "trace"), view.flows, MOST_FLOWS)
    return [trace(results.tables, run, flow) for flow in flows]


def cwnd(results: Results, view: View, _queue: str) -> Figure:
    """Window and threshold of individual flows, with timeouts, fast retransmits and ECN reductions."""
    return _figure(results, view, "congestion window", "cwnd [segments]", _of_cwnd)


def srtt(results: Results, view: View, _queue: str) -> Figure:
    """Smoothed round-trip time and retransmission timeout of individual flows."""
    # A timeout is about a second, a round trip a few milliseconds.
    return _figure(results, view, "round-trip time", "time [ms]", _of_srtt, log=True)


def trace_rows(results: Results, view: View, _queue: str) -> Iterator[tuple[Any, ...]]:
    """Return both figures as numbers."""
    yield ("arm", "flow", "t_s", "event", "cwnd_segments", "ssthresh_segments", "srtt_ns", "rto_ns")
    for run in view.runs(results):
        begin, end = view.limits(0.0, run.t1_ns / 1e9)
        for of_flow in traces_of(results, run, view):
            values = [
                of_flow.values[name] for name in ("cwnd_segments", "ssthresh_segments", "srtt_ns", "rto_ns")
            ]
            for i in np.flatnonzero((of_flow.t_s >= begin) & (of_flow.t_s <= end)):
                numbers = ["" if np.isnan(column[i]) else f"{column[i]:.10g}" for column in values]
                yield (run.arm, of_flow.name, f"{of_flow.t_s[i]:.9f}", of_flow.event[i], *numbers)


def _figure(  # noqa: PLR0913 (keyword arguments)
    results: Results,
    view: View,
    what: str,
    label: str,
    of_flow: Callable[[Trace], list[Line]],
    *,
    log: bool = False,
) -> Figure:
    runs = view.runs(results)
    columns = [traces_of(results, run, view) for run in runs]
    begin, end = view.limits(0.0, max(run.t1_ns for run in runs) / 1e9)
    rows: dict[str, list[list[Mark]]] = {
        f"{names[0].name}\n{label}": [
            [*warmup(run.t0_ns / 1e9, begin), *of_flow(one)] for run, one in zip(runs, names, strict=True)
        ]
        for names in zip(*columns, strict=False)
    }
    title = f"{results.title}: {what}, seed {runs[0].seed}"
    bottom = None if log else 0.0
    return over_time(title, [run.arm for run in runs], rows, (begin, end), bottom=bottom, log=log)


def _of_cwnd(of_flow: Trace) -> list[Line]:
    window, threshold = of_flow.values["cwnd_segments"], of_flow.values["ssthresh_segments"]
    # The first threshold may be far above all windows.
    lines = [
        Line("ssthresh", of_flow.t_s, threshold, THRESHOLD, steps=True, free=True),
        Line("cwnd", of_flow.t_s, window, Look(PALETTE[0], width=0.8), steps=True),
    ]
    for event, (label, mark, color) in _MARKS.items():
        here = of_flow.event == event
        if here.any():
            look = Look(color, mark=mark, size=1.06, line=False, hollow="clear")
            lines.append(Line(label, of_flow.t_s[here], window[here], look))
    return lines


def _of_srtt(of_flow: Trace) -> list[Line]:
    timeout, smoothed = Look(MUTED, DASHED, width=0.8), Look(PALETTE[0], width=0.8)
    return [
        Line(label, of_flow.t_s, of_flow.values[column] / 1e6, look, steps=True)
        for column, label, look in (
            ("rto_ns", "retransmission timeout", timeout),
            ("srtt_ns", "smoothed RTT", smoothed),
        )
    ]
