"""From the queues of a scenario to tc commands, with the values that Linux rounds or cannot express."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, log2
from typing import Any

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.language.scenario import Scenario, resolve
from aqmlab.recordings.plan import Link, Plan, quantity_text
from aqmlab.tc import dualpi2
from aqmlab.tc.effective import effective
from aqmlab.tc.linux import CODEL_UNIT_NS, PIE_GAINS_PER_HZ, PIE_LARGEST_GAIN, PIE_UNIT_NS, weight_log
from aqmlab.tc.numbers import LARGEST
from aqmlab.tc.spec import read_tc


@dataclass(frozen=True)
class TcLine:
    """A link's queue in tc's syntax, with remarks on the differences in Linux.

    Attributes
    ----------
    arms, link
        The arms and the link of the queue.
    rate_bps
        The link's rate, which the line does not set.
    kind
        The discipline's name in aqmlab.
    spec
        The words after ``tc qdisc add dev DEV root``; ``None`` if Linux has no such discipline, or tc or the
        kernel refuses these values.
    shown
        What ``tc -d qdisc show`` then prints, without handle and place.
    remarks
        Differences in Linux.
    """

    arms: tuple[str, ...]
    link: str
    rate_bps: int
    kind: str
    spec: str | None
    shown: str | None
    remarks: tuple[str, ...]

    @property
    def rate(self) -> str:
        """The link's rate in the notation of scenarios."""
        return quantity_text(self.rate_bps, "bps")


@typed
def tc_lines(scenario: Scenario) -> list[TcLine]:
    """The queues of a scenario's links in each arm; a queue that is the same in several arms appears once.

    Raises
    ------
    ScenarioError
        If the scenario has errors; the exception lists all of them.
    """
    found: dict[tuple[Any, ...], list[str]] = {}
    for arm in resolve(scenario)["arms"]:
        for link in Plan.of(arm["plan"]).links:
            spec, shown, remarks = _line(link)
            key = (link.name, link.rate_bps, link.queue, spec, shown, tuple(remarks))
            found.setdefault(key, []).append(arm["name"])
    return [TcLine(tuple(arms), *key) for key, arms in found.items()]


def written(link: Link) -> tuple[str | None, list[str]]:
    """Return the words for a link's queue, which Linux need not accept, and what they leave out."""
    if link.queue not in _WRITERS:
        return None, [NONE_IN_LINUX[link.queue]]
    return _WRITERS[link.queue](link)


def _line(link: Link) -> tuple[str | None, str | None, list[str]]:
    spec, remarks = written(link)
    if spec is None:
        return None, None, remarks
    try:
        read = read_tc(spec)
    except UsageError as error:
        return None, None, [f"no command sets these values in Linux: {error}"]
    kernels = effective(read.queue, link.rate_bps)
    # What tc and the kernel change is remarked on when the words are read, too.
    changes = [remark for remark in read.remarks if not remark.startswith("`bandwidth`")]
    return spec, read.shown, [*_differences(link.settings, kernels), *remarks, *changes]


def _droptail(link: Link) -> tuple[str, list[str]]:
    settings, remarks = link.settings, []
    less = 1 if settings["limit_rule"] == "below" else 0
    if settings["limit_rule"] == "reached":
        remarks.append("`limit_rule`: in aqmlab, the last packet may exceed the limit; bfifo refuses it")
    if (packets := settings.get("limit_packets")) is not None:
        return f"pfifo limit {packets - less}", []
    return f"bfifo limit {settings['limit_bytes'] - less}", remarks


