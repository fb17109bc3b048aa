"""A paired difference as one plain sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.stats.differences import Difference
from aqmlab.stats.intervals import Estimate, Interval
from aqmlab.text.numbers import decimal_places, display_unit, display_value

if TYPE_CHECKING:
    from aqmlab.metrics import Metric


def sentence(found: Difference, arm: str, other: str, metric: Metric) -> str:
    """Return, for example, ``PI lowers p99 queueing delay by 41 ms (95 % CI 36 to 46, n = 10 pairs)``.

    Parameters
    ----------
    found
        The difference ``arm - other``.
    arm, other
        Names of the two arms.
    metric
        The metric compared.
    """
    what, estimate = spoken(metric.label), found.estimate
    if estimate is None:
        nothing = f"no seed has {what} both" if found.unpaired is None else f"there is no {what}"
        return f"{nothing} with {arm} and with {other}"
    if estimate.half_width is None:
        alone = "one pair" if found.unpaired is None else found.counted
        return f"{_contrast(estimate, arm, other, metric)} ({alone}: no interval)"
    if estimate.half_width == 0:
        in_each = f"in each of {found.counted}"
        if estimate.mean == 0:
            return f"{arm} and {other} have the same {what} {in_each}"
        return f"{_change(estimate, arm, metric)}, the same {in_each}"
    interval = _interval(estimate, metric, found.counted)
    if not found.seen:
        return f"no difference seen in {_contrast(estimate, arm, other, metric)} ({interval})"
    return f"{_change(estimate, arm, metric)} ({interval})"


def relative_sentence(found: Difference, other: str) -> str:
    """Return, for example, ``that is 38 % less than with RED (95 % CI 34 to 42)``; empty if undefined."""
    relative = found.relative
    if relative.estimate is None:
        return ""
    change = 100 * relative.estimate
    sign = -1.0 if change < 0 else 1.0
    places = decimal_places(_half(relative, 100.0) or abs(change))
    more = "less" if change < 0 else "more"
    said = f"that is {abs(change):.{places}f} % {more} than with {other}"
    if relative.low is None or relative.high is None:
        return said
    low, high = sorted((sign * 100 * relative.low, sign * 100 * relative.high))
    return f"{said} ({100 * relative.confidence:g} % CI {_signed(low, places)} to {_signed(high, places)})"


def spoken(label: str) -> str:
    """Return a metric's label in spoken order: ``queueing delay, p99`` becomes ``p99 queueing delay``.

    Settings in parentheses stay at the end.
    """
    plain, opening, settings = label.partition(" (")
    what, _, which = plain.partition(", ")
    return f"{f'{which} {what}' if which else what}{opening}{settings}"


def _change(estimate: Estimate, arm: str, metric: Metric) -> str:
    verb = "lowers" if estimate.mean < 0 else "raises"
    return f"{arm} {verb} {spoken(metric.label)} by {_amount(estimate, metric)}"


def _contrast(estimate: Estimate, arm: str, other: str, metric: Metric) -> str:
    # There is no verb, because labels may be singular, like `goodput`, or plural, like `drops`.
    if estimate.mean == 0:
        return f"{spoken(metric.label)}: the same with {arm} as with {other}"
    more = "less" if estimate.mean < 0 else "more"
    return f"{spoken(metric.label)}: {_amount(estimate, metric)} {more} with {arm} than with {other}"


def _amount(estimate: Estimate, metric: Metric) -> str:
    """The size of the difference with its unit; for percentages, in percentage points."""
    size = abs(display_value(estimate.mean, metric.unit))
    half = display_value(estimate.half_width or 0.0, metric.unit)
    text = f"{size:.{decimal_places(half or size)}f}"
    if metric.unit == "%":
        return f"{text} percentage point{'s' * (text != '1')}"
    return f"{text} {display_unit(metric.unit)}".rstrip()


def _interval(estimate: Estimate, metric: Metric, counted: str) -> str:
    """Return the interval of the size of the change: a decrease of 41 lies between decreases of 36 and 46."""
    assert estimate.half_width is not None
    size = abs(display_value(estimate.mean, metric.unit))
    half = display_value(estimate.half_width, metric.unit)
    places = decimal_places(half)
    low, high = _signed(size - half, places), _signed(size + half, places)
    return f"{100 * estimate.confidence:g} % CI {low} to {high}, n = {counted}"


def _half(interval: Interval, scale: float) -> float:
    if interval.low is None or interval.high is None:
        return 0.0
    return scale * (interval.high - interval.low) / 2


def _signed(value: float, places: int) -> str:
    text = f"{value:.{places}f}".replace("-", "−")
    # A number that rounds to zero has no sign.
    return text if any(digit in text for digit in "123456789") else text.lstrip("−")
