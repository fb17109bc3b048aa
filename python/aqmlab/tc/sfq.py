"""SFQ in tc's words, both ways, with the RED of its queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers, red
from aqmlab.tc.grammar import (
    HEADERS,
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    checked,
    in_bytes,
    limit_in_packets,
    packets_shown,
    raised,
    rounded,
    size_shown,
    value,
)
from aqmlab.tc.numbers import Kept

LIMIT, DEPTH, FLOWS, DIVISOR = 127, 127, 128, 1024
"""The defaults of the kernel, the first two in packets; no queue is longer than its default."""
MOST_FLOWS = 65_408
LARGEST_DIVISOR = 65_536
LONGEST_PERTURB_S = (2**31 - 1) // 1000
"""The longest time between perturbations, with 1000 timer ticks per second."""
_COUNTS = {"limit": "packets", "depth": "packets", "flows": "", "divisor": "", "perturb": "s"}
_THRESHOLDS = {"redflowlimit": "redflowlimit", "min": "min_th", "max": "max_th", "avpkt": "mean_packet"}
_OF_RED = (*_THRESHOLDS, "burst", "probability", "ecn", "harddrop")


@dataclass(frozen=True)
class LinuxSfq:
    """SFQ's parameters in the kernel: packets, bytes and seconds, and the RED of its queues, if any."""

    limit: int
    quantum: int
    depth: int
    flows: int
    divisor: int
    perturb: int
    head_drop: bool
    red: linux.LinuxRed | None

    @property
    def shown(self) -> str:
        """What ``tc -d qdisc show`` prints."""
        words = (
            f"sfq limit {self.limit}p quantum {linux.size_text(self.quantum)} depth {self.depth}"
            + " headdrop" * self.head_drop
            + f" flows {self.flows} divisor {self.divisor}"
            + (f" perturb {self.perturb}sec" if self.perturb else "")
        )
        if self.red is None:
            return words
        low, high = (linux.size_text(size) for size in (self.red.low, self.red.high))
        chance = f"{self.red.max_p / 2**32:g}"
        words += f" ewma {self.red.w_log} min {low} max {high} probability {chance}"
        return " ".join([words, *self.red.flags])


def _kernel(given: Given) -> LinuxSfq:
    """Return the kernel's parameters.

    Raises
    ------
    UsageError
        If tc or the kernel refuses the words.
    """
    if any(word == "limit" and kept.value < 2 for word, kept in given.each):
        raise UsageError("sfq: tc refuses a `limit` below 2 packets")
    divisor, perturb = value(given, "divisor"), value(given, "perturb")
    if divisor > LARGEST_DIVISOR or divisor & (divisor - 1):
        raise UsageError(
            f"sfq: the kernel refuses `divisor` {divisor}; write a power of two of at most {LARGEST_DIVISOR}"
        )
    if perturb > LONGEST_PERTURB_S:
        raise UsageError(
            f"sfq: the kernel refuses `perturb` {perturb}; write at most {LONGEST_PERTURB_S} seconds"
        )
    try:
        quantum = linux.quantum(value(given, "quantum"))
    except UsageError as error:
        raise UsageError(f"sfq: {error}") from None
    depth = min(value(given, "depth") or DEPTH, DEPTH)
    flows = min(value(given, "flows") or FLOWS, MOST_FLOWS, divisor or MOST_FLOWS)
    limit = LIMIT
    if "limit" in given:
        limit = min(value(given, "limit"), depth * flows)
        flows = min(flows, limit)
        if limit < 2:
            raise UsageError("sfq: the kernel refuses one queue of one packet; raise `depth` or `flows`")
    of_red = [word for word in _OF_RED if word in given]
    if of_red and not value(given, "redflowlimit"):
        raise UsageError(f"sfq: tc requires `redflowlimit` with `{of_red[0]}`, in bytes")
    own = red.in_kernel(given, "sfq") if of_red else None
    head_drop = bool(given.get("headdrop"))
    return LinuxSfq(limit, quantum, depth, flows, divisor or DIVISOR, perturb, head_drop, own)


def _rows(given: Given, kernel: Mapping[str, int]) -> dict[str, Any]:
    """Return the parameters of the queues, from the kernel's values by their words."""
    queue: dict[str, Any] = {"kind": "sfq", "preset": "linux"}
    units = {"limit": "packets", "quantum": "bytes"}
    for word, kept in kernel.items():
        # Without the word `limit`, Linux does not lower the number of queues to it.
        if value(given, word) or (word == "flows" and kept != min(FLOWS, kernel["limit"])):
            queue[word] = quantity_text(kept, units[word]) if word in units else kept
    if value(given, "perturb"):
        queue["perturb"] = f"{value(given, 'perturb')}s"
    if given.get("headdrop"):
        queue["head_drop"] = True
    return queue


