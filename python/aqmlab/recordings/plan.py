"""Plans, the resolved form of scenarios. All plans, including those in recordings, are read here.

Quantities are numbers in SI units, with the unit in the name. ``aqmlab schema plan`` prints the
schema.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

BULK = "bulk"
TRACE = "trace"
REQUESTS = "requests"
PACKMIME = "packmime"
PAGES = "pages"
BROWSERS = "browsers"
USERS = "users"
MEDIA, GAME, PING = "media", "game", "ping"
PROGRAM = "program"
ANSWERED_OVER_TCP = frozenset({REQUESTS, PACKMIME, PAGES, BROWSERS, USERS, TRACE, PROGRAM})
ANSWERED = ANSWERED_OVER_TCP | {GAME, PING}
"""Kinds of traffic whose servers also send data."""
OVER_TCP = ANSWERED_OVER_TCP | {BULK, "on_off_tcp"}
"""The kinds of traffic that react to congestion."""

Drawn: TypeAlias = float | Mapping[str, Any]
"""A number, or a distribution as its form and its numbers: ``{"uniform": [60000000, 100000000]}``."""


@dataclass(frozen=True)
class Link:
    """A directed link with its queue.

    Attributes
    ----------
    name, source, target
        Its name, and the routers at which it begins and ends.
    rate_bps, delay_ns, overhead_bytes
        Capacity, propagation delay, and overhead per packet. If the capacity changes, its mean over the run.
    mean_packet_bytes
        The mean packet size of the traffic that crosses it; 0 in plans that do not state it.
    queue
        The name of the discipline.
    changes
        The course of a rate that changes during the run; ``None`` for a constant rate.
    settings
        The discipline's effective parameters, each under its name with the unit:
        ``min_th_packets``.
    """

    name: str
    source: str
    target: str
    rate_bps: int
    delay_ns: int
    queue: str
    settings: Mapping[str, Any]
    overhead_bytes: int = 0
    mean_packet_bytes: int = 0
    changes: Mapping[str, Any] | None = None

    @property
    def rate(self) -> str:
        """Capacity in the notation of scenarios: ``10Mbit``."""
        return quantity_text(self.rate_bps, "bps")

    @property
    def delay(self) -> str:
        """Propagation delay in the notation of scenarios: ``20ms``."""
        return quantity_text(self.delay_ns, "ns")

    @property
    def limit(self) -> str | None:
        """The limit of the queue in the notation of scenarios; ``None`` without one."""
        found = ((unit, self.settings.get(f"limit_{unit}")) for unit in ("packets", "bytes"))
        return next((quantity_text(value, unit) for unit, value in found if value is not None), None)

    @property
    def units_a_packet(self) -> float:
        """Number of units of the average per packet: 1, or the mean packet size if the law measures bytes."""
        return float(self.settings["mean_packet_bytes"]) if self.settings.get("measure") == "bytes" else 1.0

    def packets(self, name: str) -> float | None:
        """A parameter that is a size, in packets of mean size; ``None`` if no parameter has this name."""
        if (packets := self.settings.get(f"{name}_packets")) is not None:
            return float(packets)
        size = self.settings.get(f"{name}_bytes")
        return None if size is None else float(size) / float(self.settings["mean_packet_bytes"])


@dataclass(frozen=True)
class Access:
    """The links that each flow of a class has to itself."""

    rate_bps: int
    rtt_ns: Drawn


@dataclass(frozen=True)
class TrafficClass:
    """Flows with the same description.

    Attributes
    ----------
    name, count
        The class's name, and the number of its flows.
    kind
        Kind of traffic: ``"bulk"``.
    path, return_path
        Names of the links from the sender to the receiver, and back.
    workload
        Further values that describe the traffic: ``bytes``, ``rate_bps``, ``on_ns``.
    tcp
        The endpoints' effective parameters; ``None`` for datagrams.
    access
        Each flow's own links, if it has any.
    start_ns
        When flows start; ``None`` where a file gives the times.
    """

    name: str
    count: int
    kind: str
    path: tuple[str, ...]
    return_path: tuple[str, ...]
    workload: Mapping[str, Any]
    tcp: Mapping[str, Any] | None = None
    access: Access | None = None
    start_ns: Drawn | None = None

    @property
    def over_tcp(self) -> bool:
        """Whether the class's flows react to congestion."""
        return self.kind in OVER_TCP

    @property
    def left_out(self) -> Mapping[str, int]:
        """Number of connections of a trace that cannot be expressed and were left out, by kind."""
        found: Mapping[str, int] = self.workload.get("left_out", {})
        return found

    @property
    def greedy(self) -> bool:
        """Whether the class's flows always have data to send, so that only congestion control limits them."""
        return self.kind == BULK and self.workload["bytes"] is None

    @property
    def answered(self) -> bool:
        """Whether the class's servers also send data."""
        return self.kind in ANSWERED

    @property
    def ways(self) -> tuple[tuple[str, ...], ...]:
        """The queues that its data cross, in order, in one direction or, if servers respond, in both."""
        return (self.path, self.return_path) if self.answered else (self.path,)

    @property
    def route(self) -> tuple[str, ...]:
        """The queues that its data cross: those of all its paths in sequence."""
        return tuple(queue for way in self.ways for queue in way)

    @property
    def rtt(self) -> str | None:
        """The base round-trip time in the notation of scenarios; ``None`` without access links."""
        return drawn_text(self.access.rtt_ns, "ns") if self.access else None

    @property
    def members(self) -> int:
        """Number of its flows, or of its clients if it has programs, whose flows are not known in advance."""
        return int(self.workload["clients"]) if self.kind == PROGRAM else self.count

    @property
    def what(self) -> str:
        """The workload of a flow, in a few words."""
        workload = self.workload
        if self.kind == PROGRAM:
            return self._programs
        if self.tcp is not None:
            return f"TCP{' with ECN' if self.tcp.get('ecn') else ''}{self._amount}"
        if self.kind == "schedule":
            return f"UDP, packets of {workload['file']}"
        if self.kind in (MEDIA, GAME, PING):
            return self._dialogue
        capable = f" with {workload['ecn']}" if "ecn" in workload else ""
        rate = quantity_text(workload["rate_bps"], "bps")
        if self.kind == "on_off_udp":
            on, off = (drawn_text(workload[key], "ns") for key in ("on_ns", "off_ns"))
            return f"UDP{capable}, {rate} during on periods; on: {on}, off: {off}"
        spacing = "constant" if self.kind == "cbr" else "Poisson"
        random = " with random gaps" if workload.get("random_gaps") else ""
        return f"UDP{capable}, {spacing}{random}, {rate}"

    @property
    def _programs(self) -> str:
        """The commands, or the interfaces in their place."""
        if "interfaces" in self.workload:
            return f"what lies behind the interfaces {' and '.join(self.workload['interfaces'])}"
        commands = [self.workload[role] for role in ("client", "server") if role in self.workload]
        return f"programs: {'; '.join(map(shlex.join, commands))}"

    @property
    def _dialogue(self) -> str:
        """The workload of a flow of datagrams between two ends, in a few words."""
        workload = self.workload
        if self.kind == PING:
            size = quantity_text(workload["size_bytes"], "bytes")
            return f"UDP, requests of {size}, periods: {drawn_text(workload['period_ns'], 'ns')}"
        if self.kind == GAME:
            up, down = (f"{workload[end]['per_s']:g}" for end in ("up", "down"))
            return f"UDP, {up} updates per second there and {down} back"
        control = workload["control"]["kind"]
        capable = f" with {workload['ecn']}" if "ecn" in workload else ""
        rates = [quantity_text(workload[f"{end}_rate_bps"], "bps") for end in ("min", "max")]
        between = rates[0] if control == "constant" else f"{rates[0]} to {rates[1]}"
        frames = workload.get("frames")
        what = "endless" if frames is None else f"{frames['fps']:g} frames per second"
        return f"UDP{capable}, {what}, {control}, {between}"

    @property
    def _amount(self) -> str:
        """The amount that a TCP connection sends, unless it sends forever."""
        workload = self.workload
        if self.kind in (TRACE, USERS):
            left = sum(self.left_out.values())
            what = "connections" if self.kind == TRACE else "users' pages"
            return f", {what} of {workload['file']}{f' without {left}' if left else ''}"
        if self.kind == PACKMIME:
            return f", PackMime-HTTP, {workload['rate_per_s']:g} connections per second"
        if self.kind in (PAGES, BROWSERS):
            how = f"for {workload['device']}" if self.kind == PAGES else "by browsers of 2000"
            return f", web pages {how}, users' think times: {drawn_text(workload['think_ns'], 'ns')}"
        if self.kind == REQUESTS:
            sizes = (drawn_text(workload[key], "bytes") for key in ("request_bytes", "response_bytes"))
            opened = (
                f"users' think times: {drawn_text(workload['think_ns'], 'ns')}"
                if "think_ns" in workload
                else f"{workload['rate_per_s']:g} connections per second"
            )
            return f", {opened}, requests and responses: {', '.join(sizes)}"
        if self.kind == "on_off_tcp":
            burst = workload.get("burst_bytes")
            on = (
                f"on: {drawn_text(workload['on_ns'], 'ns')}"
                if burst is None
                else f"bursts of {drawn_text(burst, 'bytes')}"
            )
            return f", {on}, off: {drawn_text(workload['off_ns'], 'ns')}"
        amount = workload["bytes"]
        return "" if amount is None else f", {quantity_text(amount, 'bytes')} each"


