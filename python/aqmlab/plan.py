"""Plans as recordings hold them: what readers need to know of the network and its traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BULK = "bulk"
TRACE = "trace"
OVER_TCP = frozenset({BULK, "on_off_tcp", TRACE})
"""The kinds of traffic that react to congestion."""


@dataclass(frozen=True)
class Link:
    """A directed link with its queue; quantities are texts with units."""

    name: str
    source: str
    target: str
    rate: str
    delay: str
    queue: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class TrafficClass:
    """Flows that are alike."""

    name: str
    count: int
    kind: str
    what: str
    path: tuple[str, ...]
    return_path: tuple[str, ...]
    rtt: str | None


@dataclass(frozen=True)
class Network:
    """Nodes, links and traffic of one arm."""

    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    classes: tuple[TrafficClass, ...]

    def link(self, name: str) -> Link | None:
        """A link by name."""
        return next((link for link in self.links if link.name == name), None)


_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text: str) -> float:
    """Seconds of a time as plans have it: ``1.5s``, ``40ms``."""
    number = text.rstrip("numsh")
    return float(number) * _SECONDS[text[len(number) :]]


_BYTES = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}


def size_bytes(text: str) -> float:
    """Bytes of a size as plans have it: ``1500B``, ``1.5kB``."""
    unit = next(unit for unit in _BYTES if text.endswith(unit))
    return float(text.removesuffix(unit)) * _BYTES[unit]


_BITS_PER_SECOND = {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12}


def bits_per_second(text: str) -> float:
    """Bit/s of a rate as plans have it: ``10Mbit``, ``1544kbit``."""
    number = text.rstrip("bitkMGT")
    return float(number) * _BITS_PER_SECOND[text[len(number) :]]


def responsive_classes(plan: Mapping[str, Any]) -> frozenset[str]:
    """Names of the classes whose flows react to congestion: those that send over TCP."""
    return frozenset(str(c["name"]) for c in plan.get("classes", ()) if c["workload"]["kind"] in OVER_TCP)


def greedy_classes(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The classes whose flows always have something to send, and take what congestion control grants them."""
    return [
        entry
        for entry in plan.get("classes", ())
        if entry["workload"]["kind"] == BULK and entry["workload"]["bytes"] == "endless"
    ]


def way(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The queues that the data of a class cross, in their order: there, and back too where servers answer."""
    there = tuple(map(str, entry.get("path", ())))
    answered = entry.get("workload", {}).get("kind") == TRACE
    return (*there, *map(str, entry.get("return_path", ()))) if answered else there


def elsewhere(plan: Mapping[str, Any], queue: str) -> frozenset[str]:
    """Names of the classes whose data do not cross a queue."""
    return frozenset(
        str(entry["name"]) for entry in plan.get("classes", ()) if "path" in entry and queue not in way(entry)
    )


def network(plan: Mapping[str, Any]) -> Network:
    """The network of a plan."""
    links = tuple(
        Link(
            name=str(link["name"]),
            source=str(link["from"]),
            target=str(link["to"]),
            rate=str(link["rate"]),
            delay=str(link["delay"]),
            queue=str(link["queue"]["kind"]),
            settings=link["queue"]["settings"],
        )
        for link in plan["links"]
    )
    return Network(tuple(map(str, plan["nodes"])), links, tuple(map(_traffic_class, plan["classes"])))


def _traffic_class(entry: Mapping[str, Any]) -> TrafficClass:
    access = entry.get("access")
    return TrafficClass(
        name=str(entry["name"]),
        count=int(entry["count"]),
        kind=str(entry["workload"]["kind"]),
        what=_what(entry["workload"]),
        path=tuple(map(str, entry["path"])),
        return_path=tuple(map(str, entry["return_path"])),
        rtt=str(access["rtt"]) if access else None,
    )


def _what(workload: Mapping[str, Any]) -> str:
    kind = workload["kind"]
    if kind in OVER_TCP:
        return f"TCP{' with ECN' if workload['tcp'].get('ecn') else ''}{_amount(workload)}"
    if kind == "schedule":
        return f"UDP, packets of {workload['file']}"
    capable = f" with {workload['ecn']}" if "ecn" in workload else ""
    if kind == "on_off_udp":
        return f"UDP{capable}, {workload['rate']} while on: {workload['on']}, off: {workload['off']}"
    spacing = "constant" if kind == "cbr" else "Poisson"
    random = " with random gaps" if workload.get("random_gaps") else ""
    return f"UDP{capable}, {spacing}{random}, {workload['rate']}"


def _amount(workload: Mapping[str, Any]) -> str:
    """What a TCP connection sends, as far as it does not send for ever."""
    if workload["kind"] == TRACE:
        return f", connections of {workload['file']}"
    if workload["kind"] == "on_off_tcp":
        on = f"bursts of {workload['burst']}" if "burst" in workload else f"on: {workload['on']}"
        return f", {on}, off: {workload['off']}"
    amount = workload["bytes"]
    return "" if amount == "endless" else f", {amount} each"


def units_a_packet(plan: Mapping[str, Any], queue: str) -> float:
    """What a packet is in the average of a queue's law: 1, or its bytes if the law measures them."""
    link = network(plan).link(queue)
    if link is None or link.settings.get("measure") != "bytes":
        return 1.0
    return size_bytes(str(link.settings["mean_packet"]))
