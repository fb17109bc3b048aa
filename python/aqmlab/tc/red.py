"""RED and Adaptive RED in tc's words, both ways."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import log2
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers
from aqmlab.tc.effective import LEAST_RATE_BPS, Queue, effective
from aqmlab.tc.grammar import (
    DEFAULT_RATE_BPS,
    FULL_PACKET,
    HEADERS,
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    in_bytes,
    no_room,
    rounded,
    size_shown,
    value,
)
from aqmlab.tc.linux import weight_log
from aqmlab.tc.numbers import LARGEST, Kept

"""The largest packet of most links, in bytes."""
LONGEST_BURST = 1_000_000
"""The largest ``burst`` that RED accepts in aqmlab."""
NOTICEABLE = 1e-3
IDLE = "behind a shaper such as htb, Linux never finds RED's queue idle, and its average does not age"
NEVER_ADAPTS = (
    "with tc of iproute2 6.1, Linux 6.1 reports `adaptive` but never moves the probability;"
    ' `kind = "red"` is what it does'
)
_SIZES = {"limit": "limit", "min": "min_th", "max": "max_th", "avpkt": "mean_packet"}
_UNITS = dict.fromkeys(_SIZES, "bytes") | {"burst": "packets", "bandwidth": "Bps"}


def _read(given: Given) -> Reading:
    if missing := [word for word in ("limit", "avpkt") if not value(given, word)]:
        raise UsageError(f"red: {' and '.join(f'`{word}`' for word in missing)} must be given, in bytes")
    kernel = in_kernel(given, "red")
    flags = kernel.flags
    rate_bps = int(8 * given["bandwidth"].written) if value(given, "bandwidth") else DEFAULT_RATE_BPS
    remarks = [*changes(given, _UNITS), *averaging(given, kernel), *no_room(kernel.limit)]
    if kernel.high > kernel.limit:
        remarks.append(
            f"the average cannot reach `max`, which is {in_bytes(kernel.high)}: `limit` is smaller"
        )
    if "harddrop" in flags and "ecn" not in flags:
        remarks.append("`harddrop` has no effect without `ecn`")
    if "adaptive" in flags:
        remarks.append(NEVER_ADAPTS)
    remarks += [bandwidth(rate_bps), IDLE, HEADERS]
    return Reading(lambda: queue_of(given, kernel, rate_bps), kernel.shown, remarks, rate_bps)


def in_kernel(given: Given, kind: str) -> linux.LinuxRed:
    """Return the parameters of RED, CHOKe or SFQ's RED in the kernel.

    Raises
    ------
    UsageError
        If tc or the kernel refuses the words.
    """
    asked = linux.AskedRed(
        limit=value(given, "redflowlimit" if kind == "sfq" else "limit"),
        avpkt=value(given, "avpkt") if kind == "red" or "avpkt" in given else linux.CHOKE_PACKET,
        low=value(given, "min"),
        high=value(given, "max"),
        burst=value(given, "burst"),
        rate=value(given, "bandwidth"),
        probability=given["probability"].value if "probability" in given else linux.DEFAULT_PROBABILITY,
        flags=tuple(word for word in _FLAGS if given.get(word)),
    )
    try:
        return {"red": linux.red, "choke": linux.choke, "sfq": linux.sfq_red}[kind](asked)
    except UsageError as error:
        raise UsageError(f"{kind}: {error}") from None


def bandwidth(rate_bps: int) -> str:
    """Return a remark on ``bandwidth``."""
    remark = f"`bandwidth` is the link's `rate` in aqmlab: {quantity_text(rate_bps, 'bps')}"
    if rate_bps < LEAST_RATE_BPS:
        remark += f", where a link has at least {quantity_text(LEAST_RATE_BPS, 'bps')}"
    return remark


def queue_of(given: Given, kernel: linux.LinuxRed, rate_bps: int) -> Queue:
    """Return a queue with the kernel's parameters, as the user wrote them where possible."""
    unit = "bytes" if kernel.kind == "red" else "packets"
    units = dict.fromkeys(_SIZES, unit) | {"avpkt": "bytes"}
    queue: dict[str, Any] = {"kind": "ared" if "adaptive" in kernel.flags else kernel.kind, "preset": "linux"}
    queue |= {
        name: quantity_text(value(given, word), units[word])
        for word, name in _SIZES.items()
        if value(given, word)
    }
    if burst := value(given, "burst"):
        queue["burst"] = burst
    queue |= probability(given, kernel) | marking(kernel.flags)
    weight = 2.0**-kernel.w_log
    settings = effective({**queue, "burst": 1, "w_q": weight}, rate_bps)
    ours = {name: settings[f"{name}_{unit}"] for name in ("limit", "min_th", "max_th")}
    queue |= {
        name: quantity_text(size, unit)
        for (name, own), size in zip(ours.items(), kernel.sizes, strict=True)
        if own != size
    }
    if burst > LONGEST_BURST or effective(queue, rate_bps)["w_q"] != weight:
        queue.pop("burst", None)
        queue["w_q"] = weight
    return queue