@dataclass(frozen=True)
class DelayRule:
    """A delay stage at the edge of the network: its class, or all classes, and whether it limits the rate."""

    class_name: str | None
    limits_rate: bool


@dataclass(frozen=True)
class PacketRecord:
    """Which packets are recorded one by one: at which links, of which flows, for which events, and when."""

    links: tuple[str, ...]
    of_all_flows: bool
    events: frozenset[str]
    from_ns: int
    until_ns: int | None


@dataclass(frozen=True)
class Plan:
    """One arm of a scenario with everything resolved.

    Attributes
    ----------
    nodes, links, classes, delays
        The network and its traffic.
    warmup_ns, end_ns
        When measurement begins, and the latest end of the run.
    ends_early
        Whether another condition may end the run earlier.
    queues_every_ns
        The sampling interval of queues; 0 if they are not sampled.
    packets
        The packets that are recorded one by one, if any are.
    origins
        Origin of each value, by its path in a scenario.
    """

    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    classes: tuple[TrafficClass, ...]
    delays: tuple[DelayRule, ...] = ()
    warmup_ns: int = 0
    end_ns: int = 0
    ends_early: bool = False
    queues_every_ns: int = 0
    packets: PacketRecord | None = None
    origins: Mapping[str, str] | None = None

    @staticmethod
    def of(content: Mapping[str, Any]) -> Plan:
        """Read a plan from ``_core`` or from a manifest.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the content is not a plan.
        """
        record = content["record"]
        return Plan(
            nodes=tuple(map(str, content["nodes"])),
            links=tuple(map(_link, content["links"])),
            classes=tuple(map(_traffic_class, content["classes"])),
            delays=tuple(
                DelayRule(rule["class"], rule["rate_bps"] is not None) for rule in content.get("delays", ())
            ),
            warmup_ns=int(content["warmup_ns"]),
            end_ns=int(content["stop"]["at_ns"]),
            ends_early=len(content["stop"]) > 1,
            queues_every_ns=int(record["queues_ns"]),
            packets=_packets(record["packets"]) if "packets" in record else None,
            origins=content.get("origins"),
        )

    def link(self, name: str) -> Link | None:
        """A link by name."""
        return next((link for link in self.links if link.name == name), None)

    def ends(self, entry: TrafficClass) -> tuple[str, str]:
        """Return the routers of the senders or clients of a class, and of its receivers or servers."""
        links = {link.name: link for link in self.links}
        return links[entry.path[0]].source, links[entry.path[-1]].target

    @cached_property
    def responsive(self) -> frozenset[str]:
        """Names of the classes whose flows react to congestion: those that send over TCP."""
        return frozenset(entry.name for entry in self.classes if entry.over_tcp)

    @property
    def greedy(self) -> list[TrafficClass]:
        """The classes whose flows always have something to send."""
        return [entry for entry in self.classes if entry.greedy]

    def elsewhere(self, queue: str) -> frozenset[str]:
        """Names of the classes whose data do not cross the given queue."""

        def crosses(route: tuple[str, ...]) -> bool:
            return any(queue == link or queue.startswith(f"{link}/") for link in route)

        return frozenset(entry.name for entry in self.classes if not crosses(entry.route))

    def units_a_packet(self, queue: str) -> float:
        """Return the number of units of a queue's average per packet; 1 if there is no such queue."""
        link = self.link(queue)
        return 1.0 if link is None else link.units_a_packet


