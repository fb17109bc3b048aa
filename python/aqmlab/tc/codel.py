"""CoDel in tc's words, both ways, and its words in other disciplines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers
from aqmlab.tc.grammar import (
    ECN,
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    checked,
    limit_in_packets,
    packets_shown,
    time_words,
    value,
)
from aqmlab.tc.linux import CODEL_UNIT_NS

TIMES = dict.fromkeys(("target", "interval", "ce_threshold"), numbers.time_us)


def _read(given: Given) -> Reading:
    kernel = linux.codel(
        *(value(given, word) for word in ("limit", "target", "interval")),
        ecn=bool(given.get("ecn")),
        ce_threshold_us=value(given, "ce_threshold") if "ce_threshold" in given else None,
    )
    queue: dict[str, Any] = {"kind": "codel", "preset": "linux"}
    if value(given, "limit"):
        queue["limit"] = quantity_text(value(given, "limit"), "packets")
    times = {word: value(given, word) * 1000 for word in ("target", "interval") if value(given, word)}
    if "ce_threshold" in given:
        queue["ce_threshold"] = quantity_text(max(1, value(given, "ce_threshold") * 1000), "ns")
    remarks = changes(given, {"limit": "packets", "target": "us", "interval": "us"})
    return _reading(queue, times, kernel.ecn, remarks, kernel.shown)


def shown_units(given: Given, word: str) -> int:
    """Return a time of CoDel, in nanoseconds, from what tc shows of it."""
    us = value(given, word)
    units = -(-us * 1000 // linux.CODEL_UNIT_NS) if given[word].text.endswith("us") else 0
    return units * linux.CODEL_UNIT_NS or max(1, us) * 1000


def _read_shown(given: Given) -> Reading:
    """Reads what tc shows of CoDel; times are in whole microseconds, rounded down, or have three digits."""
    queue: dict[str, Any] = {
        "kind": "codel",
        "preset": "linux",
        "limit": quantity_text(value(given, "limit"), "packets"),
    }
    times = {
        word: shown_units(given, word) for word in ("target", "interval", "ce_threshold") if word in given
    }
    return _reading(queue, times, bool(given.get("ecn")), [], "")


def _reading(
    queue: dict[str, Any], times: Mapping[str, int], ecn: bool, remarks: list[str], shown: str
) -> Reading:
    queue |= {name: quantity_text(ns, "ns") for name, ns in times.items()}
    if ecn:
        queue["ecn"] = True

    kept = (times.get("target", 5_000_000), times.get("interval", 100_000_000))
    return Reading(checked(queue), shown, [*remarks, *codel_units(*kept)])


def codel_units(*times_ns: int) -> list[str]:
    """Return a remark with CoDel's times as Linux rounds them; none if Linux keeps them."""
    kept = [ns // linux.CODEL_UNIT_NS * linux.CODEL_UNIT_NS for ns in times_ns]
    if kept == list(times_ns):
        return []
    written = " and ".join(quantity_text(ns, "ns") for ns in kept)
    unit = f"{linux.CODEL_UNIT_NS} ns"
    return [f"Linux keeps CoDel's times in units of {unit}: `target` and `interval` are {written}"]


def write(link: Link) -> Written:
    """Return the words for a CoDel."""
    settings = link.settings
    limit = limit_in_packets(settings, link.mean_packet_bytes)
    target, interval = (tc_time(settings[f"{name}_ns"]) for name in ("target", "interval"))
    words = f"codel limit {limit} target {target} interval {interval}"
    threshold, remarks = ce_threshold(settings)
    if "selector" in threshold:
        threshold = ""
        remarks.append("`ce_threshold`: Linux's `codel` marks packets of every code point; the line has none")
    return words + threshold + (" ecn" if settings["ecn"] else ""), remarks


def ce_threshold(settings: Mapping[str, Any]) -> Written:
    """The words for `ce_threshold`, and a place for remarks on them."""
    ns = settings.get("ce_threshold_ns")
    if ns is None:
        return "", []
    words = f" ce_threshold {tc_time(ns)}"
    return words + " ce_threshold_selector 1/3" * (settings["ce_threshold_for"] == "ect1"), []


def tc_time(ns: int) -> str:
    """The shortest time that the kernel rounds down to as many of its units; 0 would be a default."""
    us = max(1, -(-(ns // CODEL_UNIT_NS) * CODEL_UNIT_NS // 1000))
    return time_words(us)


VOCABULARY = Vocabulary(
    given=Grammar({"limit": numbers.count, **TIMES}, ECN, {}, _read),
    shown=Grammar({"limit": packets_shown, **TIMES}, ECN, {}, _read_shown),
)
