"""Time-sequence diagrams: times of transmission, retransmission, loss and acknowledgment of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aqmlab.errors import UsageError
from aqmlab.figures.looks import MUTED, PALETTE
from aqmlab.figures.model import Figure, Line, Look, Mark, over_time, warmup
from aqmlab.figures.view import View
from aqmlab.recordings.recording import Run
from aqmlab.recordings.traces import FlowName, Journey, chosen, flow_names, journeys
from aqmlab.results.results import Results

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
    begin, end = view.limits(*_recorded_s(packets for of_run in columns for _, packets in of_run))
    rows: dict[str, list[list[Mark]]] = {
        f"{flows[0][0]}\nposition [segments]": [
            [*warmup(run.t0_ns / 1e9, begin), *sequence_lines(sequence_points(packets))]
            for run, (_, packets) in zip(runs, flows, strict=True)
        ]
        for flows in zip(*columns, strict=False)
    }
    title = f"{results.title}: time-sequence diagram, seed {runs[0].seed}"
    return over_time(title, [run.arm for run in runs], rows, (begin, end), height=2.6)


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


def _marks(color: str, mark: str, size: float = 1.2) -> Look:
    return Look(color, mark=mark, size=size, line=False, hollow="clear", order=3)


def sequence_lines(points: SequencePoints) -> list[Line]:
    """The diagram of one flow."""
    segment = Look(PALETTE[0], mark="dot", size=0.76, line=False, order=2)
    lines = [
        Line("cumulative ACK", *points.acked, Look(MUTED, width=0.8, order=1), steps=True),
        Line("segment", *points.sent, segment),
        Line("sent again", *points.again, _marks(PALETTE[1], "square")),
        Line("lost", *points.lost, _marks(PALETTE[3], "cross")),
    ]
    if len(points.marked[0]):
        lines.append(Line("marked", *points.marked, _marks(PALETTE[2], "diamond", 1.06)))
    return lines


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