def _link(entry: Mapping[str, Any]) -> Link:
    return Link(
        name=str(entry["name"]),
        source=str(entry["from"]),
        target=str(entry["to"]),
        rate_bps=int(entry["rate_bps"]),
        delay_ns=int(entry["delay_ns"]),
        queue=str(entry["queue"]["kind"]),
        settings=entry["queue"]["settings"],
        overhead_bytes=int(entry["overhead_bytes"]),
        mean_packet_bytes=int(entry["queue"].get("context", {}).get("mean_packet_bytes", 0)),
        changes=entry.get("changes"),
    )


def _traffic_class(entry: Mapping[str, Any]) -> TrafficClass:
    access, workload = entry["access"], entry["workload"]
    return TrafficClass(
        name=str(entry["name"]),
        count=int(entry["count"]),
        kind=str(workload["kind"]),
        path=tuple(map(str, entry["path"])),
        return_path=tuple(map(str, entry["return_path"])),
        workload={key: value for key, value in workload.items() if key not in ("kind", "tcp")},
        tcp=workload.get("tcp"),
        access=Access(int(access["rate_bps"]), access["rtt_ns"]) if access else None,
        start_ns=entry["start_ns"],
    )


def _packets(record: Mapping[str, Any]) -> PacketRecord:
    return PacketRecord(
        links=tuple(map(str, record["links"])),
        of_all_flows=record["flows"] is None,
        events=frozenset(map(str, record["events"])),
        from_ns=int(record["from_ns"]),
        until_ns=None if record["until_ns"] is None else int(record["until_ns"]),
    )


def quantity_text(value: int, unit: str) -> str:
    """A number of ``ns``, ``bps``, ``bytes`` or ``packets`` as in scenarios: ``40ms``, ``10Mbit``."""
    from aqmlab import _core

    return _core.quantity_text(value, unit)


def drawn_text(drawn: Drawn, unit: str) -> str:
    """A number or distribution in a scenario's notation: ``{ uniform = ["60ms", "100ms"] }``."""
    if not isinstance(drawn, Mapping):
        return quantity_text(int(drawn), unit)
    return f"{{ {', '.join(f'{key} = {_toml(value, key, unit)}' for key, value in drawn.items())} }}"


def _toml(value: Any, key: str, unit: str) -> str:  # noqa: ANN401 (a number, or lists of numbers)
    if isinstance(value, list):
        if key == "empirical":
            pairs = (f"[{_toml(number, '', unit)}, {_toml(share, 'shape', unit)}]" for number, share in value)
            return f"[{', '.join(pairs)}]"
        return f"[{', '.join(_toml(each, key, unit) for each in value)}]"
    return repr(float(value)).removesuffix(".0") if key == "shape" else f'"{quantity_text(int(value), unit)}"'
