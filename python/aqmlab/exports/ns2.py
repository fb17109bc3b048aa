"""Recorded packets as an ns-2 trace: a line per event at a link, in the columns of the ns manual.

``event time from to type size flags fid src dst seq id``, where an event is ``+`` (enqueue), ``-`` (dequeue),
``d`` (drop) or ``r`` (reception by the router at the link's end). Routers are numbered as in the plan; an
address is the number of the host's router, with the flow as the port. A sequence number counts bytes, as in
ns-2's FullTcp; for an ACK, it is the number acknowledged, and for a datagram, its number in its flow. Unlike
the numbers in headers, it continues beyond 2^32.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from aqmlab.exports.chosen import Chosen, lacks
from aqmlab.recordings.plan import Link
from aqmlab.recordings.traces import Positions
from aqmlab.results.results import Results

_SIGNS = {"enqueue": "+", "dequeue": "-", "receive": "r", "drop": "d"}
NEEDED = frozenset(_SIGNS)
_COLUMNS = "t_ns, event, place, flow, toward, number, wire_bytes, ecn, payload_bytes, seq, ack, flags"


def ns2_file(results: Results, chosen: Chosen) -> bytes:
    """Return the trace of a run.

    Raises
    ------
    UsageError
        If the packets at links, or any of their four kinds of events, were not recorded.
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
    # The rows are in the order of events.
    return "".join(trace.lines(results.tables.rows("packets", _COLUMNS, "", [run]))).encode()


class _Trace:
    def __init__(self, chosen: Chosen, classes: dict[int, str]) -> None:
        plan = chosen.run.plan
        self._links: dict[str, Link] = {link.name: link for link in plan.links}
        self._nodes = {name: i for i, name in enumerate(plan.nodes)}
        ends = {entry.name: plan.ends(entry) for entry in plan.classes}
        self._ends = {flow: ends[name] for flow, name in classes.items()}
        self._positions: defaultdict[int, Positions] = defaultdict(Positions)
        self._ids: dict[tuple[int, str, int], int] = {}

    def lines(self, rows: list[Any]) -> Iterator[str]:
        """The line of each event."""
        for t_ns, event, place, *packet in rows:
            if place in self._links and event in _SIGNS:
                yield f"{_SIGNS[event]} {_seconds(t_ns)} {self._about(self._links[place], *packet)}\n"

    def _about(  # noqa: PLR0913, PLR0917 (the columns of a row)
        self,
        link: Link,
        flow: int,
        toward: str,
        number: int,
        size: int,
        ecn: str,
        payload: int | None,
        seq: int | None,
        ack: int | None,
        flags: str,
    ) -> str:
        if seq is None or ack is None:
            kind, sequence = "udp", number
        else:
            kind = "tcp" if payload or set(flags) & set("SF") else "ack"
            positions = self._positions[flow]
            acknowledges = not payload and ack != 0
            sequence = positions.ack(toward, ack) if acknowledges else positions.seq(toward, seq)
        here = link.source, link.target
        ends = self._ends.get(flow, here if toward == "receiver" else here[::-1])
        source, target = ends if toward == "receiver" else ends[::-1]
        between = f"{self._nodes[link.source]} {self._nodes[link.target]}"
        addresses = f"{self._nodes[source]}.{flow} {self._nodes[target]}.{flow}"
        # As in ns-2, ids are unique in the run; a packet keeps its id from link to link.
        unique = self._ids.setdefault((flow, toward, number), len(self._ids))
        return f"{between} {kind} {size} {_flags(flags or '', ecn)} {flow} {addresses} {sequence} {unique}"


def _flags(flags: str, ecn: str) -> str:
    """Return ns-2's seven signs: C ECN echo, A window reduced, E congestion experienced, N ECN-capable."""
    of_tcp = ("C" if "E" in flags else "-") + "--" + ("A" if "W" in flags else "-")
    return of_tcp + ("E" if ecn == "CE" else "-") + "-" + ("-" if ecn == "not-ECT" else "N")


def _seconds(t_ns: int) -> str:
    """Return seconds without trailing zeros."""
    whole, part = divmod(t_ns, 10**9)
    return f"{whole}.{part:09d}".rstrip("0").rstrip(".")
