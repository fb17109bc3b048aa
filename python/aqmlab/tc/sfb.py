"""SFB in tc's words, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import numbers
from aqmlab.tc.grammar import (
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    checked,
    limit_in_packets,
    packets_shown,
    value,
)
from aqmlab.tc.linux import time_text
from aqmlab.tc.numbers import LARGEST, Kept

STEPS = 65_535
"""The kernel keeps probabilities in units of 1/65535."""
TXQUEUELEN = 1000
"""The limit without ``limit``, in packets, on most devices."""
_DEFAULTS = {"rehash": 600_000, "db": 60_000, "penalty_rate": 10, "penalty_burst": 20}
_SHARES = {"increment": 0.000_5, "decrement": 0.000_05}
_COUNTS = ("limit", "max", "target", "penalty_burst")


@dataclass(frozen=True)
class LinuxSfb:
    """SFB's parameters in the kernel: milliseconds, packets, units of 1/65535, and packets per second."""

    rehash: int
    db: int
    limit: int
    max: int
    target: int
    increment: int
    decrement: int
    penalty_rate: int
    penalty_burst: int

    @property
    def shown(self) -> str:
        """What ``tc qdisc show`` prints."""
        rehash, db = (time_text(1000 * ms & LARGEST) for ms in (self.rehash, self.db))
        up, down = (f"{n / STEPS:g}" for n in (self.increment, self.decrement))
        return (
            f"sfb rehash {rehash} db {db} limit {self.limit}p max {self.max}p target {self.target}p"
            f" increment {up} decrement {down} penalty_rate {self.penalty_rate}pps"
            f" penalty_burst {self.penalty_burst}p"
        )


def _kernel(given: Given) -> LinuxSfb:
    """Return the kernel's parameters; ``max`` and ``target`` follow from one another."""
    full = {word: value(given, word) if word in given else default for word, default in _DEFAULTS.items()}
    most, target = value(given, "max"), value(given, "target")
    if not most:
        most = (5 * target + 1 & LARGEST) // 4 if target else 25
    target = target or (4 * most + 3) // 5
    steps = {
        word: int((given[word].value if word in given else default) * STEPS + 0.5)
        for word, default in _SHARES.items()
    }
    return LinuxSfb(limit=value(given, "limit") or TXQUEUELEN, max=most, target=target, **full, **steps)


def _read(given: Given, *, shown: bool) -> Reading:
    kernel = _kernel(given)
    # The preset has the kernel's own increments, which tc always replaces.
    queue: dict[str, Any] = {
        "kind": "sfb",
        "preset": "linux",
        "increment": kernel.increment / STEPS,
        "decrement": kernel.decrement / STEPS,
    }
    if value(given, "limit"):
        queue["limit"] = quantity_text(kernel.limit, "packets")
    if {"max", "target"} & set(given):
        queue |= {"bin_max": kernel.max, "bin_size": kernel.target}
    for word, name in (("rehash", "rehash"), ("db", "warmup")):
        if word in given:
            queue[name] = quantity_text(1_000_000 * value(given, word), "ns")
    queue |= {word: value(given, word) for word in ("penalty_rate", "penalty_burst") if word in given}
    remarks = [] if shown else changes(given, dict.fromkeys(("limit", "max", "target"), "packets"))
    remarks += [
        f"Linux keeps `{word} {given[word].text}` as {steps / STEPS:.6g}, a multiple of 1/{STEPS}"
        for word, steps in (("increment", kernel.increment), ("decrement", kernel.decrement))
        if word in given and not shown and abs(steps / STEPS - given[word].value) > 1e-3 * given[word].value
    ]
    if not value(given, "limit"):
        remarks.append(f"sfb without `limit` takes the device's txqueuelen as its limit; here {TXQUEUELEN}")
    return Reading(checked(queue), "" if shown else kernel.shown, remarks)


def _ms_shown(text: str) -> Kept:
    """Read a time as tc shows it, in milliseconds."""
    ms = round(numbers.time_us(text).value / 1000)
    return Kept(text, ms, ms)


def write(link: Link) -> Written:
    """Return the words for an SFB."""
    settings = link.settings
    limit = limit_in_packets(settings, settings["mean_packet_bytes"])
    rehash, db = (round(settings[f"{name}_ns"] / 1e6) for name in ("rehash", "warmup"))
    words = (
        f"sfb rehash {rehash} db {db} limit {limit} max {settings['bin_max']} target {settings['bin_size']}"
        f" increment {settings['increment']!r} decrement {settings['decrement']!r}"
        f" penalty_rate {round(settings['penalty_rate'])} penalty_burst {settings['penalty_burst']}"
    )
    return words, []


VOCABULARY = Vocabulary(
    given=Grammar(
        values={
            **dict.fromkeys((*_COUNTS, "penalty_rate", "rehash", "db"), numbers.count),
            **dict.fromkeys(_SHARES, numbers.share),
        },
        flags={},
        refused={},
        queue=lambda given: _read(given, shown=False),
    ),
    shown=Grammar(
        values={
            **dict.fromkeys(_COUNTS, packets_shown),
            "penalty_rate": lambda text: numbers.count(text.removesuffix("pps")),
            **dict.fromkeys(("rehash", "db"), _ms_shown),
            **dict.fromkeys(_SHARES, numbers.share),
        },
        flags={},
        refused={},
        queue=lambda given: _read(given, shown=True),
    ),
)
