"""Comparisons and their results in words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

from aqmlab.claims.comparisons import ClaimComparison, Operand, where_text
from aqmlab.stats import Interval
from aqmlab.text.numbers import counted, number
from aqmlab.text.units import PURE, Unit

T = TypeVar("T")
MOST_SHOWN = 4
"""Largest number of comparisons of a claim that are shown."""


def sentence(part: ClaimComparison, named: Callable[[Operand], str] = attrgetter("text")) -> str:
    """``A = 3.2 ± 0.1 Mbit/s, B = 4.0 ± 0.2 Mbit/s, difference −0.8 Mbit/s (−1.0 to −0.6), n = 20 pairs``.

    ``named`` returns the name of a side; by default, this is its expression as it is written.
    """
    said = [f"{named(side)} = {side_text(side, part)}".removeprefix(" = ") for side in part.measured]
    effect = [] if part.effect == "value" else [f"{part.effect} {effect_text(part)}"]
    count = counted(part.found.n, "seed" if part.effect == "value" else "pair")
    return ", ".join([*said, *effect, f"n = {count}"])


def placed_sentence(part: ClaimComparison) -> str:
    """The sentence preceded by its bindings: ``buffer 4p, arm RED: A = ...``."""
    return ": ".join(filter(None, [where_text(part.at), sentence(part)]))


def first_of(parts: Sequence[T], text: Callable[[T], str]) -> list[str]:
    """Return the texts of the first parts, and the number of further ones: ``and 3 more``."""
    more = len(parts) - MOST_SHOWN
    return [*map(text, parts[:MOST_SHOWN]), *([f"and {more} more"] if more > 0 else [])]


def effect_text(part: ClaimComparison) -> str:
    """Return the quantity that is judged, the difference or ratio of the sides, with its interval."""
    if part.effect == "ratio":
        return _interval_text(part.found, _Shown(PURE))
    return _interval_text(part.found, _shown(part, difference=True))


def side_text(side: Operand, part: ClaimComparison) -> str:
    """The figure of one side of a comparison: ``3.2 ± 0.1 Mbit/s``."""
    found, shown = side.estimate, _shown(part, difference=side.difference)
    whole = found.estimate is not None and found.low is not None and found.high is not None
    if not whole or "t" not in found.method.split():
        return _interval_text(found, shown)
    assert found.estimate is not None
    places, half = _places(found, shown), _half(found, shown)
    return _signed(f"{shown.value(found.estimate):.{places}f} ± {half:.{places}f} {shown.unit}".rstrip())


class _Shown(NamedTuple):
    """How the figures of a comparison are shown: all in one unit."""

    of: Unit
    difference: bool = False
    like: float | None = None

    @property
    def unit(self) -> str:
        return self.of.shown(difference=self.difference, like=self.like)

    def value(self, value: float) -> float:
        return self.of.value(value, self.like)

    def text(self, value: float) -> str:
        return self.of.text(value, difference=self.difference, like=self.like)


def _shown(part: ClaimComparison, *, difference: bool) -> _Shown:
    found = [side.estimate.estimate for side in part.measured]
    known = [abs(value) for value in found if value is not None]
    return _Shown(part.unit, difference, max(known, default=None))


def _interval_text(found: Interval, shown: _Shown) -> str:
    """An estimate with the endpoints of its interval: ``−0.8 Mbit/s (−1.0 to −0.6)``."""
    if found.estimate is None:
        return "–"
    if found.low is None or found.high is None:
        return _signed(shown.text(found.estimate))
    places = _places(found, shown)
    middle, low, high = (f"{shown.value(v):.{places}f}" for v in (found.estimate, found.low, found.high))
    return _signed(f"{middle}{' ' if shown.unit else ''}{shown.unit} ({low} to {high})")


def _places(found: Interval, shown: _Shown) -> int:
    """The number of decimal places that shows two digits of the interval's half-width."""
    assert found.estimate is not None
    half = _half(found, shown)
    if not half > 0:
        text = number(shown.value(found.estimate))
        return len(text.partition(".")[2])
    return min(max(1 - math.floor(math.log10(half)), 0), 9)


def _half(found: Interval, shown: _Shown) -> float:
    assert found.low is not None
    assert found.high is not None
    return (shown.value(found.high) - shown.value(found.low)) / 2


def _signed(text: str) -> str:
    """Replace hyphens before digits by minus signs."""
    return re.sub(r"(?<![\w.])-(?=[\d.])", "−", text)
