"""CAKE in tc's words, both ways, with the words for links and round-trip times."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import numbers
from aqmlab.tc.effective import NoCounterpartError, Queue, effective
from aqmlab.tc.grammar import (
    DEFAULT_RATE_BPS,
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    checked,
    rounded,
    size_shown,
    time_words,
    value,
)
from aqmlab.tc.linux import rate_text, size_text, time_text
from aqmlab.tc.numbers import LARGEST, Kept

ETHERNET = 14
"""The bytes of header that ``raw`` leaves in the length of a packet, on Ethernet."""
DEFAULT_RTT_US = 100_000
RAW = (
    "without `overhead` or a word for a link, Linux counts the device's own header, which is taken to be the"
    f" {ETHERNET} bytes of Ethernet"
)


@dataclass(frozen=True)
class _Counted:
    """The length of a packet as CAKE counts it; ``stated`` unless it is Linux's own, ``raw``."""

    overhead: int = 0
    mpu: int = 0
    cells: str = "noatm"
    stated: bool = False
    raw: bool = False

    @property
    def is_raw(self) -> bool:
        return self.raw or not self.stated

    @property
    def shown(self) -> str:
        words = ["raw"] * self.is_raw
        if not self.is_raw or self.cells != "noatm":
            words.append(self.cells)
        words.append(f"overhead {self.overhead}")
        return " ".join([*words, *([f"mpu {self.mpu}"] if self.mpu else [])])


def _link(overhead: int, cells: str | None = None, mpu: int | None = None) -> Callable[[_Counted], _Counted]:
    """Return what a word for a link does: it adds to the overhead, and may set the cells and the mpu."""

    def more(counted: _Counted) -> _Counted:
        return replace(
            counted,
            overhead=counted.overhead + overhead,
            cells=counted.cells if cells is None else cells,
            mpu=counted.mpu if mpu is None else mpu,
            stated=True,
        )

    return more


def _cells(cells: str) -> Callable[[_Counted], _Counted]:
    return lambda counted: replace(counted, cells=cells)


_LINKS: dict[str, Callable[[_Counted], _Counted]] = {
    "raw": lambda counted: replace(counted, overhead=0, cells="noatm", raw=True),
    "conservative": lambda counted: replace(counted, overhead=48, cells="atm", stated=True),
    "via-ethernet": lambda counted: counted,
    **{cells: _cells(cells) for cells in ("noatm", "atm", "ptm")},
    "pppoa-vcmux": _link(10, "atm"),
    "pppoa-llc": _link(14, "atm"),
    "pppoe-vcmux": _link(32, "atm"),
    "pppoe-llcsnap": _link(40, "atm"),
    "bridged-vcmux": _link(24, "atm"),
    "bridged-llcsnap": _link(32, "atm"),
    "ipoa-vcmux": _link(8, "atm"),
    "ipoa-llcsnap": _link(16, "atm"),
    "pppoe-ptm": _link(30, "ptm"),
    "bridged-ptm": _link(22, "ptm"),
    "docsis": _link(18, "noatm", 64),
    "ethernet": _link(38, None, 84),
    "ether-vlan": _link(4),
}
"""What the words for links do, which depends on their order (tc-cake(8), and tc itself where it differs)."""
_ROUND_TRIPS = {
    "datacentre": 100,
    "lan": 1000,
    "metro": 10_000,
    "regional": 30_000,
    "internet": 100_000,
    "oceanic": 300_000,
    "satellite": 1_000_000,
    "interplanetary": 1_000_000_000,
}
"""The words for round-trip times, in microseconds; tc has 1000 s where tc-cake(8) has 3600 s."""
_TINS = ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")
_ISOLATIONS = (
    *("flowblind", "srchost", "dsthost", "hosts", "flows"),
    *("dual-srchost", "dual-dsthost", "triple-isolate"),
)


_FILTERS = {"ack-filter": "on", "ack-filter-aggressive": "aggressive", "no-ack-filter": ""}
"""The values of ``ack_filter``; the last is the default."""


