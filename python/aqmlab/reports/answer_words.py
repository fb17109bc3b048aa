"""Words for the answer: values, changes, superlatives, names of choices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aqmlab.figures.trade_off import TradeOff
from aqmlab.metrics import Metric
from aqmlab.results.cells import Cell
from aqmlab.stats import Difference, Estimate
from aqmlab.text.numbers import decimal_places, display_unit, estimate_parts, listed, number

MOST_NAMED = 4
"""Largest number of choices whose values are listed one by one."""


_HEAD = re.compile(r",| (?:of|with|under|against|at|in|that|outside|off)\b")
"""What ends the noun of a label: ``seconds with loss``, ``width of cumulative ACKs``."""


def means_of(found: TradeOff, cells: Sequence[Cell], metric: Metric) -> dict[Cell, Estimate]:
    """Return the means of the cells that have one."""
    return {cell: est for cell in cells if (est := found.mean(cell, metric))}


def mean_of(found: TradeOff, cell: Cell, metric: Metric) -> float:
    """Return the mean of a cell that has one."""
    est = found.mean(cell, metric)
    assert est is not None
    return est.mean


def extremes(means: Mapping[Cell, Estimate], metric: Metric) -> tuple[Cell, Cell]:
    """Return the best and the worst."""
    low, high = (choose(means, key=lambda cell: means[cell].mean) for choose in (min, max))
    return (low, high) if metric.better == "less" else (high, low)


def superlatives(metric: Metric) -> tuple[str, str]:
    """Return the words for the best and the worst value."""
    if metric.better == "more":
        return "highest", "lowest"
    return ("shortest", "longest") if metric.unit == "s" else ("lowest", "highest")


def percent_text(found: Difference, metric: Metric) -> str:
    """Return ``31 % (27 to 34) shorter``, with the interval of the relative change."""
    change = found.relative
    if change.estimate is None:
        return ""
    size, sign = abs(100 * change.estimate), -1 if change.estimate < 0 else 1
    words = ("shorter", "longer") if metric.unit == "s" else ("less", "more")
    if metric.name == "goodput_bps":
        words = ("less", "more")
    word = words[sign > 0]
    if change.low is None or change.high is None:
        return f"{size:.{decimal_places(size)}f} % {word}"
    low, high = sorted(100 * sign * end for end in (change.low, change.high))
    places = decimal_places((high - low) / 2 or size)
    if low == high:
        return f"{size:.{places}f} % {word}"
    return f"{size:.{places}f} % ({low:.{places}f} to {high:.{places}f}) {word}".replace("(-", "(−")


def span(found: TradeOff, means: Mapping[Cell, Estimate], metric: Metric) -> str:
    """Return the smallest and the largest mean."""
    least, most = (choose(means.values(), key=lambda est: est.mean) for choose in (min, max))
    if least.mean == most.mean:
        return value_text(found, least, metric)
    return f"{value_text(found, least, metric)} to {value_text(found, most, metric)}"


def percent_range(changes: Sequence[float]) -> str:
    """Return the range of relative changes in per cent."""
    if not changes:
        return ""
    texts = [number(100 * end, 2) for end in (min(changes), max(changes))]
    return f"{texts[0]} %" if texts[0] == texts[1] else f"{texts[0]} to {texts[1]} %"


def value_text(found: TradeOff, est: Estimate | None, metric: Metric) -> str:
    """Return the mean with its interval and unit; times are in seconds if the longest is at least one."""
    like = found.largest(metric)
    if est is not None and metric.unit == "" and not est.half_width and est.mean.is_integer():
        return f"{est.mean:.0f}"
    return f"{_with_half(*estimate_parts(est, metric.unit, like))} {display_unit(metric.unit, like)}".rstrip()


def be(metric: Metric) -> str:
    """Return the verb for a metric: ``drops are``, ``goodput is``."""
    return "are" if _is_plural(metric) else "is"


def does(metric: Metric) -> str:
    """Return the auxiliary verb for a metric."""
    return "do" if _is_plural(metric) else "does"


def _is_plural(metric: Metric) -> bool:
    head = _HEAD.split(metric.label)[0]
    return head.endswith("s") and not head.endswith(("ss", "bias"))


def _with_half(mean: str, half: str) -> str:
    """Return mean and half-width; without the latter if all seeds gave the same value."""
    return mean if half in ("", "0") else f"{mean} ± {half}"


def names_text(found: TradeOff, cells: Sequence[Cell]) -> str:
    """List the names of choices, or count them."""
    if len(cells) > MOST_NAMED + 1:
        return f"{len(cells)} {things(found)}"
    return listed([found.name(cell) for cell in cells])


def do(cells: Sequence[Cell]) -> str:
    """Return the verb for this many subjects."""
    return "does" if len(cells) == 1 else "do"


def things(found: TradeOff) -> str:
    """Return what is chosen: arms, or combinations of settings."""
    return "settings" if found.chosen_axes else "arms"


def upper(text: str) -> str:
    """Begin a text with a capital letter."""
    return text[:1].upper() + text[1:]


def case_text(cell: Cell) -> str:
    """The settings of a cell without its arm: ``rate 5Mbit, count 20``."""
    return str(cell).removeprefix(cell.arm).removeprefix(", ")


def used_text(used: Estimate) -> str:
    """Return a utilisation in per cent."""
    return f"{_with_half(*estimate_parts(used, '%'))} %"