def _read(given: Given) -> Reading:
    kernel = _kernel(given)
    words = ("limit", "quantum", "depth", "flows", "divisor")
    queue = _rows(given, {word: getattr(kernel, word) for word in words})
    remarks = changes(given, {**_COUNTS, "quantum": "bytes", **dict.fromkeys(_THRESHOLDS, "bytes")})
    remarks += raised(value(given, "quantum"))
    remarks += [
        f"Linux lowers `{word} {given[word].text}` to {getattr(kernel, word)}"
        for word in ("limit", "depth", "flows")
        if value(given, word) > getattr(kernel, word)
    ]
    if kernel.red is not None:
        queue |= {
            name: in_bytes(value(given, word)) for word, name in _THRESHOLDS.items() if value(given, word)
        }
        if burst := value(given, "burst"):
            queue["burst"] = burst
        queue |= red.probability(given, kernel.red) | red.marking(kernel.red.flags)
        if "harddrop" in kernel.red.flags and "ecn" not in kernel.red.flags:
            remarks.append("`harddrop` has no effect without `ecn`")
        remarks += [*red.averaging(given, kernel.red), _NO_LIMIT, HEADERS]
    return Reading(checked(queue), kernel.shown, remarks)


_NO_LIMIT = "`redflowlimit` only turns RED on and gives its thresholds; Linux never loses a packet at it"


def _read_shown(given: Given) -> Reading:
    """Reads what tc shows of SFQ; of its RED, tc shows neither `redflowlimit` nor `avpkt`."""
    limit = value(given, "limit")
    words = {word: value(given, word) for word in ("limit", "quantum", "depth", "divisor")}
    queue = _rows(given, words | {"flows": value(given, "flows") or min(FLOWS, limit)})
    remarks = rounded(given, ("quantum", "min", "max"))
    if "flows" not in given:
        remarks.append("`flows` is tc's default here; `tc -d qdisc show` prints it")
    low, high = value(given, "min"), value(given, "max")
    if low and high:
        mean = min(linux.CHOKE_PACKET, low)
        queue |= {
            "redflowlimit": in_bytes(high),
            "min_th": in_bytes(low),
            "max_th": in_bytes(high),
            "mean_packet": in_bytes(mean),
            "burst": red.burst_of(value(given, "ewma"), low, high, mean),
            "max_p": red.shown_probability(given["probability"]),
        }
        queue |= red.marking([word for word in ("ecn", "harddrop") if given.get(word)])
        remarks += ["tc shows neither `redflowlimit` nor `avpkt`; here they give the same RED", HEADERS]
    return Reading(checked(queue), "", remarks)


def write(link: Link) -> Written:
    """Return the words for an SFQ."""
    settings = link.settings
    limit, depth, flows, divisor = (
        limit_in_packets(settings, link.mean_packet_bytes),
        *(settings[word] for word in ("depth", "flows", "divisor")),
    )
    words = "sfq"
    # Linux fits `limit` and `flows` to one another if `limit` is given, and `flows` to a given `divisor`.
    if limit != LIMIT or flows <= limit <= depth * flows:
        words += f" limit {limit}"
    words += f" quantum {settings['quantum_bytes']} depth {depth} flows {flows}"
    if divisor != DIVISOR or flows <= divisor:
        words += f" divisor {divisor}"
    if perturb := settings.get("perturb_ns"):
        words += f" perturb {max(1, round(perturb / 1e9))}"
    words += " headdrop" * settings["head_drop"]
    flow_limit = settings.get("redflowlimit_bytes")
    if flow_limit is None:
        return words, []
    chance, remarks = red.probability_words(settings)
    low, high = (red.size_of(settings, name) for name in ("min_th", "max_th"))
    words += f" redflowlimit {flow_limit} min {low} max {high} avpkt {settings['mean_packet_bytes']}"
    words += f" burst {settings['burst']} {chance}" + " ecn" * settings["ecn"]
    hard = settings["ecn"] and settings["ecn_region"] == "rfc3168"
    return words + " harddrop" * hard, remarks


def _shown_flows(text: str) -> Kept:
    """Read the number of queues; an older tc prints the divisor after it."""
    return numbers.count(text.partition("/")[0])


_FLAGS = {word: (word, True) for word in ("headdrop", "ecn", "harddrop")}
VOCABULARY = Vocabulary(
    given=Grammar(
        values={
            **dict.fromkeys((*_COUNTS, "redflowlimit", "min", "max", "burst"), numbers.count),
            **dict.fromkeys(("quantum", "avpkt"), numbers.size),
            "probability": numbers.chance,
        },
        flags=_FLAGS,
        refused={},
        queue=_read,
    ),
    shown=Grammar(
        values={
            "limit": packets_shown,
            **dict.fromkeys(("quantum", "min", "max"), size_shown),
            **dict.fromkeys(("depth", "divisor", "ewma"), numbers.count),
            "flows": _shown_flows,
            "perturb": lambda text: numbers.count(text.removesuffix("sec")),
            "probability": numbers.chance,
        },
        flags=_FLAGS,
        refused={},
        queue=_read_shown,
    ),
)