def _counted(given: Given) -> _Counted:
    counted = _Counted()
    for word, one in given.each:
        if word == "link":
            counted = one(counted)
        elif word == "overhead":
            counted = replace(counted, overhead=int(one.value), stated=True)
        elif word == "mpu":
            counted = replace(counted, mpu=int(one.value))
    return counted


def _rate(given: Given) -> tuple[Kept | None, bool]:
    """Return the rate and whether it is adapted; a rate ends the adaptation."""
    rate, adapted = None, False
    for word, one in given.each:
        if word == "bandwidth":
            rate, adapted = one, False
        elif word == "autorate-ingress":
            adapted = True
    return (rate if rate is not None and rate.value else None), adapted


def _read(given: Given, *, shown: bool) -> Reading:
    counted, (rate, adapted) = _counted(given), _rate(given)
    overhead = counted.overhead + ETHERNET * counted.is_raw
    queue: dict[str, Any] = {"kind": "cake", "preset": "linux"}
    if rate is not None:
        queue["bandwidth"] = quantity_text(min(8 * int(rate.value), 10**18), "bps")
    queue |= {name: given[name] for name in ("tins", "isolation") if name in given}
    queue |= _round_trip(given)
    if overhead != ETHERNET:
        queue["overhead"] = overhead
    if counted.mpu:
        queue["mpu"] = counted.mpu
    if counted.cells != "noatm":
        queue["framing"] = counted.cells
    queue |= {name: True for name in ("ingress", "wash") if given.get(name)}
    if value(given, "memlimit"):
        queue["memory_limit"] = quantity_text(value(given, "memlimit"), "bytes")
    if filtered := _FILTERS[given.get("ack-filter", "no-ack-filter")]:
        queue["ack_filter"] = filtered
    without = []
    if adapted:
        without.append("`autorate-ingress` estimates a rate, which aqmlab does not; write `bandwidth`")
    if overhead < 0:
        without.append(f"aqmlab has no negative overhead, such as {overhead}; write at least `overhead 0`")

    def read() -> Queue:
        if without:
            raise NoCounterpartError(f"cake: {'; '.join(without)}")
        return checked(queue)()

    remarks = rounded(given, ("memlimit",)) if shown else _changes(given)
    return Reading(read, "" if shown else _shown(given), [*remarks, *_without_effect(given, counted)])


def _round_trip(given: Given) -> dict[str, Any]:
    """Return the queue's times. tc sends no interval of 0, but the target of 1 us that follows from it."""
    if "rtt" not in given:
        return {}
    us = value(given, "rtt")
    return {"interval": quantity_text(1000 * us, "ns")} if us else {"target": "1us"}


def _changes(given: Given) -> list[str]:
    units = {"bandwidth": "Bps", "rtt": "us", "memlimit": "bytes"}
    named = {word for word in units if word in given and given[word].text in ("unlimited", *_ROUND_TRIPS)}
    remarks = changes(given, {word: unit for word, unit in units.items() if word not in named})
    if "rtt" in given and not value(given, "rtt"):
        remarks.append("with `rtt 0`, tc keeps the interval of 100 ms, but sets the target to 1 us")
    return remarks


def _without_effect(given: Given, counted: _Counted) -> list[str]:
    """Return remarks on words that mean nothing in aqmlab, and on the header that ``raw`` counts."""
    remarks = []
    if given.get("nat"):
        remarks.append("`nat` has no effect: addresses are never translated in aqmlab")
    if given.get("split-gso") is False:
        remarks.append("`no-split-gso` has no effect: packets are never joined in aqmlab")
    if value(given, "fwmark"):
        remarks.append(
            "`fwmark` has no effect: packets have no marks in aqmlab, and code points choose the tin"
        )
    if counted.is_raw:
        remarks.append(RAW)
    return remarks


