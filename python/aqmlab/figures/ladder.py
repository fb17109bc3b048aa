"""The ladder diagram: a connection as two time lines, with each packet as an arrow between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.figures.looks import MUTED, PALETTE
from aqmlab.figures.model import Arrow, Axis, Entry, Figure, Ladder, Line, Look, Mark, Panel
from aqmlab.figures.sequence import packets_of
from aqmlab.figures.view import View
from aqmlab.recordings.traces import FlowName, Journey
from aqmlab.results.results import Results
from aqmlab.text.numbers import time_text

MOST_PACKETS = 150
"""Largest number of arrows; more would merge into a grey area."""
_FIRST = 40
"""Number of packets shown by default."""
_INCHES_A_PACKET = 0.16
_LOST_AT = 0.55
"""All losses are drawn at this position, because neither host knows where a loss occurred."""


# The lines can also be distinguished in grey.
_SEGMENT = Look(PALETTE[0], width=0.7)
_AGAIN = Look(PALETTE[1], width=1.6)
_ACK = Look(MUTED, (7.2, 3.6), width=0.7)
_LOST = Look(PALETTE[3], mark="cross", size=1.5, line=False)
_MARKED = Look(PALETTE[2], mark="diamond", size=1.06, line=False)


def ladder(results: Results, view: View, _queue: str) -> Figure:
    """Segments, acknowledgments, marks and losses of one connection in the first of the chosen arms."""
    arm, flow, packets = _chosen(results, view)
    height = min(max(_INCHES_A_PACKET * len(packets), 3.0), 9.0)
    origin = min((p.seq for p in packets if p.seq is not None), default=0)
    arrows = tuple(_arrow(packet, caption(packet, origin)) for packet in packets)
    marks: list[Mark] = [Ladder(arrows, height)]
    lost = [one.end for one, packet in zip(arrows, packets, strict=True) if packet.lost_ns is not None]
    marked = [_along(one, at / 1e6) for one, p in zip(arrows, packets, strict=True) for at in p.marked_ns]
    marks += [
        Line("", [x for x, _ in points], [y for _, y in points], look)
        for points, look in ((lost, _LOST), (marked, _MARKED))
        if points
    ]
    notes = {
        "segment": _SEGMENT,
        **({"sent again": _AGAIN} if any(p.again for p in packets) else {}),
        "acknowledgment": _ACK,
        **({"lost": _LOST} if lost else {}),
        **({"marked": _MARKED} if marked else {}),
    }
    return Figure(
        f"{results.title}: {flow}, {arm}",
        ((Panel("", Axis(), Axis("time [ms]"), tuple(marks)),),),
        tuple(Entry(name, look) for name, look in notes.items()),
        size=(4.9, height + 0.9),
    )


def caption(packet: Journey, origin: int) -> str:
    """Return a packet's contents, with sequence numbers relative to the first: ``1:1461``, ``ack 1461``."""
    flags = "".join(letter for letter in packet.flags if letter != "A")
    words = {"S": "SYN", "F": "FIN", "R": "RST", "E": "ECE", "W": "CWR"}
    parts = [words[letter] for letter in flags]
    if packet.seq is not None and packet.payload:
        parts.append(f"{packet.seq - origin}:{packet.seq - origin + packet.payload}")
    elif packet.ack is not None and "A" in packet.flags:
        # Both directions start at the same sequence number, which the profile sets.
        parts.append(f"ack {packet.ack - origin}")
    return " ".join(parts)


def _chosen(results: Results, view: View) -> tuple[str, FlowName, list[Journey]]:
    run = view.runs(results)[0]
    flow, packets = packets_of(results, run, view, 1)[0]
    begin, end = view.limits(0.0, run.t1_ns / 1e9)
    shown = [p for p in packets if begin * 1e9 <= p.sent_ns <= end * 1e9]
    if view.from_s is None and view.until_s is None:
        shown = shown[:_FIRST]
    if not shown:
        raise UsageError(f"`{flow}` sent nothing from {time_text(begin)} to {time_text(end)}")
    if len(shown) > MOST_PACKETS:
        raise UsageError(
            f"`{flow}` sent {len(shown)} packets from {time_text(begin)} to {time_text(end)}; choose an"
            f" interval with at most {MOST_PACKETS}: `--from 2s --until 2.5s`"
        )
    return run.arm, flow, shown


def _arrow(packet: Journey, text: str) -> Arrow:
    """A packet as an arrow between the time lines of the sender, at 0, and of the receiver, at 1."""
    begin = 0.0 if packet.toward == "receiver" else 1.0
    sent = packet.sent_ns / 1e6
    end = (begin, sent)
    if packet.arrived_ns is not None:
        end = (1.0 - begin, packet.arrived_ns / 1e6)
    elif packet.lost_ns is not None:
        end = (abs(begin - _LOST_AT), packet.lost_ns / 1e6)
    look = (_AGAIN if packet.again else _SEGMENT) if packet.is_data else _ACK
    return Arrow((begin, sent), end, look, text)


def _along(arrow: Arrow, at: float) -> tuple[float, float]:
    """The point of an arrow at a time in ms."""
    (begin, sent), (end, arrived) = arrow.begin, arrow.end
    share = (at - sent) / (arrived - sent) if arrived > sent else 0.5
    return begin + share * (end - begin), at


def ladder_rows(results: Results, view: View, _queue: str) -> Iterator[tuple[Any, ...]]:
    """Return the diagram as numbers: one row per packet."""
    yield (
        "toward",
        "sent_s",
        "arrived_s",
        "lost_s",
        "lost_at",
        "reason",
        "marks",
        "seq",
        "ack",
        "payload_bytes",
        "flags",
        "sent_again",
    )
    for p in _chosen(results, view)[2]:
        moments = ["" if at is None else f"{at / 1e9:.9f}" for at in (p.sent_ns, p.arrived_ns, p.lost_ns)]
        header = ["" if value is None else value for value in (p.seq, p.ack, p.payload)]
        yield (p.toward, *moments, p.lost_at, p.reason, len(p.marked_ns), *header, p.flags, int(p.again))
