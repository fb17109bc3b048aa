"""fq in tc's words, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers
from aqmlab.tc.effective import NoCounterpartError
from aqmlab.tc.grammar import (
    HEADERS,
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    checked,
    limit_in_packets,
    packets_shown,
    rounded,
    size_shown,
    time_words,
    value,
)
from aqmlab.tc.numbers import LARGEST, Kept

LIMIT, FLOW_LIMIT, MASK, BUCKETS = 10_000, 100, 1023, 1024
"""The defaults of the kernel: packets, packets of a flow, the mask of hashes, and buckets."""
QUANTUM, INITIAL = 2 * linux.FULL_FRAME, 10 * linux.FULL_FRAME
LOW_RATE = 550_000 // 8
REFILL_US, SLACK_NS, HORIZON_US = 40_000, 10_000, 10_000_000
LARGEST_QUANTUM, LARGEST_INITIAL = 2**20, 2**31 - 1
_COUNTS = ("limit", "flow_limit", "buckets", "orphan_mask")
_SIZES = ("quantum", "initial_quantum")
_RATES = ("maxrate", "low_rate_threshold")
_NO_EFFECT = ("buckets", "timer_slack", "horizon", "horizon_drop", "horizon_cap", "defrate")
"""Words that change nothing for packets that come from a network."""


@dataclass(frozen=True)
class LinuxFq:
    """fq's parameters in the kernel: packets, bytes, bytes per second, microseconds and nanoseconds."""

    limit: int
    flow_limit: int
    buckets: int
    mask: int
    paced: bool
    quantum: int
    initial_quantum: int
    maxrate: int | None
    low_rate: int
    refill_us: int
    threshold_us: int | None
    slack_ns: int
    horizon_us: int
    horizon_cap: bool

    @property
    def shown(self) -> str:
        """What ``tc qdisc show`` prints."""
        words = (
            f"fq limit {self.limit}p flow_limit {self.flow_limit}p buckets {self.buckets}"
            f" orphan_mask {self.mask}" + " nopacing" * (not self.paced)
        )
        quantum, initial = map(linux.size_text, (self.quantum, self.initial_quantum))
        words += f" quantum {quantum} initial_quantum {initial}"
        if self.maxrate is not None:
            words += f" maxrate {linux.rate_text(self.maxrate)}"
        if self.low_rate:
            words += f" low_rate_threshold {linux.rate_text(self.low_rate)}"
        words += f" refill_delay {linux.time_text(self.refill_us)}"
        if self.threshold_us is not None:
            words += f" ce_threshold {linux.time_text(self.threshold_us)}"
        slack = linux.time_text(self.slack_ns // 1000) if self.slack_ns >= 1000 else f"{self.slack_ns}ns"
        horizon = f"horizon {linux.time_text(self.horizon_us)}"
        return f"{words} timer_slack {slack} {horizon} horizon_{'cap' if self.horizon_cap else 'drop'}"


def _or(given: Given, word: str, default: int) -> int:
    """Return the number that is given, which may be 0, or else the default."""
    return value(given, word) if word in given else default


def _kernel(given: Given, *, shown: bool) -> LinuxFq:
    quantum, initial = _or(given, "quantum", QUANTUM), _or(given, "initial_quantum", INITIAL)
    if not 0 < quantum <= LARGEST_QUANTUM:
        raise UsageError(f"fq: the kernel refuses `quantum` {quantum}; write 1 to {LARGEST_QUANTUM} bytes")
    if initial > LARGEST_INITIAL:
        raise UsageError(
            f"fq: the kernel refuses `initial_quantum` {initial}; write at most {LARGEST_INITIAL}"
        )
    maxrate = value(given, "maxrate") if "maxrate" in given else LARGEST
    return LinuxFq(
        limit=_or(given, "limit", LIMIT),
        flow_limit=_or(given, "flow_limit", FLOW_LIMIT),
        buckets=1 << (max(1, _or(given, "buckets", BUCKETS)) - 1).bit_length(),
        mask=_or(given, "orphan_mask", MASK),
        paced=bool(given.get("pacing", True)),
        quantum=quantum,
        initial_quantum=initial,
        maxrate=maxrate if maxrate != LARGEST else None,
        # tc does not show a threshold of 0.
        low_rate=_or(given, "low_rate_threshold", 0 if shown else LOW_RATE),
        refill_us=1000 * ceil(_or(given, "refill_delay", REFILL_US) / 1000),
        threshold_us=value(given, "ce_threshold") if "ce_threshold" in given else None,
        slack_ns=_or(given, "timer_slack", SLACK_NS),
        horizon_us=_or(given, "horizon", HORIZON_US),
        horizon_cap=given.get("horizon_cap") is True,
    )


def _queue(given: Given, kernel: LinuxFq) -> dict[str, Any]:
    for word, kept in (("limit", kernel.limit), ("flow_limit", kernel.flow_limit)):
        if kept == 0:
            raise NoCounterpartError(f"fq: with `{word} 0`, Linux loses every packet")
    if kernel.paced and kernel.maxrate == 0:
        raise NoCounterpartError("fq: with `maxrate 0`, each flow sends a packet per second; write a rate")
    written = {
        "limit": quantity_text(kernel.limit, "packets"),
        # No flow has more packets than all flows together.
        "flow_limit": min(kernel.flow_limit, kernel.limit),
        "quantum": quantity_text(kernel.quantum, "bytes"),
        "initial_quantum": quantity_text(kernel.initial_quantum, "bytes"),
        "refill_delay": quantity_text(1000 * kernel.refill_us, "ns"),
        # Linux never finds a rate at or below 0, and none here is below a byte per second.
        "low_rate_threshold": quantity_text(8 * max(1, kernel.low_rate), "bps"),
        "ce_threshold": quantity_text(1000 * (kernel.threshold_us or 0), "ns"),
    }
    queue: dict[str, Any] = {"kind": "fq", "preset": "linux"}
    queue |= {word: kept for word, kept in written.items() if word in given}
    if kernel.low_rate == 0:
        queue["low_rate_threshold"] = written["low_rate_threshold"]
    if kernel.paced and kernel.maxrate is not None:
        queue["maxrate"] = quantity_text(8 * kernel.maxrate, "bps")
    if kernel.mask != MASK:
        queue["flows"] = 1 << kernel.mask.bit_count()
    if kernel.flow_limit > kernel.limit or ("flow_limit" not in given and kernel.limit < FLOW_LIMIT):
        queue["flow_limit"] = kernel.limit
    return queue


def _read(given: Given, *, shown: bool) -> Reading:
    kernel = _kernel(given, shown=shown)
    remarks = rounded(given, _SIZES) if shown else []
    if not shown:
        for word in _RATES:
            if word in given and given[word].changed:
                kept = quantity_text(8 * value(given, word), "bps")
                remarks.append(
                    f"Linux keeps `{word} {given[word].text}` as {kept}, in whole bytes per second"
                )
        remarks += [
            f"`{word}` changes nothing for packets that come from a network"
            for word in _NO_EFFECT
            if word in given
        ]
    if not kernel.paced and kernel.maxrate is not None:
        remarks.append("with `nopacing`, Linux ignores `maxrate`")
    remarks += [
        'of a host\'s own connected sockets, each is a flow by itself in Linux: `queues = "perfect"`',
        HEADERS.replace("aqmlab does not", "the preset `linux` does, too (`header`)"),
    ]
    return Reading(checked(_queue(given, kernel)), "" if shown else kernel.shown, remarks)


def write(link: Link) -> Written:
    """Return the words for an fq."""
    settings, remarks = link.settings, []
    if settings["queues"] == "perfect":
        remarks.append("`queues`: in Linux, only a host's own connected sockets are on their own")
    words = (
        f"fq limit {limit_in_packets(settings, link.mean_packet_bytes)} flow_limit {settings['flow_limit']}"
        f" quantum {settings['quantum_bytes']} initial_quantum {settings['initial_quantum_bytes']}"
        f" refill_delay {time_words(ceil(settings['refill_delay_ns'] / 1000))}"
        f" low_rate_threshold {settings['low_rate_threshold_bps']}bit"
    )
    if settings["queues"] == "hashed":
        words += f" orphan_mask {(1 << (settings['flows'] - 1).bit_length()) - 1}"
    if (rate := settings.get("maxrate_bps")) is not None:
        words += f" maxrate {rate}bit"
    if (threshold := settings.get("ce_threshold_ns")) is not None:
        words += f" ce_threshold {max(1, round(threshold / 1000))}us"
    return words, remarks


def _time_ns(text: str) -> Kept:
    """Read a time in nanoseconds, as tc does for `timer_slack`: a number without a unit is in nanoseconds."""
    if text.isdigit():
        return numbers.count(text)
    if text.endswith("ns"):
        return numbers.count(text.removesuffix("ns"))
    us = numbers.time_us(text)
    return Kept(text, 1000 * us.written, 1000 * us.value)


_FLAGS = {
    "pacing": ("pacing", True),
    "nopacing": ("pacing", False),
    "horizon_drop": ("horizon_drop", True),
    "horizon_cap": ("horizon_cap", True),
}
_COMMON = {
    **dict.fromkeys((*_RATES, "defrate"), numbers.rate),
    **dict.fromkeys(("refill_delay", "ce_threshold", "horizon"), numbers.time_us),
    "timer_slack": _time_ns,
}
VOCABULARY = Vocabulary(
    given=Grammar(
        values={**dict.fromkeys(_COUNTS, numbers.count), **dict.fromkeys(_SIZES, numbers.size), **_COMMON},
        flags=_FLAGS,
        refused={},
        queue=lambda given: _read(given, shown=False),
    ),
    shown=Grammar(
        values={
            **dict.fromkeys(("limit", "flow_limit"), packets_shown),
            **dict.fromkeys(("buckets", "orphan_mask"), numbers.count),
            **dict.fromkeys(_SIZES, size_shown),
            **_COMMON,
        },
        flags=_FLAGS,
        refused={},
        queue=lambda given: _read(given, shown=True),
    ),
)
