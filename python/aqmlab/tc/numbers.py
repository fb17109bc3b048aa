"""Numbers as tc reads them (tc(8)): prefixes are powers of 1024 in sizes, and of 1000 in rates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, isfinite, isnan, nan

from aqmlab.errors import UsageError

LARGEST = 2**32 - 1
"""tc keeps sizes in bytes, rates in bytes per second, times in microseconds and counts in 32 bits."""

# strtod(3) and strtoul(3), which tc calls.
_FLOAT = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<hex>0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?)"
    r"|(?P<decimal>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(?P<word>infinity|inf|nan(?:\(\w*\))?))",
    re.IGNORECASE | re.ASCII,
)
_COUNT = re.compile(r"([+-]?)(0x[0-9a-f]+|\d+)", re.IGNORECASE | re.ASCII)

_SIZES = {"": 1.0, "b": 1.0} | {
    prefix + unit: 1024.0**power / share
    for power, prefix in enumerate("kmg", start=1)
    for unit, share in (("", 1), ("b", 1), ("bit", 8))
}
_RATES = {"": 1.0} | {
    prefix + unit: float(factor * base**power)
    for unit, factor in (("bit", 1), ("bps", 8))
    for power, letter in enumerate(("", "k", "m", "g", "t"))
    for prefix, base in (((letter, 1000), (f"{letter}i", 1024)) if letter else (("", 1),))
}
_TIMES = (
    dict.fromkeys(("", "us", "usec", "usecs"), 1.0)
    | dict.fromkeys(("ms", "msec", "msecs"), 1e3)
    | dict.fromkeys(("s", "sec", "secs"), 1e6)
)


@dataclass(frozen=True)
class Kept:
    """A number, and what tc makes of it.

    Attributes
    ----------
    text
        The word.
    written
        The number that the word stands for, in the unit in which tc keeps it.
    value
        The number that tc keeps.
    """

    text: str
    written: float
    value: float

    @property
    def changed(self) -> bool:
        """Whether tc keeps another number."""
        return self.value != self.written


def size(text: str) -> Kept:
    """Bytes: ``400000``, ``400kb``, ``3mbit``."""
    return _whole(text, _number(text, _SIZES, "a size", "`400000`, `400kb`"))


def rate(text: str) -> Kept:
    """Bytes per second: ``10mbit``, ``1gbit``; a number without a unit is in bits per second."""
    bits = _number(text, _RATES, "a rate", "`10mbit`")
    return _whole(text, bits / 8.0, "34359738367bit")


def rate64(text: str) -> Kept:
    """Bytes per second in 64 bits; tc takes what is beyond them as 0."""
    rate = _number(text, _RATES, "a rate", "`10mbit`") / 8.0
    if rate <= -1.0:
        raise UsageError(f"`{text}` is negative; tc would take it as a rate of almost 2^67 bit/s")
    return Kept(text, rate, int(rate) if isfinite(rate) and rate < 2**64 else 0)


def time_us(text: str) -> Kept:
    """Microseconds: ``5ms``, ``100ms``; a number without a unit is in microseconds.

    tc drops the bits beyond the 32nd.
    """
    us = _number(text, _TIMES, "a time", "`5ms`, `500us`, `1s`")
    return Kept(text, us, unsigned(us))


def count(text: str) -> Kept:
    """A whole number without a unit, also in hexadecimal or octal."""
    found = _COUNT.fullmatch(text)
    if found is None:
        raise UsageError(f"`{text}` is not a whole number; tc expects one without a unit, such as `100`")
    digits = found[2]
    octal = digits.startswith("0") and not digits.lower().startswith("0x")
    try:
        value = int(digits, 8 if octal else 0)
    except ValueError:
        raise UsageError(f"`{text}` is not a whole number; after a leading 0, tc expects octal") from None
    if found[1] == "-" and value < 2**64:
        value = -value % 2**64  # as strtoul(3) does
    if value > LARGEST:
        raise UsageError(_beyond(text, str(LARGEST)))
    return Kept(text, value, value)


def chance(text: str) -> Kept:
    """A probability; tc ignores what follows the number."""
    value, _ = _float(text)
    if value is None:
        raise UsageError(f"`{text}` is not a probability; write one above 0 and at most 1: `0.02`")
    return Kept(text, value, value)


def share(text: str) -> Kept:
    """A number from 0 to 1; tc ignores what follows the number, but for a percent sign."""
    value, rest = _float(text)
    if value is None or value < 0.0 or value > 1.0 or rest.startswith("%"):
        raise UsageError(f"`{text}` is not a number from 0 to 1, such as `0.001`")
    return Kept(text, value, 0.0 if isnan(value) else value)


def unsigned(x: float) -> int:
    """What a C program on a 64-bit machine makes of a number that it stores in 32 bits."""
    return int(x) % 2**32 if isfinite(x) and abs(x) < 2**63 else 0


def _whole(text: str, value: float, largest: str = "") -> Kept:
    if not isfinite(value) or floor(value) > LARGEST:
        raise UsageError(_beyond(text, largest or str(LARGEST)))
    if value < 0:
        raise UsageError(f"`{text}` is negative; tc expects a number of at least 0")
    return Kept(text, value, int(value))


def _beyond(text: str, largest: str) -> str:
    return f"`{text}` is beyond the 32 bits that tc keeps; write at most `{largest}`"


def _number(text: str, units: Mapping[str, float], what: str, example: str) -> float:
    number, rest = _float(text)
    unit = units.get(rest.lower())
    if number is None or unit is None:
        raise UsageError(f"`{text}` is not {what}; write one as tc does: {example}")
    return number * unit


def _float(text: str) -> tuple[float | None, str]:
    """Return the number at the beginning of the text, or ``None``, and the rest of the text."""
    found = _FLOAT.match(text)
    if found is None:
        return None, text
    if found["hex"]:
        value = float.fromhex(found["hex"])
    elif found["decimal"]:
        value = float(found["decimal"])
    else:
        value = nan if found["word"].lower().startswith("nan") else float("inf")
    return (-value if found["sign"] == "-" else value), text[found.end() :]
