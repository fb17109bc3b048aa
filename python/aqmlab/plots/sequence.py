"""Time-sequence diagrams: times of transmission, retransmission, loss and acknowledgment of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from aqmlab.errors import UsageError
from aqmlab.figures.looks import MUTED, PALETTE
from aqmlab.figures.view import View
from aqmlab.plots.appearance import warmup
from aqmlab.plots.panels import fit, legend_below, panels
from aqmlab.recordings.recording import Run
from aqmlab.recordings.traces import FlowName, Journey, chosen, flow_names, journeys
from aqmlab.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_FLOWS = 1
Floats = npt.NDArray[np.float64]
Points = tuple[Floats, Floats]


@dataclass(frozen=True)
class SequencePoints:
    """Points of a time-sequence diagram: times in s, and positions in the stream in segments."""

    sent: Points
    again: Points
    lost: Points
    marked: Points
    acked: Points
    """Cumulative acknowledgments as they reach the sender."""


def packets_of(results: Results, run: Run, view: View, most: int) -> list[tuple[FlowName, list[Journey]]]:
    """Return the packets of those flows of a run that are to be drawn.

    Raises
    ------
    UsageError
        If the hosts' own events were not recorded.
    """
    flows = chosen(flow_names(results.tables, run, "packets"), view.flows, most)
    found = [(flow, journeys(results.tables, run, flow)) for flow in flows]
    if not any(packets for _, packets in found):
        raise UsageError(
            f"`{run.path}` has packets at links only: choose `flows` in `packets` of [record], so that"
            " the times at which hosts send are recorded"
        )
    return found


def sequence_points(packets: Sequence[Journey]) -> SequencePoints:
    """The points of one flow's diagram; positions are in multiples of the longest segment."""
    data = [p for p in packets if p.toward == "receiver" and p.seq is not None and p.payload]
    origin = min((p.seq or 0 for p in data), default=0)
    length = max((p.payload or 0 for p in data), default=1)

    def points(pairs: list[tuple[int, int]]) -> Points:
        times, positions = np.array(pairs or np.zeros((0, 2)), dtype=np.float64).T
        return times / 1e9, (positions - origin) / length

    return SequencePoints(
        sent=points([(p.sent_ns, p.seq or 0) for p in data if not p.again]),
        again=points([(p.sent_ns, p.seq or 0) for p in data if p.again]),
        lost=points([(p.lost_ns, p.seq or 0) for p in data if p.lost_ns is not None]),
        marked=points([(at, p.seq or 0) for p in data for at in p.marked_ns]),
        acked=points(
            [
                (p.arrived_ns, p.ack or 0)
                for p in packets
                if p.toward == "sender" and p.arrived_ns is not None and (p.ack or 0) >= origin
            ]
        ),
    )


def time_sequence(results: Results, view: View, _queue: str) -> Figure:
    """Draw segments, retransmissions, losses, marks and ACKs of individual flows; one column per arm."""
    runs = view.runs(results)
    columns = [packets_of(results, run, view, MOST_FLOWS) for run in runs]
    figure, axes = panels(
        f"{results.title}: time-sequence diagram, seed {runs[0].seed}",
        [run.arm for run in runs],
        [str(flow) for flow, _ in columns[0]],
        "position [segments]",
        height=2.6,
    )
    limits = view.limits(*_recorded_s(packets for of_run in columns for _, packets in of_run))
    for column, of_run in enumerate(columns):
        warmup(axes[:, column], runs[column].t0_ns / 1e9, limits[0])
        for row, (_, packets) in enumerate(of_run):
            draw_sequence(axes[row, column], sequence_points(packets))
    fit(axes, limits)
    legend_below(figure, axes.flat)
    return figure


def _recorded_s(flows: Iterable[Sequence[Journey]]) -> tuple[float, float]:
    """Return the times [s] of the first and last events (sent, arrived, lost) of these flows' packets."""
    times = [
        at
        for packets in flows
        for p in packets
        for at in (p.sent_ns, p.arrived_ns, p.lost_ns)
        if at is not None
    ]
    return min(times) / 1e9, max(times) / 1e9


def draw_sequence(axes: Axes, points: SequencePoints) -> None:
    """Draw one flow's diagram."""
    axes.plot(
        *points.acked, color=MUTED, drawstyle="steps-post", linewidth=0.8, label="cumulative ACK", zorder=1
    )
    style: dict[str, Any] = {"linestyle": "none", "fillstyle": "none", "zorder": 3}
    axes.plot(
        *points.sent, ".", color=PALETTE[0], markersize=2.5, label="segment", linestyle="none", zorder=2
    )
    axes.plot(*points.again, "s", color=PALETTE[1], markersize=4, label="sent again", **style)
    axes.plot(*points.lost, "x", color=PALETTE[3], markersize=4, label="lost", **style)
    if len(points.marked[0]):
        axes.plot(*points.marked, "D", color=PALETTE[2], markersize=3.5, label="marked", **style)


def sequence_rows(results: Results, view: View, _queue: str) -> Iterator[tuple[Any, ...]]:
    """Return the diagram as numbers."""
    yield ("arm", "flow", "what", "t_s", "position_segments")
    for run in view.runs(results):
        begin, end = view.limits(0.0, run.t1_ns / 1e9)
        for flow, packets in packets_of(results, run, view, MOST_FLOWS):
            points = sequence_points(packets)
            for what in ("sent", "again", "lost", "marked", "acked"):
                for t_s, position in zip(*getattr(points, what), strict=True):
                    if begin <= t_s <= end:
                        yield (run.arm, flow, what, f"{t_s:.9f}", f"{position:.10g}")
