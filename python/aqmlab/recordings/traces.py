"""The histories of individual flows: traces of their senders, and all of their packets.

Both exist only if the scenario requests them: `trace` and `packets` in `[record]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from aqmlab.errors import UsageError
from aqmlab.recordings.frames import REAL, TEXT, Columns, Framed
from aqmlab.recordings.recording import Run, Tables
from aqmlab.text.numbers import counted

Floats = npt.NDArray[np.float64]

REACTIONS = ("timeout", "fast_retransmit", "ecn_reduction")
"""Events of a trace that are reactions to congestion."""


@dataclass(frozen=True)
class FlowName:
    """A flow of a run: its number there, its class, its index within the class."""

    flow: int
    class_name: str
    index: int

    def __str__(self) -> str:
        """``ftp 3``."""
        return f"{self.class_name} {self.index}"


def flow_names(tables: Tables, run: Run, table: str) -> list[FlowName]:
    """The flows in a table of a run, in the order of their numbers.

    Raises
    ------
    UsageError
        If the run has no such table.
    """
    if not has(run, table):
        name = run.plan.classes[0].name
        wanted = {"trace": f'trace = ["{name}"]', "packets": f'packets = {{ flows = ["{name}"] }}'}
        raise UsageError(
            f"`{run.path}` has no `{table}`: write, say, `{wanted[table]}` into [record] of the scenario"
            " and run it again"
        )
    told = {int(row[0]) for row in tables.rows(table, "DISTINCT flow", "", [run])}
    rows = tables.rows("flows", "flow, class, index", "ORDER BY flow", [run])
    return [FlowName(int(flow), str(c), int(index)) for flow, c, index in rows if int(flow) in told]


def has(run: Run, table: str) -> bool:
    """Whether a run has a table that is recorded only on request."""
    return table in run.manifest.tables


def chosen(flows: Sequence[FlowName], wanted: Sequence[str], most: int) -> list[FlowName]:
    """The requested flows, by class or by name (``ftp 3``); if none is named, the first ``most`` flows.

    Raises
    ------
    UsageError
        If a name matches no flow.
    """
    if not wanted:
        return list(flows[:most])
    found = []
    for name in wanted:
        fitting = [flow for flow in flows if name in (str(flow), flow.class_name)]
        if not fitting:
            listed = ", ".join(f"`{flow}`" for flow in flows[:MOST_LISTED])
            more = ", ..." if len(flows) > MOST_LISTED else ""
            raise UsageError(f"no flow `{name}` was recorded; the recorded flows are {listed}{more}")
        found += [flow for flow in fitting if flow not in found]
    return found


MOST_LISTED = 8


@dataclass(frozen=True, repr=False)
class Trace(Framed):
    """Changes in the state of one sender; each value holds from its time on.

    As a data frame, it has a row per change.

    Attributes
    ----------
    t_s
        Seconds since the start of the run, ascending.
    event
        ``open``, ``change``, or one of :data:`REACTIONS`.
    values
        Columns of ``trace`` by name; missing values are NaN.
    """

    name: FlowName
    t_s: Floats
    event: npt.NDArray[np.str_]
    values: Mapping[str, Floats]

    def __repr__(self) -> str:
        return (
            f"<Trace of {str(self.name)!r}: {counted(len(self.t_s), 'change')} of {', '.join(self.values)}>"
        )

    def _frame_columns(self) -> Columns:
        return {
            "t_s": (REAL, self.t_s.tolist()),
            "event": (TEXT, self.event.tolist()),
            **{name: (REAL, values.tolist()) for name, values in self.values.items()},
        }

    def at(self, event: str) -> Floats:
        """The times, in seconds, at which events of this kind happened."""
        times: Floats = self.t_s[self.event == event]
        return times


_COLUMNS = ("cwnd_segments", "ssthresh_segments", "srtt_ns", "rto_ns", "flight_bytes", "acked_bytes")


def trace(tables: Tables, run: Run, name: FlowName) -> Trace:
    """The trace of one flow."""
    columns = ", ".join(f"{column}::DOUBLE AS {column}" for column in _COLUMNS)
    # Rows are in the order of events; rows of the same instant keep their order.
    found = tables.arrays("trace", f"t_ns / 1e9 AS t_s, event, {columns}", f"WHERE flow = {name.flow}", [run])
    values = {
        column: np.ma.filled(np.ma.asarray(found[column], dtype=np.float64), np.nan) for column in _COLUMNS
    }
    return Trace(name, np.asarray(found["t_s"]), np.asarray(found["event"], dtype=str), values)


@dataclass
class Journey:
    """One packet, from one host to the other, or to the place where it is lost.

    Attributes
    ----------
    sent_ns
        When its host sent it.
    toward
        The host that it travels to: ``receiver`` or ``sender``.
    number
        Its number among the packets that its host has sent for the flow, from 0.
    seq, ack
        As in its header, but continued beyond 2^32; ``None`` for datagrams.
    payload
        As in its header; ``None`` for datagrams.
    again
        Whether its payload or FIN had been sent before: a retransmission.
    arrived_ns
        When it reached the other host; ``None`` if it did not.
    lost_ns, lost_at, reason
        When and where it was lost and why (``early``, ``overflow``, ...); ``None`` and empty if it
        was not.
    marked_ns
        When queues marked it.
    """

    sent_ns: int
    toward: str
    number: int
    seq: int | None
    ack: int | None
    payload: int | None
    flags: str
    ecn: str
    again: bool = False
    arrived_ns: int | None = None
    lost_ns: int | None = None
    lost_at: str = ""
    reason: str = ""
    marked_ns: list[int] = field(default_factory=list)

    @property
    def is_data(self) -> bool:
        """Whether the packet carries data, or takes a sequence number as SYN and FIN do."""
        return bool(self.payload) or "S" in self.flags or "F" in self.flags

    @property
    def under_way(self) -> bool:
        """Whether the packet's fate is unknown."""
        return self.arrived_ns is None and self.lost_ns is None


