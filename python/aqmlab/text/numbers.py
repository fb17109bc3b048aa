"""Numbers for display: one scale per unit, and as many digits as the interval justifies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqmlab import _core

if TYPE_CHECKING:
    from aqmlab.stats import Estimate

_SCALES = {"s": (1e3, "ms"), "bit/s": (1e-6, "Mbit/s")}
NO_VALUE = "–"


def display_unit(unit: str, like: float | None = None) -> str:
    """Return the unit in which values given in ``unit`` are shown.

    ``like`` is the largest of the values shown together, if known; times are in seconds if it is at least one
    second.
    """
    return _scale(unit, like)[1]


def display_value(value: float, unit: str, like: float | None = None) -> float:
    """Convert ``value`` to the unit in which it is shown."""
    return value * _scale(unit, like)[0]


def _scale(unit: str, like: float | None) -> tuple[float, str]:
    if unit == "s" and like is not None and abs(like) >= 1.0:
        return 1.0, "s"
    return _SCALES.get(unit, (1.0, unit))


def fixed(value: float, places: int) -> str:
    """Return ``value`` with this many decimal places; zero has no sign."""
    text = f"{value:.{places}f}"
    return text if float(text) else text.removeprefix("-")


def change_text(share: float) -> str:
    """Return a relative change: ``+1.2 %``, ``−3.4 %``; ``0.0 %`` has no sign."""
    if not math.isfinite(share):
        return NO_VALUE
    text = f"{100 * share:+.1f} %"
    return "0.0 %" if text[1:] == "0.0 %" else text.replace("-", "\u2212")


def number(value: float, digits: int = 4) -> str:
    """Return ``value`` with about ``digits`` significant digits and no exponent."""
    if value == 0 or not math.isfinite(value):
        return fixed(value, 0)
    places = min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), 6)
    return fixed(value, places)


def time_text(seconds: float, digits: int = 6) -> str:
    """Return ``40 s``, ``0.5 s``, ``96 us``: with a limited number of significant digits and no exponent."""
    plain = f"{seconds:.{digits}g}"
    if seconds == 0 or not math.isfinite(seconds) or (abs(seconds) >= 1e-3 and "e" not in plain):
        return f"{plain} s"
    sign = "-" if seconds < 0 else ""
    written = _core.quantity_text(round(abs(float(plain)) * 1e9), "ns")
    unit = written.lstrip("0123456789.")
    return f"{sign}{written.removesuffix(unit)} {unit}"


def shown(value: float | None, places: int = 0, scale: float = 1.0) -> str:
    """Return ``value`` times ``scale`` with this many decimal places, or a dash if it is unknown."""
    return NO_VALUE if value is None else fixed(scale * value, places)


def decimal_places(half: float) -> int:
    """Return the decimal places that an interval of this half-width justifies.

    The Particle Data Group's rule: two digits of the uncertainty if they are below 35, else one.
    """
    if half == 0 or not math.isfinite(half):
        return 0
    exponent = math.floor(math.log10(half))
    digits = 2 if half / 10.0**exponent < 3.55 else 1
    return min(max(digits - 1 - exponent, 0), 9)


def estimate_parts(est: Estimate | None, unit: str, like: float | None = None) -> tuple[str, str]:
    """Mean and half-width as strings: ``("38.72", "0.21")``; the second is empty without an interval.

    ``like`` is as in :func:`display_unit`.
    """
    if est is None:
        return NO_VALUE, ""
    mean = display_value(est.mean, unit, like)
    if est.half_width is None:
        return number(mean), ""
    half = display_value(est.half_width, unit, like)
    if half == 0:
        return number(mean), "0"
    # Two digits of the half-width; more places would be meaningless for the mean.
    places = min(max(1 - math.floor(math.log10(half)), 0), 5)
    return fixed(mean, places), fixed(half, places)


def estimate_text(est: Estimate | None, unit: str) -> str:
    """Return ``38.72 ± 0.21``, or the mean alone where there is no interval."""
    mean, half = estimate_parts(est, unit)
    return f"{mean} ± {half}" if half else mean


def with_unit(label: str, unit: str) -> str:
    """Return ``goodput [Mbit/s]``: the heading of values in ``unit``."""
    of = display_unit(unit)
    return f"{label} [{of}]" if of else label


def counted(count: int, what: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def listed(names: Sequence[str]) -> str:
    """``A``, ``A and B``, ``A, B and C``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def left_out(count: int, thing: str) -> str:
    """Return ``1 file cannot be read and is left out``, or ``3 files cannot be read and are left out``."""
    return f"{counted(count, thing)} cannot be read and {'is' if count == 1 else 'are'} left out"
