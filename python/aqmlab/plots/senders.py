"""Figures of senders over time: windows with the causes of reductions, round-trip times and timers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab.figures.looks import MUTED, PALETTE
from aqmlab.figures.view import View
from aqmlab.plots.appearance import warmup
from aqmlab.plots.panels import fit, legend_below, panels, plain_powers
from aqmlab.recordings.recording import Run
from aqmlab.recordings.traces import Trace, chosen, flow_names, trace
from aqmlab.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_FLOWS = 2
"""Default number of flows, each in a row of panels; such a figure fits on a page with text."""

# The name, symbol and colour of each event; the symbol is drawn at the height of the window just before
# the event.
_SYMBOLS = {
    "timeout": ("timeout", "x", PALETTE[3]),
    "fast_retransmit": ("fast retransmit", "v", PALETTE[1]),
    "ecn_reduction": ("ECN reduction", "D", PALETTE[2]),
}


def traces_of(results: Results, run: Run, view: View) -> list[Trace]:
    """Return the traces of a run that are to be drawn."""
    flows = chosen(flow_names(results.tables, run, "trace"), view.flows, MOST_FLOWS)
    return [trace(results.tables, run, flow) for flow in flows]


def cwnd(results: Results, view: View, _queue: str) -> Figure:
    """Window and threshold of individual flows, with timeouts, fast retransmits and ECN reductions."""
    return _figure(results, view, "congestion window", "cwnd [segments]", _draw_cwnd)


def srtt(results: Results, view: View, _queue: str) -> Figure:
    """Smoothed round-trip time and retransmission timeout of individual flows."""
    figure = _figure(results, view, "round-trip time", "time [ms]", _draw_srtt)
    for axes in figure.axes:
        # A timeout is about a second, a round trip a few milliseconds.
        axes.set_yscale("log")
        plain_powers(axes.yaxis)
        axes.autoscale(axis="y")
    return figure


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


_Draw = Callable[["Axes", Trace], None]


def _figure(results: Results, view: View, what: str, label: str, draw: _Draw) -> Figure:
    runs = view.runs(results)
    columns = [traces_of(results, run, view) for run in runs]
    figure, axes = panels(
        f"{results.title}: {what}, seed {runs[0].seed}",
        [run.arm for run in runs],
        [str(of_flow.name) for of_flow in columns[0]],
        label,
    )
    limits = view.limits(0.0, max(run.t1_ns for run in runs) / 1e9)
    for column, of_run in enumerate(columns):
        warmup(axes[:, column], runs[column].t0_ns / 1e9, limits[0])
        for row, of_flow in enumerate(of_run):
            draw(axes[row, column], of_flow)
    # The first threshold may be far above all windows.
    fit(axes, limits, bottom=0.0, ignoring=["ssthresh"])
    legend_below(figure, axes.flat)
    return figure


def _draw_cwnd(axes: Axes, of_flow: Trace) -> None:
    window, threshold = of_flow.values["cwnd_segments"], of_flow.values["ssthresh_segments"]
    axes.plot(
        of_flow.t_s,
        threshold,
        color=MUTED,
        drawstyle="steps-post",
        linewidth=0.8,
        linestyle="--",
        label="ssthresh",
    )
    axes.plot(of_flow.t_s, window, color=PALETTE[0], drawstyle="steps-post", linewidth=0.8, label="cwnd")
    for event, (label, symbol, color) in _SYMBOLS.items():
        here = of_flow.event == event
        if here.any():
            axes.plot(
                of_flow.t_s[here],
                window[here],
                symbol,
                markersize=3.5,
                color=color,
                fillstyle="none",
                label=label,
            )


def _draw_srtt(axes: Axes, of_flow: Trace) -> None:
    for column, label, color, dash in (
        ("rto_ns", "retransmission timeout", MUTED, "--"),
        ("srtt_ns", "smoothed RTT", PALETTE[0], "-"),
    ):
        style: dict[str, Any] = {"color": color, "linestyle": dash, "linewidth": 0.8}
        milliseconds = of_flow.values[column] / 1e6
        axes.plot(of_flow.t_s, milliseconds, drawstyle="steps-post", label=label, **style)