def _codel(link: Link) -> tuple[str, list[str]]:
    settings = link.settings
    limit = settings.get("limit_packets") or max(1, settings["limit_bytes"] // link.mean_packet_bytes)
    target, interval = (_tc_time(settings[f"{name}_ns"]) for name in ("target", "interval"))
    words = f"codel limit {limit} target {target} interval {interval}"
    threshold, remarks = _ce_threshold(settings)
    if "selector" in threshold:
        threshold = ""
        remarks.append("`ce_threshold`: Linux's `codel` marks packets of every code point; the line has none")
    return words + threshold + (" ecn" if settings["ecn"] else ""), remarks


def _fq_codel(link: Link) -> tuple[str, list[str]]:
    settings = link.settings
    limit = settings.get("limit_packets") or max(1, settings["limit_bytes"] // link.mean_packet_bytes)
    target, interval = (_tc_time(settings[f"{name}_ns"]) for name in ("target", "interval"))
    threshold, remarks = _ce_threshold(settings)
    words = (
        f"fq_codel limit {limit} flows {settings['flows']} quantum {settings['quantum_bytes']}"
        f" target {target} interval {interval}{threshold} memory_limit {settings['memory_limit_bytes']}"
        f" drop_batch {settings['batch']} " + ("ecn" if settings["ecn"] else "noecn")
    )
    return words, remarks


def _ce_threshold(settings: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The words for `ce_threshold`, and a place for remarks on them."""
    ns = settings.get("ce_threshold_ns")
    if ns is None:
        return "", []
    words = f" ce_threshold {_tc_time(ns)}"
    return words + " ce_threshold_selector 1/3" * (settings["ce_threshold_for"] == "ect1"), []


def _tc_time(ns: int) -> str:
    """The shortest time that the kernel rounds down to as many of its units; 0 would be a default."""
    us = max(1, -(-(ns // CODEL_UNIT_NS) * CODEL_UNIT_NS // 1000))
    return f"{us // 1000}ms" if us % 1000 == 0 else f"{us}us"


def _dualpi2(link: Link) -> tuple[str, list[str]]:
    return dualpi2.written(link.settings, link.mean_packet_bytes), []


def _pie(link: Link) -> tuple[str, list[str]]:
    settings = link.settings
    limit = settings.get("limit_packets") or max(1, settings["limit_bytes"] // settings["mean_packet_bytes"])
    target = max(1, -(-(settings["target_ns"] // PIE_UNIT_NS) * PIE_UNIT_NS // 1000))
    # The kernel's timer runs one tick of a millisecond longer.
    tupdate = max(1, round(settings["t_update_ns"] / 1e6) - 1)
    words = f"pie limit {limit} target {target}us tupdate {tupdate}ms"
    for name in ("alpha", "beta"):
        gain = round(PIE_GAINS_PER_HZ * settings[name])
        words += f" {name} {min(max(gain, 1), PIE_LARGEST_GAIN)}"
    flags = {
        "ecn": settings["ecn"],
        "bytemode": settings["byte_mode"],
        "dq_rate_estimator": settings["delay"] == "rate",
    }
    return " ".join([words, *(flag for flag, is_set in flags.items() if is_set)]), []


def _red(link: Link) -> tuple[str, list[str]]:
    settings, remarks = link.settings, []
    mean = settings["mean_packet_bytes"]
    sizes = {name: _in_bytes(settings, name) for name in ("limit", "min_th", "max_th")}
    probability = settings["max_p"]
    if probability > LARGEST / 2**32:
        probability = LARGEST / 2**32
        remarks.append("tc sends `probability 1` as 0; the line has the largest value that tc keeps")
    words = [
        *("red limit", sizes["limit"], "min", sizes["min_th"], "max", sizes["max_th"], "avpkt", mean),
        *("burst", _burst(settings, sizes), "probability", repr(probability)),
    ]
    if link.rate_bps // 8 <= LARGEST:
        words += ["bandwidth", f"{link.rate_bps}bit"]
    else:
        words += ["bandwidth", f"{8 * LARGEST}bit"]
        remarks.append(f"tc refuses a `bandwidth` above {8 * LARGEST} bit/s; the line has the largest")
    if settings["ecn"]:
        words.append("ecn harddrop" if settings["ecn_region"] == "rfc3168" else "ecn")
    if link.queue == "ared":
        words.append("adaptive")
    return " ".join(map(str, words)), remarks


def _burst(settings: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    """Return a burst for which tc picks the power of two nearest w_q.

    This is the scenario's own burst or the guideline's, if one of these will do.
    """
    mean, low = int(settings["mean_packet_bytes"]), sizes["min_th"]
    wanted = min(31, max(1, round(-log2(settings["w_q"]))))

    def exponent(burst: int) -> int:
        return weight_log(low, burst, mean) or 32  # no power of two admits a burst of this length

    least = max(1, -(-low // mean))
    guideline = max(least, (2 * low + sizes["max_th"]) // (3 * mean))
    own = [int(settings["burst"])] if settings["w_rule"] == "linux" else []
    for burst in (*own, guideline):
        if exponent(burst) == wanted:
            return burst
    first = least + bisect_left(range(least, LARGEST), wanted, key=exponent)
    near = [burst for burst in (first - 1, first) if burst >= least]
    return min(near, key=lambda one: abs(exponent(one) - wanted))


def _in_bytes(settings: Mapping[str, Any], name: str) -> int:
    size = settings.get(f"{name}_bytes")
    return int(size if size is not None else settings[f"{name}_packets"] * settings["mean_packet_bytes"])


_BY_RULE = frozenset({"preset", "w_rule", "burst", "mark_p", "max_packet_bytes", "limit_rule", "max_rtt_ns"})
"""Parameters that need no comparison: they only determine others, which are compared, or belong to variants
that are compared by name."""


def _differences(ours: Mapping[str, Any], kernels: Mapping[str, Any]) -> list[str]:
    """Return a remark on each parameter that has another value in Linux, with the two values."""
    skipped = _BY_RULE | ({"target_ns"} if "min_th_bytes" in kernels else set())
    remarks = []
    for key, value in ours.items():
        if key in skipped or (key == "ecn_region" and not ours["ecn"]):
            continue
        name, _, unit = key.rpartition("_")
        other = kernels.get(key)
        if other is None and unit in ("packets", "bytes"):
            remarks.append(_other_unit(name, value, unit, kernels))
        elif other is not None and other != value and not _is_close(other, value):
            name = name if unit in ("ns", "packets", "bytes") else key
            remarks.append(f"`{name}`: {_text(key, value)} in aqmlab, {_text(key, other)} in Linux")
    return remarks


def _is_close(one: object, other: object) -> bool:
    return isinstance(one, float) and isinstance(other, float) and isclose(one, other, rel_tol=1e-9)


def _other_unit(name: str, value: int, unit: str, kernels: Mapping[str, Any]) -> str:
    other = "bytes" if unit == "packets" else "packets"
    there = kernels[f"{name}_{other}"]
    ours = quantity_text(value, unit)
    return f"`{name}`: {ours} in aqmlab, {quantity_text(there, other)} in Linux, whatever the packet sizes"


def _text(key: str, value: object) -> str:
    unit = key.rpartition("_")[2]
    if unit in ("ns", "packets", "bytes") and isinstance(value, int):
        return quantity_text(value, unit)
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{value:.6g}`" if isinstance(value, float) else f"`{value}`"


_WRITERS: Mapping[str, Callable[[Link], tuple[str, list[str]]]] = {
    "droptail": _droptail,
    "red": _red,
    "ared": _red,
    "codel": _codel,
    "pie": _pie,
    "fq_codel": _fq_codel,
    "dualpi2": _dualpi2,
}
NONE_IN_LINUX = {
    "scred": "Linux has no Self-Configuring RED; its `red adaptive` moves max_p by the rule of 2001",
    "blue": "Linux has no BLUE; its `sfb` runs a BLUE for each group of flows",
    "pi": "Linux has no PI; its `pie` (RFC 8033), which aqmlab has as `pie`, controls the delay",
    "pi2": "Linux has no PI2 in one queue; its `dualpi2` has two",
    "rem": "Linux has no REM",
    "avq": "Linux has no AVQ",
    "fred": "Linux has no FRED",
    "redpd": "Linux has no RED-PD",
    "cobalt": "Linux has no COBALT alone; its `cake` has one in each queue",
    "cake": "Linux has `cake`, but aqmlab does not write its options yet",
    "choke": "Linux has `choke`, but aqmlab does not write its options yet",
    "sfb": "Linux has `sfb`, but aqmlab does not write its options yet",
    "policer": "tc polices in filters (`action police`), not in a queue discipline",
    "classes": "tc divides links with `prio` or `drr` and filters that choose the class, which takes more"
    " than one line",
}
"""The reason why a discipline has no line, by discipline."""

__all__ = ["NONE_IN_LINUX", "TcLine", "tc_lines", "written"]
