"""FQ-PIE in tc's words, both ways."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers, pie
from aqmlab.tc.grammar import (
    HEADERS,
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    checked,
    limit_in_packets,
    packets_shown,
    raised,
    rounded,
    size_shown,
    value,
)

LIMIT, FLOWS, MEMORY, ECN_PROB = 10_240, 1024, 2**25, 10
"""The defaults of the kernel: packets, queues, bytes and percent."""
MOST_FLOWS = 65_536
_SIZES = ("quantum", "memory_limit")
_UNITS = {**pie.UNITS, "flows": "", **dict.fromkeys(_SIZES, "bytes"), "ecn_prob": ""}


@dataclass(frozen=True)
class LinuxFqPie:
    """FQ-PIE's parameters in the kernel: PIE's, queues, bytes and percent."""

    pie: linux.LinuxPie
    flows: int
    quantum: int
    memory_limit: int
    ecn_prob: int

    @property
    def shown(self) -> str:
        """What ``tc qdisc show`` prints."""
        words = (
            f"fq_pie limit {self.pie.limit}p flows {self.flows} {self.pie.control}"
            f" quantum {linux.size_text(self.quantum)} memory_limit {linux.size_text(self.memory_limit)}"
            f" ecn_prob {self.ecn_prob}"
        )
        return " ".join([words, *self.pie.flags])


def _target_ns(given: Given) -> int:
    """The target that the kernel keeps; it computes the nanoseconds in 32 bits."""
    return value(given, "target") * 1000 % 2**32


def _kernel(given: Given) -> LinuxFqPie:
    asked = {word: value(given, word) for word in ("tupdate", "alpha", "beta")}
    own = linux.pie({**asked, "limit": value(given, "limit") or LIMIT}, pie.flags_of(given))
    if value(given, "target"):
        own = replace(own, target=_target_ns(given) // linux.PIE_UNIT_NS)
    flows, percent = value(given, "flows"), value(given, "ecn_prob")
    if flows > MOST_FLOWS:
        raise UsageError(f"the kernel refuses `flows` {flows}; write at most {MOST_FLOWS}")
    if percent >= 100:
        raise UsageError(f"tc refuses `ecn_prob` {percent}; write at most 99, in percent")
    return LinuxFqPie(
        own,
        flows or FLOWS,
        linux.quantum(value(given, "quantum")),
        value(given, "memory_limit") or MEMORY,
        percent or ECN_PROB,
    )


def _read(given: Given, *, shown: bool) -> Reading:
    try:
        kernel = _kernel(given)
    except UsageError as error:
        raise UsageError(f"fq_pie: {error}") from None
    target_ns = _target_ns(given)
    queue: dict[str, Any] = {"kind": "fq_pie", "preset": "linux"}
    written = {
        "limit": ("limit", quantity_text(kernel.pie.limit, "packets")),
        "flows": ("flows", kernel.flows),
        "quantum": ("quantum", quantity_text(kernel.quantum, "bytes")),
        "memory_limit": ("memory_limit", quantity_text(kernel.memory_limit, "bytes")),
        "ecn_prob": ("mark_ecnth", kernel.ecn_prob / 100),
    }
    queue |= dict(written[word] for word in written if value(given, word))
    queue |= pie.controller(given, kernel.pie, target_ns)

    remarks = rounded(given, _SIZES) if shown else changes(given, _UNITS) + raised(value(given, "quantum"))
    if target_ns != value(given, "target") * 1000:
        remarks.append(
            f"Linux keeps the nanoseconds of `target {given['target'].text}` in 32 bits:"
            f" {quantity_text(target_ns, 'ns')}"
        )
    if value(given, "memory_limit"):
        remarks.append("Linux loses no packet at `memory_limit`")
    remarks += [pie.pie_period(kernel.pie), HEADERS]
    return Reading(checked(queue), "" if shown else kernel.shown, remarks)


def write(link: Link) -> Written:
    """Return the words for an FQ-PIE."""
    settings = link.settings
    limit = limit_in_packets(settings, settings["mean_packet_bytes"])
    percent = min(max(round(100 * settings["mark_ecnth"]), 1), 99)
    words = (
        f"fq_pie limit {limit} flows {settings['flows']} quantum {settings['quantum_bytes']}"
        f" memory_limit {settings['memory_limit_bytes']} ecn_prob {percent} {pie.control_words(settings)}"
    )
    return words, []


VOCABULARY = Vocabulary(
    given=Grammar(
        values={
            **dict.fromkeys(("limit", "flows", "ecn_prob"), numbers.count),
            **dict.fromkeys(_SIZES, numbers.size),
            **pie.NUMBERS,
        },
        flags=pie.SWITCHES,
        refused={},
        queue=lambda given: _read(given, shown=False),
    ),
    shown=Grammar(
        values={
            "limit": packets_shown,
            **dict.fromkeys(("flows", "ecn_prob"), numbers.count),
            **dict.fromkeys(_SIZES, size_shown),
            **pie.SHOWN_NUMBERS,
        },
        flags=pie.SWITCHES,
        refused={},
        queue=lambda given: _read(given, shown=True),
    ),
)
