"""Numbers as tc reads them (tc(8)): prefixes are powers of 1024 in sizes, and of 1000 in rates."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aqmlab.errors import UsageError

LARGEST = 2**32 - 1
"""tc keeps sizes in bytes, times in microseconds and counts in 32 bits."""

_FLOAT = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_COUNT = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)

_SIZES = {"": 1.0, "b": 1.0} | {
    prefix + unit: 1024.0**power / share
    for power, prefix in enumerate("kmg", start=1)
    for unit, share in (("", 1), ("b", 1), ("bit", 8))
}
_RATES = {"": 1} | {
    prefix + unit: factor * base**power
    for unit, factor in (("bit", 1), ("bps", 8))
    for power, letter in enumerate(("", "k", "m", "g", "t"))
    for prefix, base in (((letter, 1000), (f"{letter}i", 1024)) if letter else (("", 1),))
}
_TIMES = (
    dict.fromkeys(("", "us", "usec", "usecs"), 1)
    | dict.fromkeys(("ms", "msec", "msecs"), 1000)
    | dict.fromkeys(("s", "sec", "secs"), 1_000_000)
)


def size(text: str) -> int:
    """Bytes: ``400000``, ``400kb``, ``3mbit``."""
    return _whole(text, _SIZES, "a size", "`400000`, `400kb`")


def rate(text: str) -> int:
    """Bits per second: ``10mbit``, ``1gbit``."""
    return int(_number(text, _RATES, "a rate", "`10mbit`"))


def time_us(text: str) -> int:
    """Microseconds: ``5ms``, ``100ms``; a bare number is microseconds."""
    return _whole(text, _TIMES, "a time", "`5ms`, `500us`, `1s`")


def count(text: str) -> int:
    """A whole number without a unit, also in hexadecimal or octal."""
    if not _COUNT.fullmatch(text):
        raise UsageError(f"`{text}` is not a whole number; tc expects one without a unit, such as `100`")
    octal = text.startswith("0") and text.strip("0")[:1] not in ("x", "X", "")
    try:
        value = int(text, 8 if octal else 0)
    except ValueError:
        raise UsageError(f"`{text}` is not a whole number; after a leading 0, tc expects octal") from None
    return _kept(value, text)


def chance(text: str) -> float:
    """A probability above 0 and at most 1."""
    value = float(text) if _FLOAT.fullmatch(text) else 0.0
    if not 0.0 < value <= 1.0:
        raise UsageError(f"`{text}` is not a probability; write one above 0 and at most 1: `0.02`")
    return value


def _whole(text: str, units: Mapping[str, float], what: str, example: str) -> int:
    return _kept(int(_number(text, units, what, example)), text)


def _kept(value: int, text: str) -> int:
    if value > LARGEST:
        raise UsageError(f"`{text}` is beyond the 32 bits that tc keeps; write at most `{LARGEST}`")
    return value


def _number(text: str, units: Mapping[str, float], what: str, example: str) -> float:
    number = _FLOAT.match(text)
    unit = units.get(text[number.end() :].lower()) if number else None
    if number is None or unit is None:
        raise UsageError(f"`{text}` is not {what}; write one as tc does: {example}")
    return float(number[0]) * unit


__all__ = ["LARGEST", "chance", "count", "rate", "size", "time_us"]
