"""Recorded packets as an ns-2 trace: a line per event at a link, in the columns of the ns manual.

``event time from to type size flags fid src dst seq id``, where an event is ``+`` (enqueue), ``-`` (dequeue),
``d`` (drop) or ``r`` (reception by the router at the link's end). Routers are numbered as in the plan; an
address is the number of the host's router, with the flow as the port. A sequence number counts bytes, as in
ns-2's FullTcp; for an ACK, it is the number acknowledged, and for a datagram, its position in its flow.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aqmlab.exports.chosen import Chosen, lacks
from aqmlab.plan import Link
from aqmlab.results import Results

_SIGNS = {"enqueue": "+", "dequeue": "-", "drop": "d"}
NEEDED = frozenset(_SIGNS)
_COLUMNS = "t_ns, event, place, flow, toward, wire_bytes, ecn, payload_bytes, seq, ack, flags"
Header = tuple[Any, ...]


def ns2_file(results: Results, chosen: Chosen) -> bytes:
    """Return the trace of a run.

    Raises
    ------
    UsageError
        If the packets at links, or any of their three kinds of events, were not recorded.
    """
    run = chosen.run
    packets = run.plan.packets
    if "packets" not in run.manifest.tables or packets is None or not packets.links:
        key = f'packets = {{ links = ["{run.links[0].name}"] }}'
        raise lacks(run, "packets at links", key)
    if missing := sorted(NEEDED - packets.events):
        listed = ", ".join(f'"{event}"' for event in sorted(NEEDED))
        raise lacks(run, f"{missing[0]} of packets", f"events = [{listed}]")
    classes = dict(results.tables.rows("flows", "flow, class", "ORDER BY flow", [run]))
    trace = _Trace(chosen, classes)
    lines = list(trace.lines(results.tables.rows("packets", _COLUMNS, "", [run])))
    # The line for a packet's reception is generated when the packet is sent, although it is received later.
    lines.sort(key=lambda line: line[0])
    return "".join(text for _, text in lines).encode()


@dataclass
class _Packet:
    number: int
    sequence: int


class _Trace:
    """Follows packets from link to link by their order, because packets have no numbers."""

    def __init__(self, chosen: Chosen, classes: dict[int, str]) -> None:
        plan = chosen.run.plan
        self._links: dict[str, Link] = {link.name: link for link in plan.links}
        self._nodes = {name: i for i, name in enumerate(plan.nodes)}
        ends = {entry.name: plan.ends(entry) for entry in plan.classes}
        self._ends = {flow: ends[name] for flow, name in classes.items()}
        self._waiting: defaultdict[tuple[str, Header], deque[_Packet]] = defaultdict(deque)
        self._under_way: defaultdict[tuple[str, Header], deque[_Packet]] = defaultdict(deque)
        self._arrived: dict[tuple[str, Header], int] = {}
        self._sequences: defaultdict[tuple[int, str], int] = defaultdict(int)
        self._next = 0

    def lines(self, rows: list[Any]) -> Iterator[tuple[int, str]]:
        """The instant and the text of each event."""
        for t_ns, event, place, flow, toward, size, ecn, payload, seq, ack, flags in rows:
            if place not in self._links or event not in _SIGNS:
                continue
            link, header = self._links[place], (flow, toward, seq, ack, payload, flags, size)
            packet = self._met(event, t_ns, link, header)
            if packet is None:
                continue
            about = self._about(link, header, ecn, packet)
            yield t_ns, f"{_SIGNS[event]} {_seconds(t_ns)} {about}"
            if event == "dequeue":
                wire_bits = 8 * (size + link.overhead_bytes)
                there_ns = t_ns + -(-wire_bits * 10**9 // link.rate_bps) + link.delay_ns
                yield there_ns, f"r {_seconds(there_ns)} {about}"

    def _met(self, event: str, t_ns: int, link: Link, header: Header) -> _Packet | None:
        here = self._waiting[link.name, header]
        if event == "enqueue":
            packet = self._from_before(link, header)
            here.append(packet)
            self._arrived[link.name, header] = t_ns
            return packet
        if not here:
            # The packet arrived before the recording began.
            return None
        if event == "drop":
            # A packet dropped at the instant of an arrival is taken to be the packet that arrived.
            return here.pop() if self._arrived[link.name, header] == t_ns else here.popleft()
        packet = here.popleft()
        self._under_way[link.target, header].append(packet)
        return packet

    def _from_before(self, link: Link, header: Header) -> _Packet:
        """Return the packet that has left the previous link, or a new packet if there is none."""
        before = self._under_way[link.source, header]
        if before:
            return before.popleft()
        flow, toward, seq, ack, payload, *_ = header
        if seq is None:
            sequence = self._sequences[flow, toward]
            self._sequences[flow, toward] += 1
        else:
            sequence = seq if payload else ack or seq
        packet = _Packet(self._next, sequence)
        self._next += 1
        return packet

    def _about(self, link: Link, header: Header, ecn: str, packet: _Packet) -> str:
        flow, toward, seq, _, payload, flags, size = header
        kind = "udp" if seq is None else "tcp" if payload or set(flags) & set("SF") else "ack"
        here = link.source, link.target
        ends = self._ends.get(flow, here if toward == "receiver" else here[::-1])
        source, target = ends if toward == "receiver" else ends[::-1]
        between = f"{self._nodes[link.source]} {self._nodes[link.target]}"
        addresses = f"{self._nodes[source]}.{flow} {self._nodes[target]}.{flow}"
        signs = _flags(flags or "", ecn)
        return f"{between} {kind} {size} {signs} {flow} {addresses} {packet.sequence} {packet.number}\n"


def _flags(flags: str, ecn: str) -> str:
    """Return ns-2's seven signs: C ECN echo, A window reduced, E congestion experienced, N ECN-capable."""
    of_tcp = ("C" if "E" in flags else "-") + "--" + ("A" if "W" in flags else "-")
    return of_tcp + ("E" if ecn == "CE" else "-") + "-" + ("-" if ecn == "not-ECT" else "N")


def _seconds(t_ns: int) -> str:
    """Return seconds without trailing zeros."""
    whole, part = divmod(t_ns, 10**9)
    return f"{whole}.{part:09d}".rstrip("0").rstrip(".")


__all__ = ["NEEDED", "ns2_file"]
