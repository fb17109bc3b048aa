"""PIE in tc's words, both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers
from aqmlab.tc.grammar import (
    ECN,
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
    value,
)
from aqmlab.tc.linux import PIE_GAINS_PER_HZ, PIE_LARGEST_GAIN, PIE_UNIT_NS
from aqmlab.tc.numbers import Kept

UNITS = {"limit": "packets", "target": "us", "alpha": "", "beta": ""}
"""The units of words of PIE that tc can change."""
FLAGS = ("ecn", "bytemode", "dq_rate_estimator")
"""PIE's flags in the order in which tc shows them."""


def _read(given: Given) -> Reading:
    words = ("limit", "target", "tupdate", "alpha", "beta")
    try:
        kernel = linux.pie({word: value(given, word) for word in words}, flags_of(given))
    except UsageError as error:
        raise UsageError(f"pie: {error}") from None
    queue: dict[str, Any] = {"kind": "pie", "preset": "linux"}
    if value(given, "limit"):
        queue["limit"] = quantity_text(kernel.limit, "packets")
    queue |= controller(given, kernel, value(given, "target") * 1000)

    remarks = [*changes(given, UNITS), pie_period(kernel), HEADERS]
    return Reading(checked(queue), kernel.shown, remarks)


def controller(given: Given, kernel: linux.LinuxPie, target_ns: int) -> dict[str, Any]:
    """Return the parameters of the controller that the words set, and those of its flags."""
    queue: dict[str, Any] = {}
    if target_ns:
        queue["target"] = quantity_text(target_ns, "ns")
    if value(given, "tupdate"):
        queue["t_update"] = f"{kernel.period_ms}ms"
    for word in ("alpha", "beta"):
        if value(given, word):
            queue[word] = value(given, word) / PIE_GAINS_PER_HZ
    if "bytemode" in kernel.flags:
        queue["byte_mode"] = True
    if "dq_rate_estimator" in kernel.flags:
        queue["delay"] = "rate"
    if "ecn" in kernel.flags:
        queue["ecn"] = True
    return queue


def flags_of(given: Given) -> tuple[str, ...]:
    """Return PIE's flags that are set."""
    return tuple(word for word in FLAGS if given.get(word))


def pie_period(kernel: linux.LinuxPie) -> str:
    """Return a remark with the time between the updates of Linux's PIE."""
    return (
        f"Linux's timer runs one tick longer than `tupdate`: `t_update` is {kernel.period_ms}ms with 1000"
        " ticks per second (CONFIG_HZ)"
    )


def write(link: Link) -> Written:
    """Return the words for a PIE."""
    settings = link.settings
    limit = limit_in_packets(settings, settings["mean_packet_bytes"])
    return f"pie limit {limit} {control_words(settings)}", []


def control_words(settings: Mapping[str, Any]) -> str:
    """Return the words for the controller, and the flags."""
    target = max(1, -(-(settings["target_ns"] // PIE_UNIT_NS) * PIE_UNIT_NS // 1000))
    # The kernel's timer runs one tick of a millisecond longer.
    tupdate = max(1, round(settings["t_update_ns"] / 1e6) - 1)
    words = f"target {target}us tupdate {tupdate}ms"
    for name in ("alpha", "beta"):
        gain = round(PIE_GAINS_PER_HZ * settings[name])
        words += f" {name} {min(max(gain, 1), PIE_LARGEST_GAIN)}"
    flags = {
        "ecn": settings["ecn"],
        "bytemode": settings["byte_mode"],
        "dq_rate_estimator": settings["delay"] == "rate",
    }
    return " ".join([words, *(flag for flag, is_set in flags.items() if is_set)])


NUMBERS: Mapping[str, Callable[[str], Kept]] = dict.fromkeys(
    ("target", "tupdate"), numbers.time_us
) | dict.fromkeys(("alpha", "beta"), numbers.count)
"""The words of the controller with a value."""


def _target_shown(text: str) -> Kept:
    """Read a target as tc shows it: that of the kernel's whole units, rounded down to microseconds."""
    us = numbers.time_us(text).value
    if text.endswith("us") and us * 1000 % PIE_UNIT_NS:
        us += 1
    us = max(1.0, us)
    return Kept(text, us, us)


SHOWN_NUMBERS = {**NUMBERS, "target": _target_shown}
"""The same as tc shows them."""
SWITCHES: Mapping[str, tuple[str, Any]] = {
    **ECN,
    "bytemode": ("bytemode", True),
    "nobytemode": ("bytemode", False),
    "dq_rate_estimator": ("dq_rate_estimator", True),
    "no_dq_rate_estimator": ("dq_rate_estimator", False),
}
"""The words that switch PIE's flags."""
VOCABULARY = Vocabulary(
    given=Grammar({"limit": numbers.count, **NUMBERS}, SWITCHES, {}, _read),
    shown=Grammar({"limit": packets_shown, **SHOWN_NUMBERS}, SWITCHES, {}, _read),
)