def probability(given: Given, kernel: linux.LinuxRed) -> dict[str, Any]:
    """Return the parameter for the kernel's probability, as the user wrote it where possible."""
    if kernel.max_p == numbers.unsigned(linux.DEFAULT_PROBABILITY * 2.0**32):
        return {}
    chance = given["probability"].value if "probability" in given else 1.0
    kept = 0.0 < chance <= 1.0 and numbers.unsigned(chance * 2.0**32) == kernel.max_p
    return {"max_p": chance if kept else kernel.max_p / 2.0**32}


def averaging(given: Given, kernel: linux.LinuxRed) -> list[str]:
    """Return remarks on the probability and the weight, if the kernel's are not those that were asked for."""
    remarks = _probability(given, kernel)
    if kernel.w_log >= linux.LARGE_WEIGHT_LOG:
        remarks.append(f"tc warns that the burst seems to be too large: the weight is 2^-{kernel.w_log}")
    return remarks


def _probability(given: Given, kernel: linux.LinuxRed) -> list[str]:
    if kernel.high == kernel.low:
        return []  # the average is never between the thresholds
    asked = given["probability"] if "probability" in given else Kept("0.02", 0.02, 0.02)
    if abs(kernel.probability - asked.value) <= NOTICEABLE * asked.value:
        return []
    unit = "packet" if kernel.kind == "choke" else "byte"
    why = (
        f"whose kernel keeps the rise per {unit} in whole units of 2^-32"
        if numbers.unsigned(asked.value * 2.0**32) == kernel.max_p
        else "because tc keeps only the 32 bits below 1"
    )
    return [f"`probability {asked.text}` is {kernel.probability:.6g} in Linux, {why}"]


def marking(flags: Sequence[str]) -> dict[str, Any]:
    """Return the parameters for these flags of RED."""
    if "ecn" not in flags:
        return {}
    queue: dict[str, Any] = {"ecn": True}
    if "harddrop" in flags:
        queue["ecn_region"] = "rfc3168"
    return queue


def _read_shown(given: Given) -> Reading:
    """Reads what tc shows of RED: sizes, flags and, with ``-d``, weight and probability."""
    flags = [word for word in ("ecn", "harddrop", "adaptive") if given.get(word)]
    queue: dict[str, Any] = {"kind": "ared" if "adaptive" in flags else "red", "preset": "linux"}
    queue |= {name: in_bytes(value(given, word)) for word, name in _SIZES.items() if word in given}
    remarks = rounded(given, ("limit", "min", "max"))
    queue |= marking(flags)
    if "adaptive" in flags:
        remarks.append(NEVER_ADAPTS)
    more, found = shown_averaging(given)
    queue |= more
    remarks += [*found, IDLE, HEADERS]

    def small_packets() -> Queue:
        packet = in_bytes(min(FULL_PACKET, value(given, "limit")))
        effective(queue | {"mean_packet": packet}, DEFAULT_RATE_BPS)
        return queue

    return Reading(small_packets, "", remarks)


def shown_averaging(given: Given) -> tuple[Queue, list[str]]:
    """Return probability and weight from what tc shows, and remarks on what it does not show."""
    queue: dict[str, Any] = {}
    remarks = []
    if "probability" in given:
        queue["max_p"] = shown_probability(given["probability"])
    if "ewma" in given:
        queue["w_q"] = 2.0 ** -value(given, "ewma")
    else:
        remarks.append("weight and probability are tc's defaults here; `tc -d qdisc show` prints them")
    remarks.append("tc shows neither `avpkt` nor `bandwidth`: they are those of the link here")
    return queue, remarks


