"""Units of quantities in texts: valid sums and comparisons, and their display.

Values are kept in base units: seconds, bits, packets. A percentage is kept as a share: 5 % is 0.05 and has no
dimension, so it can be compared with a share of seeds. Whether a share was *written* in percent is
recorded: if it was, it is displayed in percent, and a comparison with a bare ``5`` is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from aqmlab.text.numbers import display_unit, display_value, number

Powers = tuple[tuple[str, int], ...]

POINTS = "% points"
"""The unit of differences of percentages: from 5 % to 10 % is 5 points, or 100 % more."""


@dataclass(frozen=True)
class Unit:
    """A dimension as powers of base units; for a share, also whether it is shown in percent.

    Attributes
    ----------
    powers
        Pairs of a base unit and its exponent, which is not zero, in sorted order:
        ``(("bit", 1), ("s", -1))``.
    percent
        Whether the share is shown in percent; always false if there are powers.
    """

    powers: Powers = ()
    percent: bool = False

    @property
    def pure(self) -> bool:
        """Whether this is the unit of a dimensionless number."""
        return not self.powers

    def times(self, other: Unit, sign: int = 1) -> Unit:
        """Return the unit of a product or, with ``sign`` -1, of a quotient."""
        powers = dict(self.powers)
        for base, power in other.powers:
            powers[base] = powers.get(base, 0) + sign * power
        kept = tuple(sorted((base, power) for base, power in powers.items() if power))
        # Half of 5 % is 2.5 %, but 5 % divided by 10 % is a ratio of one half.
        percent = self.percent != other.percent if sign < 0 else self.percent or other.percent
        return Unit(kept, percent and not kept and not (sign < 0 and other.percent))

    def name(self) -> str:
        """Return the unit's name in words, for messages."""
        if not self.powers:
            return "a percentage" if self.percent else "a pure number"
        return _NAMES.get(self.powers) or f"in {_product(self.powers)}"

    def shown(self, *, difference: bool = False, like: float | None = None) -> str:
        """Return the unit in which values, or their differences, are shown; empty for a pure number.

        ``like`` is the largest of the values shown together; it decides between seconds and
        milliseconds.
        """
        return POINTS if difference and self.percent else display_unit(self.written(), self._like(like))

    def value(self, value: float, like: float | None = None) -> float:
        """Return a value in the unit in which it is shown."""
        return display_value(self.written_value(value), self.written(), self._like(like))

    def _like(self, like: float | None) -> float | None:
        return None if like is None else self.written_value(like)

    def written(self) -> str:
        """Return the unit that values have in files, which is the unit of metrics."""
        return "%" if self.percent else _SHOWN.get(self.powers, _product(self.powers))

    def written_value(self, value: float) -> float:
        """Return a value in the unit that it has in files."""
        return 100.0 * value if self.percent else value / _SHOWN_FACTOR.get(self.powers, 1.0)

    def text(self, value: float, *, difference: bool = False, like: float | None = None) -> str:
        """Return a value, or a difference of values, with its unit: ``12.5 ms``."""
        shown = self.shown(difference=difference, like=like)
        return f"{number(self.value(value, like))} {shown}".rstrip()


PURE = Unit()
PERCENT = Unit(percent=True)
TIME = Unit((("s", 1),))
RATE = Unit((("bit", 1), ("s", -1)))
SIZE = Unit((("bit", 1),))
PACKETS = Unit((("packets", 1),))
SEGMENTS = Unit((("segments", 1),))

_NAMES: Mapping[Powers, str] = {
    TIME.powers: "a time",
    RATE.powers: "a rate",
    SIZE.powers: "an amount of data",
    PACKETS.powers: "a number of packets",
    SEGMENTS.powers: "a number of segments",
}
_SHOWN = {TIME.powers: "s", RATE.powers: "bit/s", SIZE.powers: "B"}
_SHOWN_FACTOR = {SIZE.powers: 8.0}

_SIZES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_RATES = {"bit": 1.0, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12}
LITERALS: Mapping[str, tuple[float, Unit]] = {
    **{name: (factor, TIME) for name, factor in (("s", 1.0), ("min", 60.0), ("h", 3600.0))},
    # Divisors, not factors, so that 0.1 ms is the float nearest to 0.0001.
    **{name: (1.0 / by, TIME) for name, by in (("ms", 1e3), ("us", 1e6), ("ns", 1e9))},
    **{name: (factor, RATE) for name, factor in _RATES.items()},
    **{f"{name}/s": (factor, RATE) for name, factor in _RATES.items()},
    **{name.replace("bit", "bps"): (factor, RATE) for name, factor in _RATES.items()},
    **{name: (8.0 * factor, SIZE) for name, factor in _SIZES.items()},
    **dict.fromkeys(("p", "packets"), (1.0, PACKETS)),
    "segments": (1.0, SEGMENTS),
    "%": (0.01, PERCENT),
}
"""Units in scenarios and claims, each with its factor to the base unit and its dimension."""

