"""FQ-CoDel in tc's words, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import codel, linux, numbers
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
    raised,
    rounded,
    size_shown,
    value,
)
from aqmlab.tc.numbers import Kept


def _read(given: Given) -> Reading:
    count = {word: value(given, word) for word in ("limit", "flows", "quantum", "memory_limit", "drop_batch")}
    threshold = value(given, "ce_threshold") if "ce_threshold" in given else None
    own = linux.codel(
        count["limit"] or 10_240,
        *(value(given, word) for word in ("target", "interval")),
        ecn=bool(given.get("ecn", True)),
        ce_threshold_us=threshold,
    )
    kernel = linux.LinuxFqCodel(
        own,
        flows=count["flows"] or 1024,
        quantum=max(linux.LEAST_QUANTUM, count["quantum"] or linux.FULL_FRAME),
        memory_limit=min(2**31, count["memory_limit"] or 2**25),
        batch=count["drop_batch"] or 64,
        only_ect1="ce_threshold_selector" in given,
    )
    remarks = changes(
        given,
        {"limit": "packets", "quantum": "bytes", "memory_limit": "bytes", "target": "us", "interval": "us"},
    )
    remarks += raised(count["quantum"])
    times = {word: value(given, word) * 1000 for word in ("target", "interval") if value(given, word)}
    if threshold is not None:
        times["ce_threshold"] = max(1, threshold * 1000)
    return _reading(given, kernel, times, remarks, kernel.shown)


def _read_shown(given: Given) -> Reading:
    """Reads what tc shows of FQ-CoDel; times are as in CoDel, and sizes as in bfifo."""
    times = {word: codel.shown_units(given, word) for word in codel.TIMES if word in given}
    own = linux.codel(value(given, "limit"), ecn=bool(given.get("ecn")))
    kernel = linux.LinuxFqCodel(
        own,
        flows=value(given, "flows"),
        quantum=value(given, "quantum"),
        memory_limit=value(given, "memory_limit"),
        batch=value(given, "drop_batch") or 64,
        only_ect1="ce_threshold_selector" in given,
    )
    return _reading(given, kernel, times, rounded(given, ("memory_limit",)), "")


def _reading(
    given: Given, kernel: linux.LinuxFqCodel, times: Mapping[str, int], remarks: list[str], shown: str
) -> Reading:
    queue: dict[str, Any] = {"kind": "fq_codel", "preset": "linux"}
    written = {
        "limit": ("limit", quantity_text(kernel.codel.limit, "packets")),
        "flows": ("flows", kernel.flows),
        "quantum": ("quantum", quantity_text(kernel.quantum, "bytes")),
        "memory_limit": ("memory_limit", quantity_text(kernel.memory_limit, "bytes")),
        "drop_batch": ("batch", kernel.batch),
    }
    queue |= dict(written[word] for word in written if word in given and value(given, word))
    queue |= {name: quantity_text(ns, "ns") for name, ns in times.items()}
    if kernel.only_ect1:
        queue["ce_threshold_for"] = "ect1"
    if not kernel.codel.ecn:
        queue["ecn"] = False

    kept = (times.get("target", 5_000_000), times.get("interval", 100_000_000))
    return Reading(checked(queue), shown, [*remarks, *codel.codel_units(*kept)])


def _selector(text: str) -> Kept:
    """The selector of the packets that `ce_threshold` marks; aqmlab has that of ECT(1)."""
    parts = text.split("/")
    if len(parts) != 2 or [int(numbers.count(part).value) for part in parts] != [1, 3]:
        raise UsageError(f"`{text}` is not `1/3`, ECT(1), the only selector that aqmlab has")
    return Kept(text, 1, 1)


def write(link: Link) -> Written:
    """Return the words for an FQ-CoDel."""
    settings = link.settings
    limit = limit_in_packets(settings, link.mean_packet_bytes)
    target, interval = (codel.tc_time(settings[f"{name}_ns"]) for name in ("target", "interval"))
    threshold, remarks = codel.ce_threshold(settings)
    words = (
        f"fq_codel limit {limit} flows {settings['flows']} quantum {settings['quantum_bytes']}"
        f" target {target} interval {interval}{threshold} memory_limit {settings['memory_limit_bytes']}"
        f" drop_batch {settings['batch']} " + ("ecn" if settings["ecn"] else "noecn")
    )
    return words, remarks


VOCABULARY = Vocabulary(
    given=Grammar(
        values={
            **dict.fromkeys(("limit", "flows", "drop_batch"), numbers.count),
            **dict.fromkeys(("quantum", "memory_limit"), numbers.size),
            **codel.TIMES,
            "ce_threshold_selector": _selector,
        },
        flags=ECN,
        refused={},
        queue=_read,
    ),
    shown=Grammar(
        values={
            "limit": packets_shown,
            **dict.fromkeys(("flows", "drop_batch"), numbers.count),
            **dict.fromkeys(("quantum", "memory_limit"), size_shown),
            **codel.TIMES,
            "ce_threshold_selector": _selector,
        },
        flags=ECN,
        refused={},
        queue=_read_shown,
    ),
)
