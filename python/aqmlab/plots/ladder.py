"""The ladder diagram: a connection as two time lines, with each packet as an arrow between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.errors import UsageError
from aqmlab.figures.looks import MUTED, PALETTE
from aqmlab.figures.view import View
from aqmlab.plots.appearance import entitle, legend_below, new_figure, points_of, text_width
from aqmlab.plots.panels import WIDTH
from aqmlab.plots.sequence import packets_of
from aqmlab.recordings.traces import FlowName, Journey
from aqmlab.results.results import Results
from aqmlab.text.numbers import time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_PACKETS = 150
"""Largest number of arrows; more would merge into a grey area."""
_FIRST = 40
"""Number of packets shown by default."""
_INCHES_A_PACKET = 0.16
_LETTERS = 0.7
"""Font size of an arrow's label, relative to that of the figure."""
_LOST_AT = 0.55
"""All losses are drawn at this position, because neither host knows where a loss occurred."""


# The strokes can also be distinguished in grey.
_STROKES: dict[str, dict[str, Any]] = {
    "segment": {"linewidth": 0.7},
    "again": {"linewidth": 1.6},
    "ack": {"linewidth": 0.7, "linestyle": (0, (4, 2))},
}


def ladder(results: Results, view: View, _queue: str) -> Figure:
    """Segments, acknowledgments, marks and losses of one connection in the first of the chosen arms."""
    arm, flow, packets = _chosen(results, view)
    height = min(max(_INCHES_A_PACKET * len(packets), 3.0), 9.0)
    figure = new_figure(WIDTH * 0.7, height + 0.9)
    axes = figure.subplots()
    times = [p.sent_ns for p in packets] + [p.arrived_ns or p.sent_ns for p in packets]
    begin, end = min(times) / 1e6, max(times) / 1e6
    for x, host in ((0.0, "sender"), (1.0, "receiver")):
        axes.axvline(x, color="black", linewidth=0.8)
        axes.text(x, 1.01, host, transform=axes.get_xaxis_transform(), ha="center", va="bottom")
    origin = min((p.seq for p in packets if p.seq is not None), default=0)
    label_room = (end - begin) / max(height / 0.1, 1)
    labelled = {"receiver": float("-inf"), "sender": float("-inf")}
    for packet in packets:
        _arrow(axes, packet)
        sent = packet.sent_ns / 1e6
        # The labels of a burst's packets would overlap, so only the first packet has one.
        if sent - labelled[packet.toward] >= label_room:
            labelled[packet.toward] = sent
            x, side = (-0.02, "right") if packet.toward == "receiver" else (1.02, "left")
            axes.text(
                x,
                sent,
                caption(packet, origin),
                ha=side,
                va="center",
                fontsize=_LETTERS * points_of("font.size"),
            )
    size = _LETTERS * points_of("font.size")
    words = max(text_width(caption(packet, origin), size) for packet in packets)
    beside = (words + 8) / max(72.0 * (figure.get_figwidth() - 0.8) - 2 * (words + 8), 36.0)
    beside = max(beside, 0.2)
    axes.set(xlim=(-beside, 1 + beside), ylim=(end + label_room, begin - label_room), ylabel="time [ms]")
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    entitle(figure, f"{results.title}: {flow}, {arm}")
    _legend(figure, packets)
    return figure


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


def _color(packet: Journey) -> str:
    if packet.is_data:
        return PALETTE[1] if packet.again else PALETTE[0]
    return MUTED


def _stroke(packet: Journey) -> str:
    if packet.is_data:
        return "again" if packet.again else "segment"
    return "ack"


def _arrow(axes: Axes, packet: Journey) -> None:
    begin = 0.0 if packet.toward == "receiver" else 1.0
    sent = packet.sent_ns / 1e6
    if packet.arrived_ns is not None:
        end, arrived = 1.0 - begin, packet.arrived_ns / 1e6
    elif packet.lost_ns is not None:
        end, arrived = abs(begin - _LOST_AT), packet.lost_ns / 1e6
    else:
        return
    axes.annotate(
        "",
        (end, arrived),
        (begin, sent),
        arrowprops={
            "arrowstyle": "-|>",
            "color": _color(packet),
            **_STROKES[_stroke(packet)],
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 5,
        },
    )
    if packet.lost_ns is not None:
        axes.plot(end, arrived, "x", color=PALETTE[3], markersize=5)
    for at in packet.marked_ns:
        share = (at / 1e6 - sent) / (arrived - sent) if arrived > sent else 0.5
        axes.plot(begin + share * (end - begin), at / 1e6, "D", color=PALETTE[2], markersize=3.5)


def _legend(figure: Figure, packets: Sequence[Journey]) -> None:
    """Draw a legend of the kinds of packets that are in the diagram."""
    from matplotlib.lines import Line2D

    mark: dict[str, Any] = {"linestyle": "none", "markersize": 4.0}
    kinds = [
        ("segment", True, Line2D([], [], color=PALETTE[0], **_STROKES["segment"])),
        ("sent again", any(p.again for p in packets), Line2D([], [], color=PALETTE[1], **_STROKES["again"])),
        ("acknowledgment", True, Line2D([], [], color=MUTED, **_STROKES["ack"])),
        (
            "lost",
            any(p.lost_ns is not None for p in packets),
            Line2D([], [], color=PALETTE[3], marker="x", **mark),
        ),
        ("marked", any(p.marked_ns for p in packets), Line2D([], [], color=PALETTE[2], marker="D", **mark)),
    ]
    legend_below(figure, [], {name: handle for name, there, handle in kinds if there})


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