_BASES: Mapping[str, tuple[float, Unit]] = {
    "": (1.0, PURE),
    "1": (1.0, PURE),
    "%": (0.01, PERCENT),
    "s": (1.0, TIME),
    "bit": (1.0, SIZE),
    "B": (8.0, SIZE),
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%/]*)")


@lru_cache(maxsize=256)
def unit_of_metric(text: str) -> tuple[float, Unit]:
    """Return the factor to base units and the dimension of a metric's unit: ``"bit/s"``, ``"packets"``.

    An unknown word becomes a base unit of its own.
    """
    parts = text.split("/")
    factor, unit = 1.0, PURE
    for i, part in enumerate(parts):
        by, of = _BASES.get(part, (1.0, Unit(((part, 1),))))
        factor = factor / by if i else factor * by
        unit = unit.times(of, -1 if i else 1)
    return factor, unit


def in_base(value: float, factor: float) -> float:
    """Return a value times a factor; divides by the inverse if that is whole, so as to round only once."""
    inverse = 1.0 / factor
    return value / round(inverse) if factor < 1 and abs(inverse - round(inverse)) < 1e-3 else value * factor


def written(text: str) -> tuple[float, str] | None:
    """Return a number and the text that follows it: ``36`` and ``p``; ``None`` if it is not a number."""
    found = _QUANTITY.fullmatch(text.strip())
    return None if found is None else (float(found[1]), found[2])


def quantity(text: str) -> tuple[float, Unit] | None:
    """Return a number with or without a unit: ``36p``, ``-0.1s``, ``5 %``; ``None`` if it is not one."""
    found = written(text)
    if found is None:
        return None
    number, unit = found
    factor, of = LITERALS.get(unit, (1.0, PURE)) if unit else (1.0, PURE)
    value = in_base(number, factor)
    return None if (unit and unit not in LITERALS) or not math.isfinite(value) else (value, of)


def numbers_of(labels: tuple[str, ...]) -> tuple[tuple[float, ...], Unit] | None:
    """Return labels as numbers, with their unit.

    Returns ``None`` if a label is not a number, if units differ, or if all numbers are equal.
    """
    known = [each for each in map(quantity, labels) if each is not None]
    units = {each[1] for each in known}
    if len(known) < len(labels) or len(units) != 1 or len({each[0] for each in known}) < 2:
        return None
    return tuple(each[0] for each in known), units.pop()


class SiNumbers(NamedTuple):
    """Labels as numbers in SI units.

    Attributes
    ----------
    unit
        ``"bps"``, ``"s"``, ``"bytes"``, ``"packets"``, ...; ``"value"`` for numbers without a unit.
    values
        The number that each label denotes.
    """

    unit: str
    values: Mapping[str, float]


_IN_COLUMNS = {PURE: ("value", 1.0), PERCENT: ("share", 1.0), RATE: ("bps", 1.0), SIZE: ("bytes", 8.0)}
"""For units whose name is not a word: the name in a column, and how many base units make one of that name."""


def si_numbers(labels: Iterable[str]) -> SiNumbers | None:
    """Return labels as numbers; ``None`` unless all are numbers of the same dimension."""
    found = {label: quantity(label) for label in labels}
    units = {each[1] for each in found.values() if each is not None}
    if len(units) != 1 or None in found.values():
        return None
    unit = units.pop()
    name, size = _IN_COLUMNS.get(unit, (_SHOWN.get(unit.powers, _product(unit.powers)), 1.0))
    return SiNumbers(name, {label: each[0] / size for label, each in found.items() if each is not None})


def _product(powers: Powers) -> str:
    """``bit s``, ``packets/s``."""
    over = " ".join(_power(base, power) for base, power in powers if power > 0)
    under = "".join(f"/{_power(base, -power)}" for base, power in powers if power < 0)
    return f"{over or '1'}{under}" if powers else ""


def _power(base: str, power: int) -> str:
    return base if power == 1 else f"{base}^{power}"
