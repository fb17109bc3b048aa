"""From the queues of a scenario to tc commands, with the values that Linux rounds or cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, log2
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.plan import Link, Plan, quantity_text
from aqmlab.scenario import Scenario, resolve
from aqmlab.tc.effective import effective
from aqmlab.tc.spec import HEADERS, IDLE, codel_units, read_tc

LONGEST_BURST = 1_000_000
"""The largest ``burst`` that RED accepts in aqmlab."""
_AS_ONE = 1.0 - 2.0**-20


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
        The words after ``tc qdisc add dev DEV root``; ``None`` if Linux has no such discipline.
    remarks
        Differences in Linux.
    """

    arms: tuple[str, ...]
    link: str
    rate_bps: int
    kind: str
    spec: str | None
    remarks: tuple[str, ...]

    @property
    def rate(self) -> str:
        """The link's rate in the notation of scenarios."""
        return quantity_text(self.rate_bps, "bps")


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
            spec, remarks = _line(link)
            key = (link.name, link.rate_bps, link.queue, spec, tuple(remarks))
            found.setdefault(key, []).append(arm["name"])
    return [TcLine(tuple(arms), *key) for key, arms in found.items()]


def _line(link: Link) -> tuple[str | None, list[str]]:
    if link.queue not in _WRITERS:
        return None, [NONE_IN_LINUX[link.queue]]
    spec, remarks = _WRITERS[link.queue](link)
    try:
        kernels = effective(read_tc(spec).queue, link.rate_bps)
    except UsageError as error:
        return None, [f"tc cannot express these values: {error}"]
    return spec, [*_differences(link.settings, kernels), *remarks]


def _droptail(link: Link) -> tuple[str, list[str]]:
    settings, remarks = link.settings, []
    less = 1 if settings["limit_rule"] == "below" else 0
    if settings["limit_rule"] == "reached":
        remarks.append("`limit_rule`: in aqmlab, the last packet may exceed the limit; bfifo refuses it")
    if (packets := settings.get("limit_packets")) is not None:
        return f"pfifo limit {packets - less}", []
    return f"bfifo limit {settings['limit_bytes'] - less}", [*remarks, HEADERS]


def _codel(link: Link) -> tuple[str, list[str]]:
    settings = link.settings
    limit = settings.get("limit_packets") or max(1, settings["limit_bytes"] // link.mean_packet_bytes)
    # tc truncates times to whole microseconds.
    target, interval = (settings[f"{name}_ns"] // 1000 * 1000 for name in ("target", "interval"))
    words = f"codel limit {limit} target {_tc_time(target)} interval {_tc_time(interval)}"
    return words + (" ecn" if settings["ecn"] else ""), codel_units(target, interval)


def _tc_time(ns: int) -> str:
    return f"{ns // 1_000_000}ms" if ns % 1_000_000 == 0 else f"{ns // 1000}us"


def _red(link: Link) -> tuple[str, list[str]]:
    settings, remarks = link.settings, []
    mean = settings["mean_packet_bytes"]
    sizes = {name: _in_bytes(settings, name) for name in ("limit", "min_th", "max_th")}
    probability = settings["max_p"]
    if probability > _AS_ONE:
        probability = _AS_ONE
        remarks.append("tc reads `probability 1` as 0; the line has the largest value that tc keeps")
    words = [
        *("red limit", sizes["limit"], "min", sizes["min_th"], "max", sizes["max_th"], "avpkt", mean),
        *("burst", _burst(link, sizes), "probability", repr(probability), "bandwidth", f"{link.rate_bps}bit"),
    ]
    if settings["ecn"]:
        words.append("ecn harddrop" if settings["ecn_region"] == "rfc3168" else "ecn")
    if link.queue == "ared":
        words.append("adaptive")
    return " ".join(map(str, words)), [*remarks, *_slope(sizes, probability), IDLE, HEADERS]


def _slope(sizes: Mapping[str, int], probability: float) -> list[str]:
    """Return a remark if Linux, which keeps RED's slope in units of 2^-32 per byte, changes it."""
    steps = probability * 2.0**32 / max(1, sizes["max_th"] - sizes["min_th"])
    kept = max(1, int(steps)) / steps
    if abs(kept - 1.0) < 1e-3:
        return []
    return [
        "Linux rounds the probability's rise per byte to units of 2^-32, which gives"
        f" {100 * kept:.1f} % of it"
    ]


def _burst(link: Link, sizes: Mapping[str, int]) -> int:
    """Return a burst for which tc picks the power of two nearest w_q.

    This is the scenario's own burst or the guideline's, if one of these will do.
    """
    settings = link.settings
    mean = int(settings["mean_packet_bytes"])
    wanted = min(31, max(1, round(-log2(settings["w_q"]))))

    def exponent(burst: int) -> float:
        queue: dict[str, Any] = {"kind": "red", "preset": "linux", "mean_packet": f"{mean}B", "burst": burst}
        queue |= {name: f"{size}B" for name, size in sizes.items()}
        try:
            return -log2(effective(queue, link.rate_bps)["w_q"])
        except UsageError:
            return 32.0  # no power of two admits a burst of this length

    least = max(1, -(-sizes["min_th"] // mean))
    guideline = max(least, (2 * sizes["min_th"] + sizes["max_th"]) // (3 * mean))
    own = [int(settings["burst"])] if settings["w_rule"] == "linux" else []
    for burst in (*own, guideline):
        if exponent(burst) == wanted:
            return burst
    low, high = int(least), LONGEST_BURST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if exponent(middle) >= wanted else (middle + 1, high)
    near = [burst for burst in (low - 1, low) if burst >= least]
    return min(near, key=lambda one: abs(exponent(one) - wanted))


def _in_bytes(settings: Mapping[str, Any], name: str) -> int:
    size = settings.get(f"{name}_bytes")
    return int(size if size is not None else settings[f"{name}_packets"] * settings["mean_packet_bytes"])


_BY_RULE = frozenset({"preset", "w_rule", "burst", "mark_p", "max_packet_bytes", "limit_rule"})
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
}
NONE_IN_LINUX = {
    "scred": "Linux has no Self-Configuring RED; its `red adaptive` moves max_p by the rule of 2001",
    "blue": "Linux has no BLUE; its `sfb` runs a BLUE for each group of flows",
    "pi": "Linux has no PI; its `pie` controls the delay with gains of its own (RFC 8033)",
    "rem": "Linux has no REM",
    "fred": "Linux has no FRED",
    "redpd": "Linux has no RED-PD",
    "policer": "tc polices in filters (`action police`), not in a queue discipline",
    "classes": "tc divides links with `prio` or `drr` and filters that choose the class, which takes more"
    " than one line",
}
"""The reason why a discipline has no line, by discipline."""

__all__ = ["NONE_IN_LINUX", "TcLine", "tc_lines"]
