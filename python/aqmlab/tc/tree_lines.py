"""From a scenario's queue with queues inside to the lines of tc that add them to a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from aqmlab.recordings.plan import quantity_text
from aqmlab.tc import gred
from aqmlab.tc.effective import NoCounterpartError
from aqmlab.tc.tree import ETHERNET

if TYPE_CHECKING:
    from aqmlab.recordings.plan import Link

TREES = ("tbf", "htb", "gred")
"""The disciplines that are written as several lines."""


class Written(Protocol):
    """Returns the words for a queue without others inside, and remarks on what they leave out."""

    def __call__(self, link: Link) -> tuple[str | None, list[str]]:
        """Return the words, or ``None``, and the remarks."""


def tree_lines(link: Link, written: Written) -> tuple[list[tuple[str, str]], list[str]]:
    """Return what each line adds (``qdisc``, ``class`` or ``filter``) with its words, and remarks.

    Raises
    ------
    NoCounterpartError
        If Linux has no such discipline inside.
    """
    writer = _Writer(written)
    writer.add(link, "root")
    return writer.lines, list(dict.fromkeys(writer.remarks))


@dataclass
class _Writer:
    """The lines so far."""

    written: Written
    lines: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    majors: Iterator[int] = field(default_factory=lambda: count(1))

    def add(self, link: Link, place: str) -> None:
        """Add a queue and those inside it."""
        if link.queue not in TREES:
            spec, remarks = self.written(link)
            if spec is None:
                raise NoCounterpartError(remarks[0])
            self.remarks.extend(remarks)
            self.lines.append(("qdisc", f"{place} {spec}"))
            return
        settings = link.settings
        if link.queue == "gred":
            self._gred(link, place)
            return
        if settings["header"] != ETHERNET:
            self.remarks.append(
                f"`header`: {settings['header']} bytes in aqmlab, {ETHERNET} on Ethernet in Linux"
            )
        if settings["asks_empty"]:
            self.remarks.append("`asks_empty`: Linux's shapers do not ask an empty queue for packets")
        if settings["framing"] == "ptm":
            raise NoCounterpartError("`framing`: Linux's shapers know no `ptm`")
        framing = "".join(f" {name} {settings[name]}" for name in ("overhead", "mpu") if settings[name])
        framing += " linklayer atm" * (settings["framing"] == "atm")
        major = f"{next(self.majors):x}:"
        if link.queue == "tbf":
            self._tbf(link, f"{place} handle {major}", major, framing)
        else:
            self._htb(link, f"{place} handle {major}", major, framing)

    def _inside(self, link: Link, queue: Mapping[str, Any], rate_bps: int, place: str) -> None:
        rate = min(rate_bps, link.rate_bps)
        self.add(replace(link, queue=queue["kind"], settings=queue["settings"], rate_bps=rate), place)

    def _tbf(self, link: Link, place: str, major: str, framing: str) -> None:
        settings = link.settings
        queue = settings["queue"]
        own = queue["settings"].get("limit_bytes") if queue["kind"] == "droptail" else None
        words = f"tbf rate {_rate(settings, 'rate', self.remarks)} burst {settings['burst_bytes']}"
        if (mtu := settings.get("mtu_bytes")) is not None:
            words += f" peakrate {_rate(settings, 'peakrate', self.remarks)} mtu {mtu}"
        words += f" limit {own or settings['burst_bytes']}{framing}"
        self.lines.append(("qdisc", f"{place} {words}"))
        if own is None:
            self._inside(link, queue, settings["rate_bps"], f"parent {major}")

    def _gred(self, link: Link, place: str) -> None:
        table, queues, remarks = gred.write(link)
        major = f"{next(self.majors):x}:"
        self.lines.append(("qdisc", f"{place} handle {major} {table}"))
        self.lines += [("qdisc change", f"{place} handle {major} {words}") for words in queues]
        self.remarks += remarks
        # The kernel keeps the minor number of the class that a filter at the egress selects.
        selected: list[str] = []
        for number, one in enumerate(link.settings["class"]):
            selected += _filters(one, "egress", f":{number:x}", self.remarks)
        if selected:
            self.lines += [("qdisc", "clsact"), *(("filter", words) for words in selected)]

    def _htb(self, link: Link, place: str, major: str, framing: str) -> None:
        classes = link.settings["class"]
        ids = {one["name"]: f"{major}{number:x}" for number, one in enumerate(classes, start=1)}
        leaves = [one for one in classes if one.get("queue") is not None]
        selectors = ("traffic", "dscp", "port")
        rest = next((one for one in leaves if not any(one.get(by) for by in selectors)), leaves[-1])
        default = ids[rest["name"]].partition(":")[2]
        self.lines.append(("qdisc", f"{place} htb default {default}"))
        for one in classes:
            words = f"parent {ids.get(one.get('parent'), major)} classid {ids[one['name']]} htb"
            words += "".join(f" {name} {_rate(one, name, self.remarks)}" for name in ("rate", "ceil"))
            words += f" burst {one['burst_bytes']} cburst {one['cburst_bytes']}"
            if one in leaves:
                words += f" prio {one['prio']} quantum {one['quantum_bytes']}"
            self.lines.append(("class", words + framing))
        for one in leaves:
            self._inside(link, one["queue"], one["rate_bps"], f"parent {ids[one['name']]}")
        for one in leaves:
            filters = _filters(one, f"parent {major}", ids[one["name"]], self.remarks)
            self.lines.extend(("filter", words) for words in filters)


def _rate(settings: Mapping[str, Any], name: str, remarks: list[str]) -> str:
    bps = settings[f"{name}_bps"]
    if bps % 8:
        kept = quantity_text(bps // 8 * 8, "bps")
        remarks.append(
            f"`{name}`: {quantity_text(bps, 'bps')} in aqmlab, {kept} in Linux, in whole bytes per second"
        )
    return f"{bps}bit"


def _filters(leaf: Mapping[str, Any], place: str, classid: str, remarks: list[str]) -> Iterator[str]:
    """Yield the filters that choose a leaf or a virtual queue."""
    match = f"{place} protocol ip u32 match ip"
    for code_point in leaf.get("dscp") or ():
        yield f"{match} tos 0x{code_point << 2:02x} 0xfc flowid {classid}"
    for port in leaf.get("port") or ():
        # As here, the destination decides, or else the source.
        if not isinstance(port, int):
            remarks.append(f"class {classid} takes the ports of `{leaf['name']}`; write a filter for them")
            continue
        yield f"{match} dport {port} 0xffff flowid {classid}"
        yield f"{match} sport {port} 0xffff flowid {classid}"
    if names := leaf.get("traffic"):
        listed = ", ".join(f"`{name}`" for name in names)
        remarks.append(f"class {classid} takes the packets of {listed}; write a filter for them")