def shown_probability(shown: Kept) -> float:
    """Return the probability that tc shows with six digits: a whole number of units of 2^-32."""
    below = min(int(shown.value * 2.0**32), numbers.LARGEST)
    if below == numbers.LARGEST or f"{below / 2**32:g}" == f"{shown.value:g}":
        return min(shown.value, numbers.LARGEST / 2**32)
    return (below + 1) / 2**32


def write(link: Link) -> Written:
    """Return the words for a RED."""
    settings = link.settings
    sizes = {name: size_of(settings, name) for name in ("limit", "min_th", "max_th")}
    words, remarks = average_words(link, sizes)
    if settings["ecn"]:
        words += " ecn harddrop" if settings["ecn_region"] == "rfc3168" else " ecn"
    if link.queue == "ared":
        words += " adaptive"
    return f"red limit {sizes['limit']} min {sizes['min_th']} max {sizes['max_th']} {words}", remarks


def average_words(link: Link, sizes: Mapping[str, int]) -> Written:
    """Return the words of RED and CHOKe for average and probability; the thresholds are in bytes."""
    settings, rate = link.settings, link.rate_bps
    chance, remarks = probability_words(settings)
    if rate // 8 > LARGEST:
        rate = 8 * LARGEST
        remarks.append(f"tc refuses a `bandwidth` above {8 * LARGEST} bit/s; the line has the largest")
    words = f"avpkt {settings['mean_packet_bytes']} burst {_burst(settings, sizes)}"
    return f"{words} {chance} bandwidth {rate}bit", remarks


def probability_words(settings: Mapping[str, Any]) -> Written:
    """Return the word for the probability."""
    if settings["max_p"] <= LARGEST / 2**32:
        return f"probability {settings['max_p']!r}", []
    remark = "tc sends `probability 1` as 0; the line has the largest value that tc keeps"
    return f"probability {LARGEST / 2**32!r}", [remark]


def _burst(settings: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    """Return a burst for which tc picks the power of two nearest w_q."""
    wanted = min(31, max(1, round(-log2(settings["w_q"]))))
    own = [int(settings["burst"])] if settings["w_rule"] == "linux" else []
    return burst_of(wanted, sizes["min_th"], sizes["max_th"], int(settings["mean_packet_bytes"]), own)


def burst_of(wanted: int, low: int, high: int, mean: int, own: Sequence[int] = ()) -> int:
    """Return a burst from which tc makes the weight 2^-wanted, or one near it; thresholds are in bytes.

    This is one of one's own or the guideline's, if one of these will do.
    """

    def exponent(burst: int) -> int:
        return weight_log(low, burst, mean) or 32  # no power of two admits a burst of this length

    least = max(1, -(-low // mean))
    guideline = max(least, (2 * low + high) // (3 * mean))
    for burst in (*own, guideline):
        if exponent(burst) == wanted:
            return burst
    first = least + bisect_left(range(least, LARGEST), wanted, key=exponent)
    near = [burst for burst in (first - 1, first) if burst >= least]
    return min(near, key=lambda one: abs(exponent(one) - wanted))


def size_of(settings: Mapping[str, Any], name: str) -> int:
    """Return a size in bytes, also if it is in packets."""
    size = settings.get(f"{name}_bytes")
    return int(size if size is not None else settings[f"{name}_packets"] * settings["mean_packet_bytes"])


_FLAGS = {word: (word, True) for word in ("ecn", "harddrop", "adaptive", "nodrop")}
_REFUSED = {
    "nodrop": "aqmlab drops packets that cannot be marked",
    "qevent": "only the kernel can attach actions to packets",
}
SHOWN_AVERAGE: Mapping[str, Callable[[str], Kept]] = {
    **dict.fromkeys(("ewma", "Plog", "Scell_log"), numbers.count),
    "probability": numbers.chance,
}
"""The words of average and probability that tc prints."""
VOCABULARY = Vocabulary(
    given=Grammar(
        values={
            **dict.fromkeys(("limit", "min", "max", "avpkt"), numbers.size),
            "burst": numbers.count,
            "probability": numbers.chance,
            "bandwidth": numbers.rate,
        },
        flags=_FLAGS | {"adaptative": ("adaptive", True)},
        refused=_REFUSED,
        queue=_read,
    ),
    shown=Grammar(
        values={
            **dict.fromkeys(("limit", "min", "max"), size_shown),
            **SHOWN_AVERAGE,
        },
        flags=_FLAGS,
        refused=_REFUSED,
        queue=_read_shown,
    ),
)
