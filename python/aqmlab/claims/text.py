"""What was compared and found, in words."""

from __future__ import annotations

import math
import re

from aqmlab.claims.parts import Part, Side
from aqmlab.claims.units import PURE, Unit
from aqmlab.figures import number
from aqmlab.stats import Interval

MOST_SHOWN = 4
"""Comparisons of a claim that are shown at once, of many."""


def sentence(part: Part) -> str:
    """``A = 3.2 ± 0.1 Mbit/s, B = 4.0 ± 0.2 Mbit/s, difference −0.8 Mbit/s (−1.0 to −0.6), n = 20 pairs``."""
    sides = [side for side in (part.left, part.right) if side is not None]
    said = [f"{side.text} = {side_text(side, part.unit)}" for side in sides if not side.constant]
    if part.effect != "value":
        said.append(f"{part.effect} {effect_text(part)}")
    n = part.found.n
    said.append(f"n = {n} {'pair' if part.effect != 'value' else 'seed'}{'s' * (n != 1)}")
    return ", ".join(said)


def where_text(part: Part) -> str:
    """``buffer 4p, count 20``; empty where nothing is fixed from outside."""
    return ", ".join(f"{axis} {label}" for axis, label in part.at)


def placed_sentence(part: Part) -> str:
    """The sentence after its place: ``buffer 4p, arm RED: A = ...``."""
    where = where_text(part)
    return f"{where}: {sentence(part)}" if where else sentence(part)


def effect_text(part: Part) -> str:
    """What the verdict is about, with its ends: the difference of the sides, or their ratio."""
    if part.effect == "ratio":
        return interval_text(part.found, PURE)
    return interval_text(part.found, part.unit, difference=True)


def interval_text(found: Interval, unit: Unit, *, difference: bool = False) -> str:
    """An estimate with its ends: ``−0.8 Mbit/s (−1.0 to −0.6)``."""
    if found.estimate is None:
        return "–"
    if found.low is None or found.high is None:
        return _signed(unit.text(found.estimate, difference=difference))
    places = _places(unit, found)
    shown = unit.shown(difference=difference)
    middle, low, high = (f"{unit.value(v):.{places}f}" for v in (found.estimate, found.low, found.high))
    return _signed(f"{middle}{' ' if shown else ''}{shown} ({low} to {high})")


def side_text(side: Side, unit: Unit) -> str:
    """The figure of one side: ``3.2 ± 0.1 Mbit/s``."""
    found, difference = side.estimate, side.difference
    if found.estimate is None or found.low is None or found.high is None:
        return interval_text(found, unit, difference=difference)
    if "t" not in found.method.split():
        return interval_text(found, unit, difference=difference)
    places = _places(unit, found)
    half = (unit.value(found.high) - unit.value(found.low)) / 2
    shown = unit.shown(difference=difference)
    return _signed(f"{unit.value(found.estimate):.{places}f} ± {half:.{places}f} {shown}".rstrip())


def _places(unit: Unit, found: Interval) -> int:
    """Decimal places: two digits of half the interval's width."""
    assert found.estimate is not None
    assert found.low is not None
    assert found.high is not None
    half = (unit.value(found.high) - unit.value(found.low)) / 2
    if not half > 0:
        text = number(unit.value(found.estimate))
        return len(text.partition(".")[2])
    return min(max(1 - math.floor(math.log10(half)), 0), 9)


def _signed(text: str) -> str:
    """With minus signs in place of hyphens before digits."""
    return re.sub(r"(?<![\w.])-(?=[\d.])", "−", text)