def _shown(given: Given) -> str:
    rate, adapted = _rate(given)
    words = [
        f"cake bandwidth {rate_text(int(rate.value)) if rate else 'unlimited'}",
        *["autorate-ingress"] * adapted,
        given.get("tins", "diffserv3"),
        given.get("isolation", "triple-isolate"),
        "nat" if given.get("nat") else "nonat",
        "wash" if given.get("wash") else "nowash",
        *["ingress"] * bool(given.get("ingress")),
        given.get("ack-filter", "no-ack-filter"),
        "split-gso" if given.get("split-gso", True) else "no-split-gso",
        f"rtt {time_text(value(given, 'rtt') or DEFAULT_RTT_US)}",
        _counted(given).shown,
    ]
    if memory := value(given, "memlimit"):
        words.append(f"memlimit {size_text(memory)}")
    if mask := value(given, "fwmark"):
        words.append(f"fwmark {mask:#x}")
    return " ".join(words)


def write(link: Link) -> Written:
    """Return the words for a CAKE."""
    settings = link.settings
    rate, interval_us = settings.get("bandwidth_bps"), max(1, round(settings["interval_ns"] / 1000))
    words = [
        f"cake bandwidth {rate}bit" if rate else "cake unlimited",
        settings["tins"],
        settings["isolation"],
        *["wash"] * settings["wash"],
        *["ingress"] * settings["ingress"],
        *[word for word, name in _FILTERS.items() if name == settings["ack_filter"]],
        f"rtt {time_words(interval_us)}",
        "noatm" if settings["framing"] == "none" else settings["framing"],
        f"overhead {settings['overhead']} mpu {settings['mpu']}",
    ]
    own = {"kind": "cake", "preset": "linux", "interval": f"{interval_us}us"}
    own |= {"bandwidth": f"{rate}bit"} if rate else {}
    if settings["memory_limit_bytes"] != effective(own, DEFAULT_RATE_BPS)["memory_limit_bytes"]:
        words.append(f"memlimit {settings['memory_limit_bytes']}")
    return " ".join(words), []


def _decimal(low: int, high: int = 256) -> Callable[[str], Kept]:
    """Return a reader of whole bytes, in decimal digits only."""

    def read(text: str) -> Kept:
        if re.fullmatch(r"[+-]?\d+", text, re.ASCII) is None or not low <= int(text) <= high:
            raise UsageError(f"`{text}` is not a whole number of bytes from {low} to {high}")
        return Kept(text, int(text), int(text))

    return read


def _rate_shown(text: str) -> Kept:
    return _UNLIMITED if text == "unlimited" else numbers.rate64(text)


_UNLIMITED = Kept("unlimited", 0, 0)
_VALUES = {
    "bandwidth": numbers.rate64,
    "rtt": numbers.time_us,
    "overhead": _decimal(-64),
    "mpu": _decimal(0),
    "memlimit": numbers.size,
    "fwmark": numbers.count,
}
_FLAGS: dict[str, tuple[str, Any]] = {
    "unlimited": ("bandwidth", _UNLIMITED),
    "autorate-ingress": ("autorate-ingress", True),
    **{word: ("rtt", Kept(word, us, us)) for word, us in _ROUND_TRIPS.items()},
    **{word: ("tins", word) for word in _TINS},
    "diffserv": ("tins", "diffserv4"),
    **{word: ("isolation", word) for word in _ISOLATIONS},
    **{word: ("link", more) for word, more in _LINKS.items()},
    **{word: ("ack-filter", word) for word in _FILTERS},
    **{word: (word, True) for word in ("nat", "wash", "ingress", "split-gso")},
    **{f"no{word}": (word, False) for word in ("nat", "wash")},
    "no-split-gso": ("split-gso", False),
    "egress": ("ingress", False),
}
# Words for links add to the overhead, whatever its range.
_VALUES_SHOWN = _VALUES | {
    "memlimit": size_shown,
    "bandwidth": _rate_shown,
    "overhead": _decimal(-LARGEST, LARGEST),
}
VOCABULARY = Vocabulary(
    given=Grammar(_VALUES, _FLAGS, {}, lambda given: _read(given, shown=False)),
    shown=Grammar(_VALUES_SHOWN, _FLAGS, {}, lambda given: _read(given, shown=True)),
)