class Positions:
    """Continues the sequence numbers of one flow's headers, which are modulo 2^32, beyond 2^32.

    A number is taken to be less than 2^31 bytes away from the stream's previous one.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def seq(self, toward: str, header: int) -> int:
        """The position of a segment in the stream that travels with it."""
        return self._in_stream(toward, header)

    def ack(self, toward: str, header: int) -> int:
        """The position that a segment acknowledges, in the stream of the other direction."""
        return self._in_stream("sender" if toward == "receiver" else "receiver", header)

    def _in_stream(self, toward: str, header: int) -> int:
        last = self._last.get(toward, header)
        position = last + (header - last + _HALF) % (2 * _HALF) - _HALF
        self._last[toward] = position
        return position


_HALF = 2**31


def journeys(tables: Tables, run: Run, name: FlowName) -> list[Journey]:
    """The packets of one flow, each followed from its event `send`, in the order in which they were sent."""
    rows = tables.rows(
        "packets",
        "t_ns, event, place, reason, toward, number, seq, ack, payload_bytes, flags, ecn",
        f"WHERE flow = {name.flow}",
        [run],
    )
    return follow(rows)


def follow(rows: Iterable[Sequence[Any]]) -> list[Journey]:
    """Follow each packet of one flow, by its direction and number, from its event `send`.

    Packets that were sent before the recording began are left out.

    Parameters
    ----------
    rows
        ``t_ns, event, place, reason, toward, number, seq, ack, payload_bytes, flags, ecn`` of ``packets``,
        in their order.
    """
    sent: dict[tuple[str, int], Journey] = {}
    positions, highest = Positions(), dict[str, int]()
    for t_ns, event, at, reason, toward, number, seq, ack, payload, flags, ecn in rows:
        if event == "send":
            of_tcp = seq is not None
            packet = Journey(
                t_ns,
                toward,
                number,
                positions.seq(toward, seq) if of_tcp else None,
                positions.ack(toward, ack) if of_tcp else None,
                payload,
                flags,
                ecn,
            )
            packet.again = _is_again(packet, highest)
            sent[toward, number] = packet
        elif (found := sent.get((toward, number))) is not None:
            _happens(found, event, at, t_ns, reason)
    return list(sent.values())


def _happens(packet: Journey, event: str, at: str, t_ns: int, reason: str) -> None:
    if event == "mark":
        packet.marked_ns.append(t_ns)
    elif event == "arrive":
        packet.arrived_ns = t_ns
    elif event in ("drop", "lose"):
        packet.lost_ns, packet.lost_at, packet.reason = t_ns, at, reason


def _is_again(packet: Journey, highest: dict[str, int]) -> bool:
    """Whether everything that a packet carries has been sent before; also records what the packet carries."""
    if packet.seq is None or not packet.is_data:
        return False
    end = packet.seq + (packet.payload or 0) + ("S" in packet.flags) + ("F" in packet.flags)
    before = highest.get(packet.toward, -1)
    highest[packet.toward] = max(before, end)
    return end <= before
